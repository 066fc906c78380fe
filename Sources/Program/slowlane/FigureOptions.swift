internal import ArgumentParser
internal import ConfigFiles
internal import ControlAPI
internal import LinkModel
internal import Wire

/// The options for single figures of conditions, which replace those of a profile.
struct FigureOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "One-way delay of each direction, alone or in place of a profile's; 200ms makes a round trip of 400 ms.",
            valueName: "time"))
    var delay: String?
    @Option(help: ArgumentHelp("Delay from server to client; overrides --delay.", valueName: "time"))
    var delayDown: String?
    @Option(help: ArgumentHelp("Delay from client to server.", valueName: "time"))
    var delayUp: String?

    @Option(
        help: ArgumentHelp(
            "Variation of the delay: 20ms, or with a distribution '20ms normal'.", valueName: "time"))
    var jitter: String?
    @Option(help: ArgumentHelp("Variation from server to client.", valueName: "time"))
    var jitterDown: String?
    @Option(help: ArgumentHelp("Variation from client to server.", valueName: "time"))
    var jitterUp: String?

    @Option(help: ArgumentHelp("Rate of each direction in bits per second: 780kbit, 1mbit, none.", valueName: "rate"))
    var rate: String?
    @Option(help: ArgumentHelp("Rate from server to client.", valueName: "rate"))
    var rateDown: String?
    @Option(help: ArgumentHelp("Rate from client to server.", valueName: "rate"))
    var rateUp: String?

    @Option(help: ArgumentHelp("Share of lost packets in each direction: 2%.", valueName: "percent"))
    var loss: String?
    @Option(help: ArgumentHelp("Loss from server to client.", valueName: "percent"))
    var lossDown: String?
    @Option(help: ArgumentHelp("Loss from client to server.", valueName: "percent"))
    var lossUp: String?

    /// The given texts.
    private var texts: [(kind: ConditionFigures.Kind, direction: Direction?, text: String)] {
        let all: [(ConditionFigures.Kind, Direction?, String?)] = [
            (.delay, nil, delay), (.delay, .down, delayDown), (.delay, .up, delayUp),
            (.jitter, nil, jitter), (.jitter, .down, jitterDown), (.jitter, .up, jitterUp),
            (.rate, nil, rate), (.rate, .down, rateDown), (.rate, .up, rateUp),
            (.loss, nil, loss), (.loss, .down, lossDown), (.loss, .up, lossUp),
        ]
        return all.compactMap { kind, direction, text in text.map { (kind, direction, $0) } }
    }

    /// Whether a figure is given.
    var isGiven: Bool { !texts.isEmpty }

    func validate() throws { _ = try figures() }

    /// Returns the figures; throws an error that names the option.
    func figures() throws(ValidationError) -> ConditionFigures {
        var figures = ConditionFigures()
        for (kind, direction, text) in texts {
            do {
                try figures.add(kind, direction, text)
            } catch {
                let suffix = direction.map { $0 == .up ? "-up" : "-down" } ?? ""
                throw ValidationError("--\(kind.rawValue)\(suffix): \(error)")
            }
        }
        return figures
    }

    /// Returns a link for a request to a server: a built-in profile, figures, or a profile with other figures.
    func link(profile: String?) throws -> JSONObject {
        let figures = try figures()
        guard let profile else {
            return [
                "conditions": .object([
                    "down": Self.object(figures.texts(.down)), "up": Self.object(figures.texts(.up)),
                ])
            ]
        }
        // The server reports an unknown profile.
        guard !figures.isEmpty, let base = ProfileCatalogue.builtInProfile(named: profile),
            case .object(var conditions)? = JSONText.parse(figures.applied(to: base.conditions).json.utf8)
        else { return ["profile": .text(profile)] }
        for (name, direction) in [("down", Direction.down), ("up", .up)] {
            // Requests have jitter as a text.
            guard let jitter = figures.texts(direction).first(where: { $0.key == "jitter" }),
                case .object(var members)? = conditions[name]
            else { continue }
            members["jitter"] = .text(jitter.text)
            conditions[name] = .object(members)
        }
        return ["conditions": .object(conditions)]
    }

    private static func object(_ members: [(key: String, text: String)]) -> JSONValue {
        var object = JSONObject()
        for (key, text) in members { object[key] = .text(text) }
        return .object(object)
    }
}
