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
            guard let zone = Int(field("zone") ?? "0"),
                (-Self.zoneSecondsMax...Self.zoneSecondsMax).contains(zone),
                let changes = changes(field("zone-changes") ?? "")
            else { return false }
            let calendar = FieldCalendar(offset: zone * 1000, changes: changes)
            return seed(.schedule(length: length, grace: grace, calendar: calendar), owner: owner)
        default: return false
        }
    }

    /// The greatest offset of a zone in seconds, in both directions.
    private static let zoneSecondsMax = 86_400
    /// The greatest time of a change of an offset in seconds since 1970: the year 9999.
    private static let changeSecondsMax = 253_402_300_799

    /// Returns the changes of an offset, such as `1774746000 7200, 1792890000 3600`: seconds since 1970, and seconds to the
    /// east of Greenwich; `nil` if one is invalid.
    private func changes(_ text: String) -> [FieldCalendar.Change]? {
        let parts = text.split(separator: ",")
        let changes = parts.compactMap { part -> FieldCalendar.Change? in
            let numbers = part.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2, (0...Self.changeSecondsMax).contains(numbers[0]),
                (-Self.zoneSecondsMax...Self.zoneSecondsMax).contains(numbers[1])
            else { return nil }
            return FieldCalendar.Change(start: numbers[0] * 1000, offset: numbers[1] * 1000)
        }
        return changes.count == parts.count && changes.count <= FieldCalendar.changesMax ? changes : nil
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
