internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Reads the server, devices, writers and networks.
extension ScenarioReader {
    func readServer(_ node: Node?, _ scenario: inout Scenario) {
        guard let node, let fields = fields(node, "server") else { return }
        if let contract = fields.choice("contract") { scenario.contract = contract }
        if let node = fields["token-life"], let life = time(node) {
            scenario.tokenLife = life
            if life < .seconds(1) {
                reader.report("expected a time of at least 1 s", at: node)
            } else if scenario.contract == "orig" || fields["run"] != nil || fields["url"] != nil {
                reader.report("only the built-in server has tokens, with the contracts compat and strict", at: node)
            }
        }
        for (key, value) in entries(fields["notes"], expected: "a mapping from names to notes") {
            guard let row = newRow(key), let note = self.fields(value, "note") else { continue }
            rows.insert(row)
            scenario.notes.append(
                Scenario.SeedNote(
                    row: row, title: note.text("title"), text: note.text("text"),
                    revision: note.integer("revision") ?? 1))
        }
        readRecords(fields["records"], &scenario)
        if let node = fields["fill"], let fill = self.fields(node, "fill"), let count = fill.integer("notes") {
            scenario.fill = Scenario.Fill(notes: count, bytes: fill.size("bytes") ?? 100)
            for row in scenario.fill?.rows ?? [] where !rows.insert(row).inserted {
                reader.report("the generated note '\(row)' is also in 'notes'; rename one", at: node)
            }
        }
        if fields["run"] != nil {
            scenario.server = .run(program(fields), ready: fields["ready"].flatMap(readiness))
            if let url = fields["url"] { reader.report("'server' has either 'run' or 'url'", at: url) }
        } else if let node = fields["url"], let url = text(node) {
            guard ServerURL(url) != nil else {
                return reader.report("'\(url.prefix(40))': expected a URL such as 'http://localhost:8000'", at: node)
            }
            scenario.server = .url(url)
        }
    }

    private func readRecords(_ node: Node?, _ scenario: inout Scenario) {
        for (key, value) in entries(node, expected: "a mapping from names to records") {
            guard let row = newRow(key), let fields = self.fields(value, "record") else { continue }
            guard rows.insert(row).inserted else {
                reader.report("'\(row)' is defined twice", at: key)
                continue
            }
            guard let name = fields.choice("kind"), let kind = Self.kind(name) else { continue }
            var parent: String?
            if let node = fields["in"] {
                parent = text(node)
                let possible = scenario.records.filter { $0.kind == kind.parent }.map(\.row)
                if kind.parent == nil {
                    reader.report("a record of the kind '\(name)' has no 'in'", at: node)
                } else if let parent, !possible.contains(parent) {
                    reader.report(
                        "no record of the kind '\(kind.parent ?? "")' is called '\(parent.prefix(40))'"
                            + "\(NearestName.hint(parent, in: Set(possible))); a record comes before those in it",
                        at: node)
                }
            } else if let needed = kind.parent {
                reader.report("a record of the kind '\(name)' needs its '\(needed)', such as 'in: r1'", at: value)
            }
            let isApproved = fields.boolean("approved") ?? false
            if isApproved, name != "expense" { reader.report("only an expense has 'approved'", at: fields["approved"]) }
            let more = arguments(fields["with"], isHeader: false)
            for argument in more where !kind.fields.contains(argument.name) {
                let known = kind.fields.isEmpty ? "none" : kind.fields.joined(separator: ", ")
                reader.report(
                    "a record of the kind '\(name)' has no field '\(argument.name.prefix(40))' (known: \(known))",
                    at: fields["with"])
            }
            scenario.records.append(
                Scenario.SeedRecord(
                    row: row, kind: name, parent: parent, title: fields.text("title"), text: fields.text("text"),
                    isApproved: isApproved, fields: more))
        }
    }

    private static func kind(_ name: String) -> AppVocabulary.RecordKind? {
        for app in Scenario.App.allCases {
            if let kind = app.vocabulary.kinds.first(where: { $0.name == name }) { return kind }
        }
        return nil
    }

    /// Returns the settings of an app; reports what it does not have.
    private func settings(_ node: Node?, of client: Scenario.Device.Client) -> [Scenario.Argument] {
        guard let node else { return [] }
        guard let app = client.app?.vocabulary else {
            reader.report("only an app has 'settings'", at: node)
            return []
        }
        return arguments(node, isHeader: false).map { (argument: Scenario.Argument) -> Scenario.Argument in
            guard let setting = app.settings.first(where: { $0.name == argument.name }) else {
                let known = app.settings.isEmpty ? "none" : app.settings.map(\.name).joined(separator: ", ")
                reader.report(
                    "the \(app.title) has no setting '\(argument.name.prefix(40))' (known: \(known))", at: node)
                return argument
            }
            switch setting.values {
            case .words(let words) where !words.contains(argument.value):
                reader.report(
                    "the setting '\(setting.name)' is '\(argument.value.prefix(40))'; expected "
                        + words.joined(separator: " or "), at: node)
            case .words: break
            case .size:
                do throws(Quantity.ParseError) {
                    return Scenario.Argument(name: argument.name, value: "\(try Quantity.size(argument.value))")
                } catch {
                    reader.report("the setting '\(setting.name)': \(error.message)", at: node)
                }
            case .time:
                do throws(Quantity.ParseError) {
                    let milliseconds = try Quantity.time(argument.value).count / 1_000_000
                    return Scenario.Argument(name: argument.name, value: "\(milliseconds)ms")
                } catch {
                    reader.report("the setting '\(setting.name)': \(error.message)", at: node)
                }
            }
            return argument
        }
    }

    func readPolicy(_ node: Node?, _ scenario: inout Scenario) {
        guard let node, let fields = fields(node, "policy") else { return }
        var settings = Scenario.ClientSettings()
        settings.firstDelay = positive("first-delay", fields)
        settings.longestDelay = positive("longest-delay", fields)
        settings.poll = positive("poll", fields)
        settings.timeout = positive("timeout", fields)
        settings.largeBytes = fields.size("large")
        let published = ClientPolicy()
        let first = settings.firstDelay ?? published.firstDelay
        let longest = settings.longestDelay ?? published.longestDelay
        if longest < first {
            reader.report(
                "'longest-delay' is \(TimeFormat.short(longest)); expected at least 'first-delay', "
                    + "\(TimeFormat.short(first))", at: fields["longest-delay"] ?? node)
        }
        scenario.policy = settings
    }

    /// The shortest delay and timeout.
    private static let delayMin = Nanoseconds.milliseconds(10)

    private func positive(_ key: String, _ fields: ScenarioFields) -> Nanoseconds? {
        guard let node = fields[key], let time = fields.time(key) else { return nil }
        if time < Self.delayMin {
            reader.report("'\(key)': expected a time of at least \(TimeFormat.duration(Self.delayMin))", at: node)
        }
        return time
    }

    func readWriters(_ node: Node?, _ scenario: inout Scenario) {
        let writers = entries(node, expected: "names with users, such as 'W: { user: ada }'")
        if writers.count > ScenarioFormat.writersMax {
            return reader.report("\(writers.count) writers; at most \(ScenarioFormat.writersMax) are allowed", at: node)
        }
        for (key, value) in writers {
            guard let name = actorName(key), let fields = fields(value, "writer") else { continue }
            writerNames.append(name)
            scenario.writers.append(Scenario.Writer(name: name, user: fields.text("user") ?? ""))
        }
    }

    /// Reads the devices with their networks. Returns whether the rest of the scenario can be read.
    func readDevices(_ node: Node?, network: Node?, _ scenario: inout Scenario) -> Bool {
        let devices = entries(node, expected: "names with users, such as 'A: { user: ada }'")
        if devices.count > ScenarioFormat.devicesMax {
            reader.report("\(devices.count) devices; at most \(ScenarioFormat.devicesMax) are allowed", at: node)
            return false
        }
        var found: [(name: String, fields: ScenarioFields, key: Node)] = []
        for (key, value) in devices {
            guard let name = actorName(key), let fields = fields(value, "device") else { continue }
            deviceNames.append(name)
            found.append((name, fields, key))
        }
        var networks: [String: [Scenario.NetworkEntry]] = [:]
        for (key, value) in entries(network, expected: "a mapping from devices to times and links") {
            guard let name = knownDevice(key) else { continue }
            networks[name] = networkEntries(value)
        }
        for device in found {
            if networks[device.name] == nil, let parent = network ?? node {
                reader.report("'network' has no entry for \(device.name)", at: parent)
            }
            let client = client(device.fields["client"])
            if case .run = client { programNames.insert(device.name) }
            if let app = client.app { apps[device.name] = app }
            scenario.devices.append(
                Scenario.Device(
                    name: device.name, user: device.fields.text("user") ?? "",
                    startsSynced: device.fields.choice("starts") != "empty", client: client,
                    settings: settings(device.fields["settings"], of: client), network: networks[device.name] ?? [],
                    restartsAfter: device.fields.time("restarts"),
                    isRestored: device.fields.boolean("restored") ?? true, location: location(device.key)))
        }
        return true
    }

    private func client(_ node: Node?) -> Scenario.Device.Client {
        guard let node else { return .reference }
        guard node.mapping != nil else {
            switch oneOf(node, ScenarioFormat.clients) {
            case "legacy"?: return .legacy
            case let name?: return Scenario.App(rawValue: name).map { .app($0) } ?? .reference
            case nil: return .reference
            }
        }
        guard let fields = fields(node, "client") else { return .reference }
        return .run(program(fields), adapter: fields.choice("adapter") == "none" ? .none : .lines)
    }

    private func actorName(_ key: Node) -> String? {
        guard let name = key.scalar?.string else {
            reader.report("expected a name", at: key)
            return nil
        }
        let isName = name.first.map { $0.isASCII && $0.isUppercase } ?? false
        guard isName, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else {
            reader.report(
                "'\(name.prefix(40))': expected a name of ASCII letters and digits that begins with a capital letter, such as 'A'",
                at: key)
            return nil
        }
        if deviceNames.contains(name) || writerNames.contains(name) {
            reader.report("'\(name)' is defined twice", at: key)
        }
        return name
    }

    // MARK: The network

    private func networkEntries(_ node: Node) -> [Scenario.NetworkEntry] {
        let timeline = TimelineReader(reader)
        var found: [Scenario.NetworkEntry] = []
        var last: Nanoseconds?
        for (key, value) in entries(node, expected: "a mapping from times to links, such as '20s: 100-loss'") {
            var signalling = Scenario.NetworkEntry.Signalling.always
            var interface: Scenario.NetworkEntry.Interface?
            var plain = value
            if let parts = value.mapping, let fields = fields(value, "network") {
                switch fields.choice("signalled") {
                case "false"?: signalling = .never
                case "sometimes"?: signalling = .sometimes
                default: break
                }
                interface = fields.choice("interface").flatMap(Scenario.NetworkEntry.Interface.init(rawValue:))
                // The rest is a phase of a timeline; unknown keys have been reported.
                let known = ScenarioFormat.object("network").keys.map(\.name)
                plain = .mapping(
                    parts.without { $0 == "signalled" || $0 == "interface" || !known.contains($0) })
            }
            let start = time(key)
            if let start {
                if let last, start <= last {
                    reader.report("expected a time later than the entry before", at: key)
                } else if last == nil && start != .zero {
                    reader.report("the first entry must be at 0s", at: key)
                }
                last = start
            }
            guard let phase = timeline.phase(plain), let start else { continue }
            switch phase {
            case .hold(let link), .ramp(let link, _): links.insert(link.name)
            case .flap(let intervals, _): links.formUnion(intervals.map(\.link.name))
            }
            found.append(
                Scenario.NetworkEntry(
                    at: start, phase, signalling: signalling, interface: interface, location: location(key)))
        }
        if found.isEmpty, node.mapping?.isEmpty ?? false { reader.report("the first entry must be at 0s", at: node) }
        return found
    }
}
