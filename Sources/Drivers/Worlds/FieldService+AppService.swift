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
        let seeded: FieldSeed
        switch record.kind {
        case "project", "activity", "topic":
            guard let kind = FieldServerRecord.Kind(rawValue: record.kind) else { return false }
            seeded = .section(kind: kind, key: key, title: title)
        case "question":
            let choices = field("choices")?.split(separator: ",").map(String.init) ?? []
            seeded = .question(key: key, title: title, choices: choices)
        case "issue": seeded = .issue(key: key, title: title, text: record.text ?? "")
        case "file":
            guard let bytes = Int(field("bytes") ?? "\(Self.fileBytes)") else { return false }
            seeded = .file(key: key, title: title, bytes: bytes)
        case "schedule":
            guard let length = milliseconds("period", default: 86_400),
                let grace = milliseconds("grace", default: 86_400)
            else { return false }
            guard let zone = Int(field("zone") ?? "0"),
                (-Self.zoneSecondsMax...Self.zoneSecondsMax).contains(zone),
                let changes = changes(field("zone-changes") ?? "")
            else { return false }
            let calendar = FieldCalendar(offset: zone * 1000, changes: changes)
            seeded = .schedule(length: length, grace: grace, calendar: calendar)
        default: return false
        }
        return seed(seeded, owner: owner)
            && (parent.map { seed(.place(key: key, parent: $0), owner: owner) } ?? true)
            && translate(key, field("titles") ?? "", owner: owner)
    }

    /// Adds titles in other languages, such as `de Ist die Tür zu?, fr La porte est-elle fermée ?`. Returns whether they are
    /// valid.
    private func translate(_ key: String, _ text: String, owner: String) -> Bool {
        text.split(separator: ",").allSatisfy { part in
            let words = part.drop { $0 == " " }.split(separator: " ", maxSplits: 1)
            return words.count == 2
                && seed(
                    .translation(key: key, language: String(words[0]), title: String(words[1])), owner: owner)
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
