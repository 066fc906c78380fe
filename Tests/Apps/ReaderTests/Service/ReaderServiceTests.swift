import HTTPTypes
import Reader
import Testing
import Wire

@Suite struct ReaderServiceTests {
    private let service = ReaderService()

    init() {
        service.seed(
            ReaderRecord(
                key: "p1", kind: .profile, title: "Bo", text: "Cook", birthday: "1990-05-01", picture: "A pan"),
            owner: "ada")
        service.seed(ReaderRecord(key: "a1", kind: .article, author: "p1", title: "Tea", text: "Boil"), owner: "ada")
        service.seed(ReaderRecord(key: "a2", kind: .article, author: "p1", title: "Rice", text: "Wash"), owner: "ada")
    }

    private func call(
        _ method: String, _ path: String, _ body: String = "", operation: String? = nil, tag: String? = nil,
        user: String? = "ada"
    ) -> (status: Int, body: JSONValue, tag: String?, isReplayed: Bool) {
        var request = HTTPRequest(
            method: .init(method)!, scheme: "http", authority: "server", path: "/reader" + path)
        if let operation { request.headerFields[.init("Idempotency-Key")!] = "\"\(operation)\"" }
        if let tag { request.headerFields[.ifNoneMatch] = tag }
        let response = service.respond(to: request, user: user, body: Array(body.utf8))
        #expect(response.head.headerFields[ReaderService.markerField] == "1")
        #expect((response.head.status.code == 304) == response.body.isEmpty)
        return (
            response.head.status.code, JSONText.parse(response.body.utf8) ?? .null, response.head.headerFields[.eTag],
            response.head.headerFields[.init("Idempotency-Replayed")!] == "true"
        )
    }

    private static let feedback = #"{"fields":{"message":"More soup"}}"#

    private static func account(_ name: String, _ password: String) -> String {
        #"{"fields":{"name":"\#(name)","password":"\#(password)"}}"#
    }

    @Test func aRequestNeedsAUserAndEachUserHasOwnArticles() {
        #expect(call("GET", "/articles", user: nil).status == 401)
        #expect(call("GET", "/articles", user: "bo").body["articles"].array.isEmpty)
        #expect(call("GET", "/articles").body["articles"].array.count == 2)
    }

    @Test func aProfileHasRequiredAndAdditionalMembers() {
        let profile = call("GET", "/profiles/p1").body
        #expect(profile["name"] == "Bo" && profile["birthday"] == "1990-05-01")
        #expect(profile["picture"] == "/reader/pictures/p1")
        #expect(call("GET", "/pictures/p1").body["picture"] == "A pan")
        #expect(call("GET", "/profiles/a1").status == 404 && call("GET", "/pictures/a1").status == 404)
    }

    @Test(arguments: ["/articles", "/articles/a1", "/profiles/p1"])
    func aBodyThatTheClientHasIsNotSentAgain(_ path: String) throws {
        let first = call("GET", path)
        let tag = try #require(first.tag)
        #expect(first.status == 200)
        #expect(call("GET", path, tag: tag).status == 304)
        #expect(call("GET", path, tag: "W/\(tag)").status == 304)
        #expect(call("GET", path, tag: "\"0-0\", \(tag)").status == 304)
        #expect(call("GET", path, tag: "\"0-0\"").status == 200)
    }

    @Test func aLikeChangesTheTagsAndIsIdempotent() throws {
        let list = try #require(call("GET", "/articles").tag)
        let article = try #require(call("GET", "/articles/a1").tag)
        #expect(call("PUT", "/articles/a1/like").body["liked"] == true)
        #expect(call("PUT", "/articles/a1/like").body["liked"] == true)
        #expect(service.records(of: "ada").first { $0.key == "a1" }?.revision == 2)
        #expect(call("GET", "/articles", tag: list).status == 200)
        #expect(call("GET", "/articles/a1", tag: article).body["liked"] == true)
        #expect(call("DELETE", "/articles/a1/like").body["liked"] == false)
        #expect(call("GET", "/articles", tag: list).status == 200)
        #expect(call("PUT", "/articles/a9/like").status == 404)
        #expect(call("POST", "/articles/a1/like").status == 405)
    }

    @Test func aRecommendationIsAnArticleWithoutALike() {
        #expect(call("GET", "/recommendations").body["title"] == "Tea")
        _ = call("PUT", "/articles/a1/like")
        #expect(call("GET", "/recommendations").body["title"] == "Rice")
        _ = call("PUT", "/articles/a2/like")
        #expect(call("GET", "/recommendations").status == 404)
    }

    @Test func aRepeatedFormIsExecutedOnce() {
        #expect(call("POST", "/feedback", Self.feedback).status == 400)
        #expect(call("POST", "/feedback", Self.feedback, operation: "x").status == 201)
        let again = call("POST", "/feedback", #"{ "fields": {"message": "More soup"} }"#, operation: "x")
        #expect(again.status == 201 && again.isReplayed && again.body["number"] == 1)
        let other = call("POST", "/feedback", #"{"fields":{"message":"Less"}}"#, operation: "x")
        #expect(other.status == 422 && other.body["type"].text == "urn:slowlane:idempotency-key-reused")
        #expect(call("POST", "/feedback", Self.feedback, operation: "y").body["number"] == 2)
        #expect(service.records(of: "ada").count { $0.kind == .feedback } == 2)
    }

    @Test func aRejectedFormChangesNothingAndMayBeCorrectedUnderTheSameOperation() {
        let rejected = call("POST", "/accounts", Self.account("ada", "short"), operation: "x")
        #expect(rejected.status == 422 && rejected.body["errors"]["password"] == "has fewer than 8 bytes")
        #expect(service.records(of: "ada").count == 3)
        #expect(call("POST", "/accounts", Self.account("ada", "long enough"), operation: "x").status == 201)
        let other = call("POST", "/accounts", Self.account("ada", "long enough"), operation: "y")
        #expect(other.body["errors"]["name"] == "is in use")
        #expect(call("POST", "/accounts", #"{"fields":{"name":5}}"#, operation: "z").status == 400)
    }

    @Test func nothingOfAPasswordIsKept() {
        #expect(call("POST", "/accounts", Self.account("ada", "long enough"), operation: "x").status == 201)
        // Two passwords would have two digests.
        let other = call("POST", "/accounts", Self.account("ada", "another one"), operation: "x")
        #expect(other.status == 201 && other.isReplayed)
        #expect(!"\(service.records(of: "ada"))".contains("long enough"))
    }

    @Test func limitsAreKept() {
        let long = String(repeating: "x", count: ReaderService.Limits.messageBytesMax + 1)
        let rejected = call("POST", "/feedback", #"{"fields":{"message":"\#(long)"}}"#, operation: "x")
        #expect(rejected.body["errors"]["message"] == "is missing or too long")
        for number in 0..<ReaderService.Limits.accountsMax {
            #expect(
                call("POST", "/accounts", Self.account("n\(number)", "12345678"), operation: "\(number)").status == 201)
        }
        #expect(call("POST", "/accounts", Self.account("last", "12345678"), operation: "last").status == 507)
        #expect(!service.seed(ReaderRecord(key: "a1", kind: .article, author: "p1", title: "Again"), owner: "ada"))
        #expect(!service.seed(ReaderRecord(key: "a9", kind: .article, author: "p9", title: "Orphan"), owner: "ada"))
        #expect(!service.seed(ReaderRecord(key: "f1", kind: .feedback, title: "Bo"), owner: "ada"))
    }

    // MARK: Push notices

    @Test func aFeedbackWithAResultHasAPushNotice() {
        #expect(service.pushNotice(ofOperation: "o1") == nil)
        #expect(call("POST", "/feedback", #"{"fields":{"contact":"ada"}}"#, operation: "o1").status == 422)
        #expect(service.pushNotice(ofOperation: "o1") == ReaderText.pushedRejection)
        #expect(call("POST", "/feedback", Self.feedback, operation: "o1").status == 201)
        #expect(service.pushNotice(ofOperation: "o1") == ReaderText.pushedResult)
        // An account is made by a form that blocks, whose user waits.
        _ = call("POST", "/accounts", Self.account("bo", "12345678"), operation: "o2")
        #expect(service.pushNotice(ofOperation: "o2") == nil)
    }

    @Test func theOldestPushNoticesAreDropped() {
        for number in 0...ReaderService.Limits.resultsMax {
            _ = call("POST", "/feedback", #"{"fields":{}}"#, operation: "o\(number)")
        }
        #expect(service.pushNotice(ofOperation: "o0") == nil && service.pushNotice(ofOperation: "o1") != nil)
    }
}
