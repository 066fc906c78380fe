internal import ConfigFiles
internal import Determinism
internal import LinkModel
internal import Wire

/// The link of a proxy: constant conditions, or a timeline.
enum LinkSetting: Hashable {
    case constant(Conditions, profile: String?)
    case timeline(TimelineFile)

    /// A link without conditions.
    static let passThrough = LinkSetting.constant(.clear, profile: nil)

    /// The forms of a link, of which a request contains one.
    private static let forms: [JSONField] = [
        .optional("profile", .text.examples("edge")),
        .optional(
            "timeline", .text.examples("subway", "0s: 3g, 20s: 100-loss, 50s: 3g"),
            "A built-in timeline, or times with profiles."),
        .optional(
            "netem", .object(netemFields).examples(["down": "delay 100ms loss 2%", "up": ""])),
        .optional(
            "conditions", .object.examples(["down": ["rate": "780 kbit/s", "delay": "100 ms"], "up": [:]]),
            "Conditions with the keys of profile files, or of responses."),
    ]
    /// The names of the forms.
    static let formNames = forms.names
    /// The fields of the form `netem`.
    static let netemFields: [JSONField] = [.optional("up", .text), .optional("down", .text)]

    /// The fields of a link.
    static let fields =
        forms + [
            .optional(
                "start", .text.with(["format": "date-time"]).examples("2026-03-01T12:00:00Z"),
                "The absolute start of the timeline; by default that of 'slowlane server --timeline-start', or the "
                    + "time of the request."),
            .optional(
                "reset_after_ms", .number(min: 1, max: Int64(resetAfterMax)),
                "The time after which the initial link returns."),
        ]

    /// The schema of a link in a request.
    static let schema = JSONSchema.object(fields, isClosed: true)
        .about("Exactly one of profile, timeline, netem and conditions.")
        .with(["minProperties": 1, "maxProperties": 3, "oneOf": .array(formNames.map { ["required": [.text($0)]] })])
        .named("NewLink")

    /// The longest time after which a link may be reset, in milliseconds.
    private static let resetAfterMax = 7.0 * 24 * 3600 * 1000

    /// Reads the time after which the initial link returns.
    static func resetAfter(_ fields: JSONFields) throws(APIError) -> Nanoseconds? {
        guard let milliseconds = try fields.number("reset_after_ms") else { return nil }
        guard (1...resetAfterMax).contains(milliseconds) else {
            throw .badBody("reset_after_ms must be from 1 to \(JSONText.number(resetAfterMax)) (7 days)")
        }
        return Nanoseconds(Int64(milliseconds * 1e6))
    }

    /// Reads a link from a request. Requests never read files of this machine.
    init(_ fields: JSONFields) throws(APIError) {
        let given = Self.formNames.filter { fields[$0] != nil }
        guard given.count == 1 else {
            var got = given.isEmpty ? "none" : "\(given.count)"
            if given.isEmpty, let unknown = fields.names(except: Self.formNames).first {
                got = "'\(RequestWarnings.printable(unknown))'" + NearestName.hint(unknown, in: Self.formNames)
            }
            throw .badBody("expected one of \(Self.formNames.joined(separator: ", ")), got \(got)")
        }
        if fields["start"] != nil, fields["timeline"] == nil {
            throw .badBody("start needs a timeline")
        }
        if let name = try fields.text("profile") {
            let profile = try Self.profile(named: name)
            self = .constant(profile.conditions, profile: profile.id)
        } else if let text = try fields.text("timeline", bytesMax: TimelineFile.inlineBytesMax) {
            var file = try Self.timeline(text)
            file.start = try fields.text("start").map { (text) throws(APIError) in
                guard let start = TimelineStart(text) else {
                    throw .badBody("start '\(RequestWarnings.printable(text))' must be \(TimelineStart.expected)")
                }
                return start
            }
            self = .timeline(file)
        } else if let netem = try fields.object("netem") {
            self = .constant(try Self.netem(netem), profile: nil)
        } else {
            self = .constant(try Self.conditions(fields["conditions"] ?? .null), profile: nil)
        }
    }

    /// Returns a built-in profile.
    static func profile(named name: String) throws(APIError) -> Profile {
        if let profile = ProfileCatalogue.builtInProfile(named: name) { return profile }
        throw .badBody("unknown profile '\(RequestWarnings.printable(name))'\(ProfileCatalogue.profileHint(name))")
    }

    private static func timeline(_ text: String) throws(APIError) -> TimelineFile {
        if let timeline = ProfileCatalogue.timelines.first(where: { $0.id.hasSameBytes(as: text) }) { return timeline }
        guard text.utf8.contains(UInt8(ascii: ":")) else {
            throw .badBody(
                "unknown timeline '\(RequestWarnings.printable(text))'\(ProfileCatalogue.timelineHint(text))")
        }
        do {
            return try TimelineFile(inline: text, source: "timeline", readsFiles: false)
        } catch {
            throw .badBody("\(error)")
        }
    }

    private static func netem(_ fields: JSONFields) throws(APIError) -> Conditions {
        var both: [DirectionConditions] = []
        for direction in ["up", "down"] {
            do {
                both.append(try NetemExpression.parse(try fields.text(direction) ?? ""))
            } catch let error as APIError {
                throw error
            } catch {
                throw .badBody("netem.\(direction): \(error)")
            }
        }
        return Conditions(up: both[0], down: both[1])
    }

    /// Reads conditions with the keys of profile files or of responses. JSON is a subset of the YAML of profile files.
    private static func conditions(_ value: JSONValue) throws(APIError) -> Conditions {
        let file: TimelineFile
        do {
            let value = try withProfileKeys(value)
            file = try TimelineFile(
                inline: JSONValue.object(["0s": value]).json, source: "conditions", readsFiles: false)
        } catch let error as APIError {
            throw error
        } catch {
            throw .badBody("\(error)")
        }
        guard case .hold(let named)? = file.timeline.entries.first?.phase else {
            throw .badBody("conditions: expected {\"down\": {..}, \"up\": {..}}")
        }
        return named.conditions
    }

    /// The numeric fields of conditions, with the key and the unit of profile files.
    private static let numericFields = [
        (name: "rate_bps", key: "rate", unit: "bit/s"), (name: "delay_ms", key: "delay", unit: "ms"),
        (name: "loss_percent", key: "loss", unit: "%"), (name: "dns_delay_ms", key: "dns-delay", unit: "ms"),
        (name: "udp_idle_ms", key: "udp-idle", unit: "ms"), (name: "udp_rebind_ms", key: "udp-rebind", unit: "ms"),
    ]

    /// Returns conditions with `"rate_bps": 240000` replaced by `"rate": "240000 bit/s"`, and so on.
    private static func withProfileKeys(_ value: JSONValue) throws(APIError) -> JSONValue {
        guard case .object(let members) = value else { return value }
        var result = JSONObject()
        for (name, value) in members {
            if "connection_policy".hasSameBytes(as: name) {
                if members["access"] != nil { throw .badBody("conditions: give access or connection_policy, not both") }
                result["access"] = value
                continue
            }
            guard let field = numericFields.first(where: { $0.name.hasSameBytes(as: name) }) else {
                let isDirection = ["up", "down"].contains { $0.hasSameBytes(as: name) }
                if result[name] == nil { result[name] = try isDirection ? withProfileKeys(value) : value }
                continue
            }
            if members[field.key] != nil { throw .badBody("conditions: give \(field.key) or \(name), not both") }
            switch value {
            case .integer(let number): result[field.key] = .text("\(number) \(field.unit)")
            case .number(let number): result[field.key] = .text("\(JSONText.number(number)) \(field.unit)")
            case .null: if field.key == "rate" { result[field.key] = .text("none") }
            default: throw .badBody("conditions: \(name) is not a number")
            }
        }
        return .object(result)
    }

    /// The conditions at the start.
    var initialConditions: Conditions {
        switch self {
        case .constant(let conditions, _): conditions
        case .timeline: .clear
        }
    }

    /// The names of the profile and of the timeline.
    var names: (profile: String?, timeline: String?) {
        switch self {
        case .constant(_, let profile): (profile, nil)
        case .timeline(let file): (nil, file.id == "inline" ? file.name : file.id)
        }
    }

    /// The absolute start of the timeline.
    var start: TimelineStart? { if case .timeline(let file) = self { file.start } else { nil } }

    /// Returns the setting with a start for a timeline that has none.
    func starting(at start: TimelineStart?) -> LinkSetting {
        guard case .timeline(var file) = self, file.start == nil else { return self }
        file.start = start
        return .timeline(file)
    }
}

/// The link of a proxy with the conditions that apply now, as responses show it.
struct LinkView {
    let setting: LinkSetting
    let conditions: Conditions
    /// The time of the automatic reset, in nanoseconds since 1970.
    let resetAt: Int64?

    static let shape = JSONShape<LinkView>(
        "Link",
        [
            .required("profile", { $0.setting.names.profile }, .orNull(.text)),
            .required("timeline", { $0.setting.names.timeline }, .orNull(.text)),
            .required("start", \.setting.start?.description, .orNull(.text), "The absolute start of the timeline."),
        ] + Conditions.shape.members.map { $0.of(\.conditions) } + [
            .required(
                "reset_at", \.resetAt, .orNull(.time), "The time of the automatic reset, in milliseconds since 1970.")
        ])
}
