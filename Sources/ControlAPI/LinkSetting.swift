internal import ConfigFiles
internal import JSON
internal import LinkModel

/// What a proxy's link is set to.
enum LinkSetting: Hashable {
    case holds(Conditions, profile: String?)
    case follows(TimelineFile)

    static let clear = LinkSetting.holds(.clear, profile: nil)

    /// Reads one of `profile`, `timeline`, `netem` and `conditions`. Files of this machine are not read for whoever calls.
    init(_ fields: Fields) throws(APIFailure) {
        let known = ["profile", "timeline", "netem", "conditions"]
        let given = known.filter { fields[$0] != nil }
        guard given.count == 1 else {
            throw .badBody(
                "expected one of \(known.joined(separator: ", ")), got \(given.isEmpty ? "none" : "\(given.count)")")
        }
        if let name = try fields.text("profile") {
            guard let profile = ProfileCatalogue.builtInProfile(named: name) else {
                throw .badBody(
                    "no profile is called '\(name.prefix(60))'"
                        + NearestName.hint(name, in: ProfileCatalogue.builtIn.map(\.id)))
            }
            self = .holds(profile.conditions, profile: profile.id)
        } else if let text = try fields.text("timeline", bytesMax: TimelineFile.inlineBytesMax) {
            self = .follows(try Self.timeline(text))
        } else if let netem = try fields.object("netem") {
            self = .holds(try Self.netem(netem), profile: nil)
        } else {
            self = .holds(try Self.conditions(fields["conditions"] ?? .null), profile: nil)
        }
    }

    private static func timeline(_ text: String) throws(APIFailure) -> TimelineFile {
        if let timeline = ProfileCatalogue.builtInTimeline(named: text) { return timeline }
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            throw .badBody(
                "no timeline is called '\(text.prefix(60))'"
                    + NearestName.hint(text, in: ProfileCatalogue.timelines.map(\.id)))
        }
        do {
            return try TimelineFile(inline: text, source: "timeline", readsFiles: false)
        } catch {
            throw .badBody("\(error)")
        }
    }

    private static func netem(_ fields: Fields) throws(APIFailure) -> Conditions {
        var both: [DirectionConditions] = []
        for direction in ["up", "down"] {
            do {
                both.append(try NetemExpression.parse(try fields.text(direction) ?? ""))
            } catch let failure as APIFailure {
                throw failure
            } catch {
                throw .badBody("netem.\(direction): \(error)")
            }
        }
        return Conditions(up: both[0], down: both[1])
    }

    /// Conditions in the words of a profile's file; JSON is YAML.
    private static func conditions(_ value: JSONValue) throws(APIFailure) -> Conditions {
        let file: TimelineFile
        do {
            file = try TimelineFile(
                inline: JSONValue.object(["0s": value]).json, source: "conditions", readsFiles: false)
        } catch {
            throw .badBody("\(error)")
        }
        guard case .hold(let named)? = file.timeline.entries.first?.phase else {
            throw .badBody("conditions: expected {\"down\": {..}, \"up\": {..}}")
        }
        return named.conditions
    }

    /// What holds at the beginning.
    var firstConditions: Conditions {
        switch self {
        case .holds(let conditions, _): conditions
        case .follows: .clear
        }
    }

    /// What is set, and what of it is in force now.
    func json(now conditions: Conditions) -> String {
        var members: [(key: String, value: String)] = []
        switch self {
        case .holds(_, let profile): members = [("profile", JSONText.string(profile)), ("timeline", "null")]
        case .follows(let file):
            members = [("profile", "null"), ("timeline", JSONText.string(file.id == "inline" ? file.name : file.id))]
        }
        return JSONText.object(members + conditions.jsonMembers)
    }
}
