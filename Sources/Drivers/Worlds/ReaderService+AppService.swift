internal import HTTPTypes
internal import Reader
internal import Scenario

extension ReaderService: AppService {
    static var recordCollections: [String] { ["articles", "profiles"] }

    func seed(_ record: Scenario.SeedRecord, key: String, parent: String?, owner: String) -> Bool {
        guard let kind = ReaderRecord.Kind(rawValue: record.kind) else { return false }
        func field(_ name: String) -> String? { record.fields.first { $0.name == name }?.value }
        return seed(
            ReaderRecord(
                key: key, kind: kind, author: parent, title: record.title ?? "", text: record.text,
                birthday: field("birthday"), picture: field("picture")), owner: owner)
    }

    func shownRecords(of user: String) -> [ServiceRecord] {
        records(of: user).map { record in
            // The list shows of an article whether the user likes it.
            let text = record.kind == .article ? record.isLiked ? "liked" : "not liked" : record.text
            return ServiceRecord(key: record.key, revision: record.revision, title: record.title, text: text)
        }
    }

    func response(
        to request: HTTPRequest, user: String?, body: [UInt8], milliseconds: Int
    ) -> (head: HTTPResponse, body: [UInt8]) {
        let response = respond(to: request, user: user, body: body)
        return (response.head, Array(response.body.utf8))
    }
}
