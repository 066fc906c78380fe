internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Devices, writers and networks.
extension ScenarioFormat {
    static let actors: [Object] = [device.object, client.object, writer.object, network.object]

    /// The clients besides programs.
    static let clients: [(word: String, value: Scenario.Device.Client)] =
        [("reference", .reference), ("legacy", .legacy)] + Scenario.App.allCases.map { ($0.rawValue, .app($0)) }

    static let device = FormatMapping<Scenario.Device>(
        "device", "a device",
        [
            .required("user", \.user, .text, "The user whose notes the client syncs."),
            .key(
                "starts", \.startsSynced, .words([("synced", true), ("empty", false)]), default: true,
                "Whether the client has fetched the server's notes before 0 s."),
            .key(
                "client", \.client,
                .words(clients).orMapping(program) { client in clients.contains { $0.value == client } },
                default: .reference,
                "The client: Slowlane's (`reference`), one with eight known defects (`legacy`), an "
                    + "[app](../explanation/patterns.md), or a program."),
            .key(
                "settings", \.settings, .arguments, default: [], as: "none",
                "Settings of a client that is an [app](../explanation/patterns.md#scenarios)."),
            .optional(
                "restarts", \.restartsAfter, .time, default: "never",
                "The time after which a client that was killed starts again by itself. Its actions wait for that."),
            .key(
                "restored", \.isRestored, .boolean, default: true,
                "Whether the restore phase restores the link and starts the client. The others must converge without a "
                    + "device that is not restored."),
        ], blank: { Scenario.Device(name: "", user: "", startsSynced: true, network: [], location: $0) },
        check: { device, fields in
            if let node = fields["settings"] {
                device.settings = fields.reader.settings(device.settings, of: device.client, at: node)
            }
            return true
        })

    /// A client that is a program.
    private struct ProgramClient: Sendable {
        var program = Scenario.Program([])
        var adapter = Scenario.Device.Adapter.lines
    }

    private static let program = FormatCodec.object(client).converted(
        to: { Scenario.Device.Client.run($0.program, adapter: $0.adapter) },
        from: { client in
            guard case .run(let program, let adapter) = client else { return ProgramClient() }
            return ProgramClient(program: program, adapter: adapter)
        })

    private static let client = FormatMapping<ProgramClient>(
        "client", "'client'",
        [
            .required(
                "run", \.program, .program,
                "The program and its arguments. A relative path begins at the folder of the file."),
            .key(
                "adapter", \.adapter, .word, default: .lines,
                "How the runner talks to the program: with JSON lines, or not at all."),
        ], blank: { _ in ProgramClient() })

    static let writer = FormatMapping<Scenario.Writer>(
        "writer", "a writer", [.required("user", \.user, .text, "The user whose notes the writer changes.")],
        blank: { _ in Scenario.Writer(name: "", user: "") })

    // MARK: Networks

    static let network = FormatMapping<Scenario.NetworkEntry>(
        "network", "an entry of 'network'",
        [
            // The keys of conditions are those of timelines, whose reader reads them together.
            phaseKey("link", .link, read: { $0.reader.readPhase($0, &$1) }, "The link."),
            phaseKey(
                "flap", .list(.map(.link, .time), atLeast: 1, atMost: 100),
                "Links with durations, which alternate: `[{ 3g: 8s }, { 100-loss: 2s }]`."),
            phaseKey("jitter", .percentage, default: "0 %", "With `flap`: the random part of each duration."),
            .key(
                "signalled", \.signalling,
                .words([("true", .always), ("false", .never), ("sometimes", .sometimes)]), default: .always,
                "Whether the operating system reports the interface as down in an outage and while offline."),
            .optional(
                "interface", \.interface, .word, default: "unchanged",
                "The kind of interface that the client sees: `cellular` is metered, `wifi` and `wired` are not."),
            phaseKey("down", .anything, "Conditions of the downlink, in place of a profile."),
            phaseKey("up", .anything, "Conditions of the uplink, in place of a profile."),
            phaseKey(
                "dns-delay", .text, default: "0 ms", "Conditions in place of a profile: the delay of each handshake."),
            phaseKey(
                "access", .text, default: "open", "Conditions in place of a profile: the effect on new connections."),
        ],
        blank: {
            Scenario.NetworkEntry(
                at: .zero, .hold(Timeline.NamedConditions("", .clear)), signalling: .always, location: $0)
        })

    private static func phaseKey(
        _ name: String, _ shape: Shape, default text: String? = nil,
        read: @escaping @Sendable (ScenarioFields, inout Scenario.NetworkEntry) -> Bool = { _, _ in true },
        _ about: String
    ) -> FormatKey<Scenario.NetworkEntry> {
        FormatKey(
            Key(name, shape, default: text, about), read: read,
            write: { entry in ScenarioWriter.phase(entry.phase).first { $0.key == name }?.value })
    }
}

extension FormatCodec where Value == Scenario.NetworkEntry {
    /// A link, or a mapping with one.
    static var networkEntry: Self {
        let network = ScenarioFormat.network
        return Self(
            .either([.link, .object(network.object.name)]),
            read: { node, reader in
                if node.mapping != nil { return network.read(node, reader) }
                return TimelineReader(reader.reader).phase(node).map {
                    Scenario.NetworkEntry(at: .zero, $0, signalling: .always)
                }
            },
            write: { entry in
                let entries = network.entries(entry)
                // A link without settings.
                if entries.count == 1, case .word("link") = entries[0].key { return entries[0].value }
                return ScenarioWriter.braces(entries)
            })
    }
}
