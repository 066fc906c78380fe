internal import Expense
internal import HTTPTypes
internal import Scenario

extension ExpenseService: AppService {
    static var recordCollections: [String] { ["records"] }

    func seed(_ record: Scenario.SeedRecord, key: String, parent: String?, owner: String) -> Bool {
        guard let kind = ExpenseRecord.Kind(rawValue: record.kind) else { return false }
        var fields = record.title.map { [(name: "title", value: $0)] } ?? []
        if let text = record.text { fields.append((name: "amount", value: text)) }
        if record.isApproved { fields.append((name: "state", value: "approved")) }
        return seed(ExpenseRecord(key: key, kind: kind, parent: parent, fields: fields), owner: owner)
    }

    func change(_ key: String, title: String?, text: String?, owner: String) -> Bool {
        let fields = [("title", title), ("amount", text)].compactMap { name, value in value.map { (name, $0) } }
        return change(key, fields: fields.isEmpty ? nil : fields, owner: owner)
    }

    func shownRecords(of user: String) -> [ServiceRecord] {
        records(of: user).map { record in
            let shown = AppHistory.texts { record.text($0) }
            return ServiceRecord(key: record.key, revision: record.revision, title: shown.title, text: shown.text)
        }
    }

    func response(
        to request: HTTPRequest, user: String?, body: [UInt8], milliseconds: Int
    ) -> (head: HTTPResponse, body: [UInt8]) {
        let response = respond(to: request, user: user, body: body)
        return (response.head, Array(response.body.utf8))
    }
}
