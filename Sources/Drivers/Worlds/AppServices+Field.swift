internal import Field
internal import HTTPTypes
internal import Scenario

extension FieldService: AppService {
    static var recordCollections: [String] { ["files"] }

    /// The size of a file without one.
    private static let fileBytes = 1000

    func seed(_ record: Scenario.SeedRecord, key: String, parent: String?, owner: String) -> Bool {
        func field(_ name: String) -> String? { record.fields.first { $0.name == name }?.value }
        func milliseconds(_ name: String, default seconds: Int) -> Int? {
            guard let seconds = Int(field(name) ?? "\(seconds)"), (0...Limits.periodMillisecondsMax).contains(seconds)
            else { return nil }
            return seconds * 1000
        }
        let title = record.title ?? record.row
        switch record.kind {
        case "question":
            let choices = field("choices")?.split(separator: ",").map(String.init) ?? []
            return seed(.question(key: key, title: title, choices: choices), owner: owner)
        case "issue": return seed(.issue(key: key, title: title, text: record.text ?? ""), owner: owner)
        case "file":
            guard let bytes = Int(field("bytes") ?? "\(Self.fileBytes)") else { return false }
            return seed(.file(key: key, title: title, bytes: bytes), owner: owner)
        case "schedule":
            guard let length = milliseconds("period", default: 86_400),
                let grace = milliseconds("grace", default: 86_400)
            else { return false }
            return seed(.schedule(length: length, grace: grace), owner: owner)
        default: return false
        }
    }

    func shownRecords(of user: String) -> [ServiceRecord] {
        records(of: user).map {
            ServiceRecord(key: $0.key, revision: $0.revision, title: $0.title, text: $0.text)
        }
    }

    func response(
        to request: HTTPRequest, user: String?, body: [UInt8], milliseconds: Int
    ) -> (head: HTTPResponse, body: [UInt8]) {
        let response = respond(to: request, user: user, body: body, milliseconds: milliseconds)
        return (response.head, response.body)
    }
}
