internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Reads the server, devices, writers and networks.
extension ScenarioReader {
    /// Reports a lifetime of tokens and a program that do not go with the other settings of the server.
    func checkServer(_ scenario: Scenario, _ fields: ScenarioFields) -> Bool {
        if let node = fields["token-life"], let life = scenario.tokenLife {
            if life < .seconds(1) {
                reader.report("expected a time of at least 1 s", at: node)
            } else if scenario.contract == "orig" || fields["run"] != nil || fields["url"] != nil {
                reader.report("only the built-in server has tokens, with the contracts compat and strict", at: node)
            }
        }
        for row in scenario.fill?.rows ?? [] where !rows.insert(row).inserted {
            reader.report("the generated note '\(row)' is also in 'notes'; rename one", at: fields["fill"])
        }
        if let node = fields["url"], fields["run"] != nil {
            reader.report("'server' has either 'run' or 'url'", at: node)
        } else if case .url(let url) = scenario.server, ServerURL(url) == nil {
            reader.report("'\(url.prefix(40))': expected a URL such as 'http://localhost:8000'", at: fields["url"])
        }
        checkTLS(of: scenario, fields)
        return true
    }

    /// Reports TLS that does not go with the other settings of the server.
    private func checkTLS(of scenario: Scenario, _ fields: ScenarioFields) {
        var url: ServerURL?
        if case .url(let text) = scenario.server { url = ServerURL(text) }
        if let url, url.isSecure, !url.isLoopback {
            reader.report(
                "'https' is possible for servers of this machine only (localhost, 127.0.0.1, ::1): the programs connect to "
                    + "a proxy here, and verify the name", at: fields["url"])
        }
        if let node = fields["ready"], fields["tls"] != nil {
            reader.report("a server with 'tls' is ready when its port accepts connections; leave 'ready' out", at: node)
        }
        guard let node = fields["tls"], url?.isSecure != true, fields["run"] == nil else { return }
        reader.report("'tls' needs a server with 'run', or with a 'url' that begins with https://", at: node)
    }

    /// Completes the settings of TLS, and reports those that exclude each other.
    func checkTLS(_ tls: inout Scenario.ServerTLS, _ fields: ScenarioFields) -> Bool {
        tls.folder = folder
        if tls.isInsecure, tls.authorities != nil {
            reader.report(
                "'insecure' accepts any certificate, and 'ca' has no effect; give one of them", at: fields["ca"])
        }
        return true
    }

    func notes(_ node: Node) -> [Scenario.SeedNote] {
        entries(node, expected: "a mapping from names to notes").compactMap { key, value in
            guard let row = newRow(key), var note = ScenarioFormat.note.read(value, self) else { return nil }
            rows.insert(row)
            note.row = row
            return note
        }
    }

    func records(_ node: Node) -> [Scenario.SeedRecord] {
        var records: [Scenario.SeedRecord] = []
        for (key, value) in entries(node, expected: "a mapping from names to records") {
            guard let row = newRow(key), let fields = fields(value, ScenarioFormat.record.object) else { continue }
            guard rows.insert(row).inserted else {
                reader.report("'\(row)' is defined twice", at: key)
                continue
            }
            guard var record = ScenarioFormat.record.read(fields) else { continue }
            record.row = row
            check(record, fields, after: records)
            records.append(record)
        }
        return records
    }

    /// Reports what a kind of record does not have, and an unknown parent.
    private func check(_ record: Scenario.SeedRecord, _ fields: ScenarioFields, after earlier: [Scenario.SeedRecord]) {
        guard let kind = Self.kind(record.kind) else { return }
        if let node = fields["in"] {
            let possible = earlier.filter { kind.parents.contains($0.kind) }.map(\.row)
            if kind.parents.isEmpty {
                reader.report("a record of the kind '\(kind.name)' has no 'in'", at: node)
            } else if let parent = record.parent, !possible.contains(parent) {
                reader.report(
                    "no record of the kind '\(kind.parents.joined(separator: "' or '"))' is called '\(parent.prefix(40))'"
                        + "\(NearestName.hint(parent, in: Set(possible))); a record comes before those in it", at: node)
            }
        } else if kind.needsParent, let needed = kind.parents.first {
            fields.report("a record of the kind '\(kind.name)' needs its '\(needed)', such as 'in: r1'")
        }
        if record.isApproved, kind.name != "expense" {
            reader.report("only an expense has 'approved'", at: fields["approved"])
        }
        for argument in record.fields where !kind.fields.contains(argument.name) {
            let known = kind.fields.isEmpty ? "none" : kind.fields.joined(separator: ", ")
            reader.report(
                "a record of the kind '\(kind.name)' has no field '\(argument.name.prefix(40))' (known: \(known))",
                at: fields["with"])
        }
    }

    private static func kind(_ name: String) -> AppVocabulary.RecordKind? {
        for app in Scenario.App.allCases {
            if let kind = app.vocabulary.kinds.first(where: { $0.name == name }) { return kind }
        }
        return nil
    }

    /// Returns the settings of an app; reports what it does not have.
    func settings(
        _ settings: [Scenario.Argument], of client: Scenario.Device.Client, at node: Node
    ) -> [Scenario.Argument] {
        guard let app = client.app?.vocabulary else {
            reader.report("only an app has 'settings'", at: node)
            return []
        }
        return settings.map { (argument: Scenario.Argument) -> Scenario.Argument in
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

    /// The shortest delay and timeout.
    private static let delayMin = Nanoseconds.milliseconds(10)

    /// Reports delays that are too short, and a longest delay below the first one.
    func check(_ settings: Scenario.ClientSettings, _ fields: ScenarioFields) -> Bool {
        let times = [
            ("first-delay", settings.firstDelay), ("longest-delay", settings.longestDelay), ("poll", settings.poll),
            ("timeout", settings.timeout),
        ]
        for (key, time) in times {
            guard let time, time < Self.delayMin else { continue }
            let least = TimeFormat.duration(Self.delayMin)
            reader.report("'\(key)': expected a time of at least \(least)", at: fields[key])
        }
        let published = ClientPolicy()
        let first = settings.firstDelay ?? published.firstDelay
        let longest = settings.longestDelay ?? published.longestDelay
        if longest < first {
            reader.report(
                "'longest-delay' is \(TimeFormat.short(longest)); expected at least 'first-delay', "
                    + "\(TimeFormat.short(first))", at: fields["longest-delay"] ?? fields.node)
        }
        return true
    }

    func readWriters(_ node: Node?, _ scenario: inout Scenario) -> Bool {
        let writers = entries(node, expected: "names with users, such as 'W: { user: ada }'")
        if writers.count > ScenarioFormat.writersMax {
            reader.report("\(writers.count) writers; at most \(ScenarioFormat.writersMax) are allowed", at: node)
            return true
        }
        for (key, value) in writers {
            guard let name = actorName(key), let fields = fields(value, ScenarioFormat.writer.object) else { continue }
            writerNames.append(name)
            var writer = ScenarioFormat.writer.readParts(fields).value
            writer.name = name
            scenario.writers.append(writer)
        }
        return true
    }

    /// Reads the devices. Returns whether the rest of the scenario can be read.
    func readDevices(_ node: Node?, _ scenario: inout Scenario) -> Bool {
        let devices = entries(node, expected: "names with users, such as 'A: { user: ada }'")
        if devices.count > ScenarioFormat.devicesMax {
            reader.report("\(devices.count) devices; at most \(ScenarioFormat.devicesMax) are allowed", at: node)
            return false
        }
        for (key, value) in devices {
            guard let name = actorName(key), let fields = fields(value, ScenarioFormat.device.object) else { continue }
            deviceNames.append(name)
            var device = ScenarioFormat.device.readParts(fields).value
            if case .run = device.client { programNames.insert(name) }
            if let app = device.client.app { apps[name] = app }
            device.name = name
            device.location = location(key)
            scenario.devices.append(device)
        }
        return true
    }

    /// Reads the networks of the devices.
    func readNetworks(_ fields: ScenarioFields, _ scenario: inout Scenario) {
        let network = fields["network"]
        var networks: [String: [Scenario.NetworkEntry]] = [:]
        for (key, value) in entries(network, expected: "a mapping from devices to times and links") {
            guard let name = knownDevice(key) else { continue }
            networks[name] = networkEntries(value)
        }
        for index in scenario.devices.indices {
            let name = scenario.devices[index].name
            if networks[name] == nil, let parent = network ?? fields["devices"] {
                reader.report("'network' has no entry for \(name)", at: parent)
            }
            scenario.devices[index].network = networks[name] ?? []
        }
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
        let codec = FormatCodec.networkEntry
        var found: [Scenario.NetworkEntry] = []
        var last: Nanoseconds?
        for (key, value) in entries(node, expected: "a mapping from times to links, such as '20s: 100-loss'") {
            let start = time(key)
            if let start {
                if let last, start <= last {
                    reader.report("expected a time later than the entry before", at: key)
                } else if last == nil && start != .zero {
                    reader.report("the first entry must be at 0s", at: key)
                }
                last = start
            }
            guard var entry = codec.read(value, self), let start else { continue }
            switch entry.phase {
            case .hold(let link), .ramp(let link, _): links.insert(link.name)
            case .flap(let intervals, _): links.formUnion(intervals.map(\.link.name))
            }
            entry.start = start
            entry.location = location(key)
            found.append(entry)
        }
        if found.isEmpty, node.mapping?.isEmpty ?? false { reader.report("the first entry must be at 0s", at: node) }
        return found
    }

    /// Reads the keys of an entry that are those of a timeline.
    func readPhase(_ fields: ScenarioFields, _ entry: inout Scenario.NetworkEntry) -> Bool {
        guard let mapping = fields.node.mapping else { return false }
        // Unknown keys have been reported.
        let known = fields.object.keys.map(\.name).filter { $0 != "signalled" && $0 != "interface" }
        guard let phase = TimelineReader(reader).phase(.mapping(mapping.without { !known.contains($0) })) else {
            return false
        }
        entry.phase = phase
        return true
    }
}
