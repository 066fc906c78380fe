public import Determinism
public import LinkModel
public import Scenario

/// The writer of scenarios: the text of a file that has the values of a scenario, in the canonical form.
///
/// The text is that of one run: the file has neither variants nor a matrix. Not kept: source locations, the order of
/// expectations of different sections, and the names of conditions that are not those of a built-in profile.
public enum ScenarioWriter {
    /// The reason why a scenario has no file: the format does not have what a program may put into a scenario.
    public struct UnsupportedError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What cannot be written.
        public let description: String
    }

    /// The keys after an empty line.
    private static let separated: Set<String> = [
        "server", "devices", "network", "faults", "steps", "workload", "expect", "invariants", "explore",
    ]

    /// Returns the text of a file.
    ///
    /// - Parameter comments: Lines at the beginning of the file, without `#`. Line breaks in them are escaped.
    public static func text(_ scenario: Scenario, comments: [String] = []) throws(UnsupportedError) -> String {
        if let reason = unsupported(scenario) { throw UnsupportedError(description: reason) }
        let document = YAMLTree.mapping(ScenarioFormat.scenario.entries(scenario), isFlow: false)
        if let text = document.unreadableText {
            let shown = text.unicodeScalars.prefix(20).map { $0.escaped(asASCII: true) }.joined()
            throw UnsupportedError(description: "the parser of YAML changes the text '\(shown)'")
        }
        let lines = document.document(separated: separated)
        return (comments.map(YAMLTree.comment) + lines).joined(separator: "\n") + "\n"
    }

    /// Returns the text of a timeline file; `nil` if a link has a trace, which is a file of its own.
    ///
    /// - Parameter links: The links with their starts, from 0 s on, in order.
    public static func timeline(
        name: String, about: String, _ links: [(start: Nanoseconds, link: Timeline.NamedConditions)]
    ) -> String? {
        guard !links.contains(where: { unsupported($0.link) != nil }) else { return nil }
        let document = YAMLTree.mapping(
            [
                entry("timeline", .word(TimelineFile.formatVersion)), entry("name", .text(name)),
                entry("about", .text(about)),
                entry(
                    "at",
                    block(links) { start, link in
                        let value =
                            profile(of: link).map { .word($0) }
                            ?? braces(conditions(link.conditions).map { entry($0.key, $0.value) })
                        return entry(QuantityText.time(start), value)
                    }),
            ], isFlow: false)
        return document.document(separated: []).joined(separator: "\n") + "\n"
    }

    /// Returns whether a file can contain a text: a parser reads it back as it was.
    public static func canWrite(_ text: String) -> Bool { YAMLTree.text(text).unreadableText == nil }

    /// Returns whether a parser reads a text without quotes as the same text, and not as a truth value or as null.
    public static func isPlain(_ text: String) -> Bool { YAMLTree.isPlain(text) }

    // MARK: Entries

    /// Returns an entry with a key of the format.
    static func entry(_ key: String, _ value: YAMLTree) -> YAMLTree.Entry {
        YAMLTree.Entry(key: .word(key), value: value)
    }

    /// Returns a mapping in braces.
    static func braces(_ entries: [YAMLTree.Entry]) -> YAMLTree { .mapping(entries, isFlow: true) }

    /// Returns a list in brackets.
    static func brackets(_ items: [YAMLTree]) -> YAMLTree { .list(items, isFlow: true) }

    /// Returns a mapping with a line for each of some parts.
    static func block<Part>(_ parts: [Part], _ entry: (Part) -> YAMLTree.Entry) -> YAMLTree {
        .mapping(parts.map(entry), isFlow: false)
    }

    // MARK: What has no file

    /// Returns what the format does not have; `nil` if it has everything.
    private static func unsupported(_ scenario: Scenario) -> String? {
        if scenario.seedOrigin == .file, scenario.seed > ScenarioFormat.seedMax {
            return "the seed \(scenario.seed) is above \(ScenarioFormat.seedMax)"
        }
        for entry in scenario.devices.flatMap(\.network) {
            switch entry.phase {
            case .ramp: return "the networks of scenarios have no ramps"
            case .hold(let link): if let reason = unsupported(link) { return reason }
            case .flap(let intervals, _):
                if let reason = intervals.lazy.compactMap({ unsupported($0.link) }).first { return reason }
            }
        }
        // Mappings, in which a key is present once.
        var seen: Set<String> = []
        for expectation in scenario.expectations {
            let key: String? =
                switch expectation.kind {
                case .threshold(let threshold): "thresholds of \(threshold.metric.rawValue)"
                case .serverRow(let row, _, _, _): "expectations of the note \(row) on the server"
                case .serverCount: "expectations of the number of notes"
                case .agree: "expectations of agreement"
                default: nil
                }
            if let key, !seen.insert(key).inserted { return "two \(key)" }
        }
        return nil
    }

    private static func unsupported(_ link: Timeline.NamedConditions) -> String? {
        guard profile(of: link) == nil, link.conditions.down.trace != nil || link.conditions.up.trace != nil else {
            return nil
        }
        return "the link '\(link.name)' has a trace, which is a file of its own"
    }

    // MARK: Networks

    /// Returns the keys of a phase.
    static func phase(_ phase: Timeline.Phase) -> [(key: String, value: YAMLTree)] {
        switch phase {
        case .hold(let link): return profile(of: link).map { [("link", .word($0))] } ?? conditions(link.conditions)
        // ``unsupported(_:)`` has reported it.
        case .ramp: return []
        case .flap(let intervals, let jitter):
            let items = intervals.map { interval in
                let link =
                    profile(of: interval.link).map { YAMLTree.word($0) }
                    ?? braces(conditions(interval.link.conditions).map { entry($0.key, $0.value) })
                return braces([YAMLTree.Entry(key: link, value: .word(QuantityText.time(interval.length)))])
            }
            let list = [("flap", brackets(items))]
            return jitter == .zero ? list : list + [("jitter", .word(QuantityText.percentage(jitter)))]
        }
    }

    /// Returns the name of the profile with these conditions; `nil` if none has them.
    private static func profile(of link: Timeline.NamedConditions) -> String? {
        let profile = ProfileCatalogue.builtIn.first { $0.id == link.name }
        return profile?.conditions == link.conditions ? profile?.id : nil
    }

    private static func conditions(_ conditions: Conditions) -> [(key: String, value: YAMLTree)] {
        var entries = [("down", direction(conditions.down)), ("up", direction(conditions.up))]
        if conditions.dnsDelay != .zero {
            entries.append(("dns-delay", .word(QuantityText.delay(conditions.dnsDelay))))
        }
        if conditions.connectionPolicy != .open {
            entries.append(("access", .word(conditions.connectionPolicy.rawValue)))
        }
        return entries
    }

    private static func direction(_ conditions: DirectionConditions) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        func add(_ key: String, _ word: String) { entries.append(entry(key, .word(word))) }
        if let rate = conditions.rate { add("rate", "\(rate)") }
        if conditions.delay != .zero { add("delay", QuantityText.delay(conditions.delay)) }
        if let jitter = conditions.jitter { add("jitter", QuantityText.jitter(jitter)) }
        if conditions.loss != .zero { add("loss", QuantityText.percentage(conditions.loss)) }
        if let bursts = conditions.bursts { add("bursts", QuantityText.bursts(bursts)) }
        if let numbers = conditions.lostPackets {
            entries.append(entry("lose-packets", .text("\(numbers)")))
        }
        if conditions.duplication != .zero { add("duplicate", QuantityText.percentage(conditions.duplication)) }
        if conditions.reordering != .zero { add("reorder", QuantityText.percentage(conditions.reordering)) }
        if conditions.queue != .standard { add("queue", "\(conditions.queue)") }
        return braces(entries)
    }
}
