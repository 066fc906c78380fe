internal import Determinism
internal import LinkModel
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
        let document = try tree(scenario)
        if let text = document.unreadableText {
            let shown = text.unicodeScalars.prefix(20).map { $0.escaped(asASCII: true) }.joined()
            throw UnsupportedError(description: "the parser of YAML changes the text '\(shown)'")
        }
        let lines = document.document(separated: separated)
        return (comments.map(YAMLTree.comment) + lines).joined(separator: "\n") + "\n"
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

    static func entry(_ key: String, _ text: String) -> YAMLTree.Entry { entry(key, .text(text)) }
    static func entry(_ key: String, _ number: Int) -> YAMLTree.Entry { entry(key, .word("\(number)")) }
    static func entry(_ key: String, _ time: Nanoseconds) -> YAMLTree.Entry {
        entry(key, .word(QuantityText.time(time)))
    }

    /// Returns a mapping in braces.
    static func braces(_ entries: [YAMLTree.Entry]) -> YAMLTree { .mapping(entries, isFlow: true) }

    /// Returns a list in brackets.
    static func brackets(_ items: [YAMLTree]) -> YAMLTree { .list(items, isFlow: true) }

    /// Returns a mapping of names given by the scenario.
    static func arguments(_ arguments: [Scenario.Argument]) -> YAMLTree {
        braces(arguments.map { YAMLTree.Entry(key: .text($0.name), value: .text($0.value)) })
    }

    /// Returns a pattern of requests.
    static func pattern(_ pattern: RequestPattern) -> YAMLTree {
        if pattern.method == nil, pattern.row == nil { return .word("any") }
        return .word("\(pattern.method ?? "any") \(pattern.row ?? "any")")
    }

    // MARK: The file

    private static func tree(_ scenario: Scenario) throws(UnsupportedError) -> YAMLTree {
        var entries = [entry("scenario", .word(ScenarioFile.formatVersion)), entry("name", .word(scenario.name))]
        if !scenario.about.isEmpty { entries.append(entry("about", about(scenario.about))) }
        if !scenario.tags.isEmpty { entries.append(entry("tags", brackets(scenario.tags.map { .word($0) }))) }
        if scenario.seedOrigin == .commit {
            entries.append(entry("seed", .word("commit")))
        } else if scenario.seed != 1 {
            guard scenario.seed <= ScenarioFormat.seedMax else {
                throw UnsupportedError(description: "the seed \(scenario.seed) is above \(ScenarioFormat.seedMax)")
            }
            entries.append(entry("seed", .word("\(scenario.seed)")))
        }
        if scenario.limit != .seconds(600) { entries.append(entry("limit", scenario.limit)) }
        if let restoreAt = scenario.restoreAt { entries.append(entry("restore", restoreAt)) }
        if let server = server(scenario) { entries.append(entry("server", server)) }
        let devices = scenario.devices.map { device in
            YAMLTree.Entry(key: .word(device.name), value: self.device(device))
        }
        entries.append(entry("devices", .mapping(devices, isFlow: false)))
        let policy = self.policy(scenario.policy)
        if !policy.isEmpty { entries.append(entry("policy", braces(policy))) }
        if !scenario.writers.isEmpty {
            let writers = scenario.writers.map { entry($0.name, braces([entry("user", $0.user)])) }
            entries.append(entry("writers", .mapping(writers, isFlow: false)))
        }
        var networks: [YAMLTree.Entry] = []
        for device in scenario.devices { networks.append(entry(device.name, try network(device))) }
        entries.append(entry("network", .mapping(networks, isFlow: false)))
        func section(_ key: String, _ items: [YAMLTree]) {
            if !items.isEmpty { entries.append(entry(key, .list(items, isFlow: false))) }
        }
        section("faults", scenario.faults.map(fault))
        section("steps", scenario.steps.map { step($0, scenario) })
        section("workload", scenario.workload.map(workload))
        entries.append(entry("expect", try expect(scenario)))
        if scenario.invariants != .standard { entries.append(entry("invariants", invariants(scenario.invariants))) }
        if let exploration = scenario.exploration {
            let parts = exploration.vary.map { YAMLTree.word($0.rawValue) }
            var values = [entry("seeds", exploration.seeds)]
            if exploration.vary != Scenario.Exploration.Part.allCases { values.append(entry("vary", brackets(parts))) }
            entries.append(entry("explore", braces(values)))
        }
        return .mapping(entries, isFlow: false)
    }

    private static func about(_ text: String) -> YAMLTree {
        text.count > 80 || text.hasSuffix("\n") ? .paragraph(text) : .text(text)
    }

    private static func invariants(_ invariants: Scenario.Invariants) -> YAMLTree {
        func names(_ key: String, _ members: [Scenario.Invariant]) -> [YAMLTree.Entry] {
            members.isEmpty ? [] : [entry(key, brackets(members.map { .word($0.rawValue) }))]
        }
        return braces(names("add", invariants.added) + names("drop", invariants.dropped))
    }

    // MARK: The server and the devices

    private static func server(_ scenario: Scenario) -> YAMLTree? {
        var entries: [YAMLTree.Entry] = []
        if scenario.contract != "compat" { entries.append(entry("contract", .word(scenario.contract))) }
        if let life = scenario.tokenLife { entries.append(entry("token-life", life)) }
        if !scenario.notes.isEmpty {
            let notes = scenario.notes.map { note in
                var values = content(title: note.title, text: note.text)
                if note.revision != 1 { values.append(entry("revision", note.revision)) }
                return entry(note.row, braces(values))
            }
            entries.append(entry("notes", .mapping(notes, isFlow: false)))
        }
        if !scenario.records.isEmpty {
            let records = scenario.records.map { record in
                var values = [entry("kind", .word(record.kind))]
                if let parent = record.parent { values.append(entry("in", .word(parent))) }
                values += content(title: record.title, text: record.text)
                if record.isApproved { values.append(entry("approved", .word("true"))) }
                if !record.fields.isEmpty { values.append(entry("with", texts(record.fields))) }
                return entry(record.row, braces(values))
            }
            entries.append(entry("records", .mapping(records, isFlow: false)))
        }
        if let fill = scenario.fill {
            var values = [entry("notes", fill.notes)]
            if fill.bytes != 100 { values.append(entry("bytes", fill.bytes)) }
            entries.append(entry("fill", braces(values)))
        }
        switch scenario.server {
        case .builtIn: break
        case .run(let program, let ready):
            entries.append(entry("run", brackets(program.arguments.map { .text($0) })))
            if let ready { entries.append(entry("ready", ready)) }
        case .url(let url): entries.append(entry("url", url))
        }
        let isShort = scenario.notes.isEmpty && scenario.records.isEmpty
        return entries.isEmpty ? nil : .mapping(entries, isFlow: isShort)
    }

    /// Returns the keys of a title and a text.
    static func content(title: String?, text: String?) -> [YAMLTree.Entry] {
        (title.map { [entry("title", $0)] } ?? []) + (text.map { [entry("text", $0)] } ?? [])
    }

    private static func policy(_ settings: Scenario.ClientSettings) -> [YAMLTree.Entry] {
        var entries: [YAMLTree.Entry] = []
        if let delay = settings.firstDelay { entries.append(entry("first-delay", delay)) }
        if let delay = settings.longestDelay { entries.append(entry("longest-delay", delay)) }
        if let interval = settings.poll { entries.append(entry("poll", interval)) }
        if let timeout = settings.timeout { entries.append(entry("timeout", timeout)) }
        if let bytes = settings.largeBytes { entries.append(entry("large", .word("\(bytes)"))) }
        return entries
    }

    private static func device(_ device: Scenario.Device) -> YAMLTree {
        var entries = [entry("user", device.user)]
        if !device.startsSynced { entries.append(entry("starts", .word("empty"))) }
        if let delay = device.restartsAfter { entries.append(entry("restarts", delay)) }
        if !device.isRestored { entries.append(entry("restored", .word("false"))) }
        switch device.client {
        case .reference: break
        case .legacy: entries.append(entry("client", .word("legacy")))
        case .app(let app): entries.append(entry("client", .word(app.rawValue)))
        case .run(let program, let adapter):
            var values = [entry("run", brackets(program.arguments.map { .text($0) }))]
            if adapter != .lines { values.append(entry("adapter", .word(adapter.rawValue))) }
            entries.append(entry("client", braces(values)))
        }
        if !device.settings.isEmpty { entries.append(entry("settings", texts(device.settings))) }
        return braces(entries)
    }

    private static func texts(_ arguments: [Scenario.Argument]) -> YAMLTree {
        braces(arguments.map { entry($0.name, $0.value) })
    }

    // MARK: Networks

    private static func network(_ device: Scenario.Device) throws(UnsupportedError) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        for part in device.network { entries.append(entry(QuantityText.time(part.start), try networkEntry(part))) }
        return .mapping(entries, isFlow: entries.count == 1)
    }

    private static func networkEntry(_ part: Scenario.NetworkEntry) throws(UnsupportedError) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        switch part.phase {
        case .hold(let link):
            switch try self.link(link) {
            case .word(let name):
                if part.signalling == .always, part.interface == nil { return .word(name) }
                entries = [entry("link", .word(name))]
            case .mapping(let values, _): entries = values
            case .text, .paragraph, .list: break
            }
        case .flap(let intervals, let jitter):
            var items: [YAMLTree] = []
            for interval in intervals {
                let time = YAMLTree.word(QuantityText.time(interval.length))
                items.append(braces([YAMLTree.Entry(key: try self.link(interval.link), value: time)]))
            }
            entries = [entry("flap", brackets(items))]
            if jitter != .zero { entries.append(entry("jitter", .word(QuantityText.percentage(jitter)))) }
        case .ramp: throw UnsupportedError(description: "the networks of scenarios have no ramps")
        }
        var settings: [YAMLTree.Entry] = []
        switch part.signalling {
        case .always: break
        case .never: settings.append(entry("signalled", .word("false")))
        case .sometimes: settings.append(entry("signalled", .word("sometimes")))
        }
        if let interface = part.interface { settings.append(entry("interface", .word(interface.rawValue))) }
        // In the order of the format, these keys come before those of the conditions.
        return braces(part.isConditions(entries) ? settings + entries : entries + settings)
    }

    /// Returns the name of a profile with these conditions, or a mapping of the conditions.
    static func link(_ link: Timeline.NamedConditions) throws(UnsupportedError) -> YAMLTree {
        let profile = ProfileCatalogue.builtIn.first { $0.id == link.name }
        if let profile, profile.conditions == link.conditions { return .word(profile.id) }
        let conditions = link.conditions
        var entries = [
            entry("down", try direction(conditions.down, link.name)),
            entry("up", try direction(conditions.up, link.name)),
        ]
        if conditions.dnsDelay != .zero {
            entries.append(entry("dns-delay", .word(QuantityText.delay(conditions.dnsDelay))))
        }
        if conditions.connectionPolicy != .open {
            entries.append(entry("access", .word(conditions.connectionPolicy.rawValue)))
        }
        return braces(entries)
    }

    private static func direction(
        _ conditions: DirectionConditions, _ name: String
    ) throws(UnsupportedError) -> YAMLTree {
        if conditions.trace != nil {
            throw UnsupportedError(description: "the link '\(name)' has a trace, which is a file of its own")
        }
        var entries: [YAMLTree.Entry] = []
        func add(_ key: String, _ word: String) { entries.append(entry(key, .word(word))) }
        if let rate = conditions.rate { add("rate", "\(rate)") }
        if conditions.delay != .zero { add("delay", QuantityText.delay(conditions.delay)) }
        if let jitter = conditions.jitter { add("jitter", QuantityText.jitter(jitter)) }
        if conditions.loss != .zero { add("loss", QuantityText.percentage(conditions.loss)) }
        if let bursts = conditions.bursts { add("bursts", QuantityText.bursts(bursts)) }
        if let numbers = conditions.lostPackets {
            entries.append(entry("lose-packets", "\(numbers)"))
        }
        if conditions.duplication != .zero { add("duplicate", QuantityText.percentage(conditions.duplication)) }
        if conditions.reordering != .zero { add("reorder", QuantityText.percentage(conditions.reordering)) }
        if conditions.queue != .standard { add("queue", "\(conditions.queue)") }
        return braces(entries)
    }
}

extension Scenario.NetworkEntry {
    /// Whether the keys of an entry are those of conditions.
    fileprivate func isConditions(_ entries: [YAMLTree.Entry]) -> Bool {
        guard case .word(let first)? = entries.first?.key else { return false }
        return first == "down"
    }
}
