import Expense
import HTTPTypes
import Testing
import Wire

@Suite struct ExpenseServiceTests {
    private let service = ExpenseService()

    init() {
        service.seed(ExpenseRecord(key: "r1", kind: .report, fields: [("title", "Trip")]), owner: "ada")
        service.seed(
            ExpenseRecord(key: "e1", kind: .expense, parent: "r1", fields: [("title", "Taxi"), ("amount", "12.00")]),
            owner: "ada")
        service.seed(
            ExpenseRecord(
                key: "e2", kind: .expense, parent: "r1",
                fields: [("title", "Bus"), ("amount", "2.00"), ("state", "approved")]), owner: "ada")
    }

    private func call(
        _ method: String, _ path: String, _ body: String = "", operation: String? = nil, user: String? = "ada"
    ) -> (status: Int, body: JSONValue, isReplayed: Bool) {
        var request = HTTPRequest(
            method: .init(method)!, scheme: "http", authority: "server", path: "/expense" + path)
        if let operation { request.headerFields[.init("Idempotency-Key")!] = "\"\(operation)\"" }
        let response = service.respond(to: request, user: user, body: Array(body.utf8))
        #expect(response.head.headerFields[ExpenseService.markerField] == "1")
        return (
            response.head.status.code, JSONText.parse(response.body.utf8) ?? .null,
            response.head.headerFields[.init("Idempotency-Replayed")!] == "true"
        )
    }

    private static let hotel = #"{"kind":"expense","parent":"r1","fields":{"title":"Hotel","amount":"80"}}"#

    @Test func aRequestNeedsAUser() {
        #expect(call("GET", "/updates", user: nil).status == 401)
        #expect(call("GET", "/updates", user: "bo").body["updates"].array.isEmpty)
    }

    @Test func aWriteNeedsAnOperation() {
        #expect(call("PUT", "/records/e9", Self.hotel).status == 400)
        #expect(call("PUT", "/records/e9", Self.hotel, operation: "").status == 400)
        #expect(call("PUT", "/records/e9", Self.hotel, operation: String(repeating: "x", count: 256)).status == 400)
        #expect(service.records(of: "ada").count == 3)
    }

    @Test func anExpenseIsAddedChangedAndDeleted() {
        let added = call("PUT", "/records/e9", Self.hotel, operation: "a")
        #expect(added.status == 201 && added.body["update"] == 4 && added.body["previous"] == 3)
        let changed = call("PATCH", "/records/e9", #"{"fields":{"amount":"90.5"}}"#, operation: "b")
        #expect(changed.status == 200 && changed.body["record"]["fields"]["title"] == "Hotel")
        #expect(changed.body["record"]["fields"]["amount"] == "90.5")
        #expect(call("DELETE", "/records/e9", operation: "c").status == 200)
        #expect(call("DELETE", "/records/e9", operation: "d").status == 404)
        #expect(call("PUT", "/records/e9", Self.hotel, operation: "e").status == 409)
    }

    @Test func aRepeatedOperationIsExecutedOnce() {
        let first = call("PUT", "/records/e9", Self.hotel, operation: "a")
        // Spaces and the order of members have no meaning.
        let again = call(
            "PUT", "/records/e9", #"{"parent": "r1", "kind": "expense", "fields": {"amount": "80", "title": "Hotel"}}"#,
            operation: "a")
        #expect(again.isReplayed && !first.isReplayed && again.status == 201 && again.body == first.body)
        let other = call("PUT", "/records/e8", Self.hotel, operation: "a")
        #expect(other.status == 422 && other.body["type"].text == "urn:slowlane:idempotency-key-reused")
        #expect(service.records(of: "ada").count == 4)
        #expect(call("GET", "/operations/a").body["status"] == 201)
        #expect(call("GET", "/operations/b").status == 404)
    }

    @Test(arguments: [
        (#"{"title":"","amount":"80"}"#, ["title": "is missing or too long"]),
        (#"{"title":"Hotel","amount":"0"}"#, ["amount": "is not an amount"]),
        (#"{"title":"Hotel","amount":"1.005"}"#, ["amount": "is not an amount"]),
        (#"{"title":"Hotel","amount":"99999999999999999999"}"#, ["amount": "is not an amount"]),
        (#"{"title":"Hotel","amount":"500.01"}"#, ["amount": "exceeds the limit of 500.00"]),
        (#"{"amount":"-5"}"#, ["amount": "is not an amount", "title": "is missing or too long"]),
    ]) func aRejectionHasMessagesByFieldAndChangesNothing(_ fields: String, _ errors: [String: String]) {
        let found = call("PUT", "/records/e9", #"{"kind":"expense","parent":"r1","fields":\#(fields)}"#, operation: "a")
        #expect(found.status == 422)
        let messages = found.body["errors"].object?.map { ($0.key, $0.value.text ?? "") } ?? []
        #expect(Dictionary(uniqueKeysWithValues: messages) == errors)
        #expect(service.records(of: "ada").count == 3)
        // A rejection is not kept: a corrected request may have the same id.
        #expect(call("PUT", "/records/e9", Self.hotel, operation: "a").status == 201)
    }

    @Test func anApprovedExpenseIsNotDeleted() {
        let found = call("DELETE", "/records/e2", operation: "a")
        #expect(found.status == 422 && found.body["errors"][""] == "approved, cannot be deleted")
        #expect(call("DELETE", "/records/r1", operation: "b").status == 422)
    }

    @Test func theApproverAloneApproves() {
        let found = call("PATCH", "/records/e1", #"{"fields":{"state":"approved"}}"#, operation: "a")
        #expect(found.status == 422)
    }

    @Test func updatesHaveWhatChangedSince() {
        #expect(call("GET", "/updates").body["updates"].array.count == 3)
        _ = call("PATCH", "/records/e1", #"{"fields":{"amount":"1"}}"#, operation: "a")
        _ = call("DELETE", "/records/e1", operation: "b")
        let found = call("GET", "/updates?since=3").body
        #expect(found["last"] == 5 && found["more"] == false)
        #expect(found["updates"].array == [["update": 5, "deleted": "e1"]])
        #expect(call("GET", "/updates?since=5").body["updates"].array.isEmpty)
        // A client without records has nothing to delete.
        #expect(call("GET", "/updates?since=0").body["updates"].array.allSatisfy { $0["deleted"].text == nil })
    }

    @Test func manyUpdatesComeInParts() {
        for number in 0..<600 {
            service.seed(ExpenseRecord(key: "c\(number)", kind: .chat, fields: [("title", "x")]), owner: "ada")
        }
        let first = call("GET", "/updates?since=3").body
        #expect(first["updates"].array.count == 500 && first["more"] == true && first["last"] == 503)
        let second = call("GET", "/updates?since=503").body
        #expect(second["updates"].array.count == 100 && second["more"] == false && second["last"] == 603)
    }

    @Test func aTransferReducesTheBalanceOnce() {
        let body = #"{"fields":{"to":"Bo","amount":"20"}}"#
        #expect(call("POST", "/transfers", body, operation: "a").status == 201)
        #expect(call("POST", "/transfers", body, operation: "a").isReplayed)
        #expect(call("GET", "/pages/balance").body["content"]["balance"] == "80.00")
        let found = call("POST", "/transfers", #"{"fields":{"amount":"80.01"}}"#, operation: "b")
        #expect(found.body["errors"] == ["amount": "exceeds the balance of 80.00", "to": "is missing"])
    }

    @Test(arguments: [
        ("GET", "/nothing", 404), ("GET", "/pages/other", 404), ("POST", "/updates", 405), ("POST", "/records/e1", 405),
        ("GET", "/transfers", 405), ("GET", "/", 200), ("PUT", "/records/e9", 400), ("PATCH", "/records/e1", 400),
        ("PATCH", "/records/none", 400),
    ]) func otherRequestsHaveTheirStatuses(_ method: String, _ path: String, _ status: Int) {
        #expect(call(method, path, "[]", operation: "a").status == status)
    }
}
