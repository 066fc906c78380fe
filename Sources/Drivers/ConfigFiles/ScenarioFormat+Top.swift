internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// The file.
extension ScenarioFormat {
    static let top: [Object] =
        [
            scenario.object, Object("variant", "a variant", shared.map(\.entry)),
        ] + data + [policy.object, invariants.object, explore.object]

    static let scenario = FormatMapping<Scenario>(
        "scenario", "the scenario", [version, name, extends] + shared + [variants],
        blank: { _ in Scenario(name: "") }, check: { $1.reader.checkRestore($0, $1["restore"]) })

    private typealias TopKey = FormatKey<Scenario>

    private static let version = TopKey(
        Key("scenario", .version, required: true, "The version of the format."),
        read: { fields, _ in fields.reader.isVersion(fields["scenario"]) },
        write: { _ in .word(ScenarioFile.formatVersion) })

    private static let name = TopKey.required("name", \.name, .kebabCase, "The name, in kebab-case.")

    /// A key of which the loader of the file makes scenarios without it.
    private static func loaded(_ name: String, _ shape: Shape, _ about: String) -> TopKey {
        TopKey(Key(name, shape, about), read: { _, _ in true }, write: { _ in nil })
    }

    private static let extends = loaded(
        "extends", .path,
        "Another scenario file, relative to this file. Its keys apply unless this file has them; mappings are merged, "
            + "other values replaced, and `null` takes a key back. `name` and `variants` are not taken over.")

    private static let variants = loaded(
        "variants", .map(.variant, .object("variant")),
        "Changed keys by name. Each variant is a run of its own; mappings are merged, other values replace the "
            + "scenario's, and `null` takes a key of the scenario back, such as `5s: null`.")

    /// The keys of a file, without those that a variant cannot have.
    private static let shared: [FormatKey<Scenario>] = [
        .key(
            "about", \.about,
            FormatCodec(
                .text, read: { $1.text($0) },
                write: { $0.count > 80 || $0.hasSuffix("\n") ? .paragraph($0) : .text($0) }), default: "", as: "empty",
            "A description in a sentence or two. `run` prints it."),
        .key(
            "tags", \.tags, FormatCodec.kebabCase.list(0...50), default: [],
            "Words by which scenarios are selected."),
        .key(
            "seed", \.fileSeed, .seed, default: .number(1),
            "The random seed. Scenario and seed determine a simulated run. `commit` derives the seed from the commit "
                + "that is tested."),
        .key(
            "limit", \.limit, .time, default: .seconds(600),
            "The longest duration of the script. A longer run is aborted and fails."),
        .optional(
            "restore", \.restoreAt, .time, default: "when nothing more can happen",
            "The time at which the links are restored, even if requests are in flight. Earlier than `limit`."),
        TopKey(
            Key("server", .object("server"), "The server: its contract and its notes at the start."),
            read: { $0.reader.readServer($0["server"], &$1) },
            write: { scenario in
                let entries = server.entries(scenario)
                let isShort = scenario.notes.isEmpty && scenario.records.isEmpty
                return entries.isEmpty ? nil : .mapping(entries, isFlow: isShort)
            }),
        TopKey(
            Key(
                "devices", .map(.newDevice, .object("device")), required: true,
                "Clients, each behind a link of its own. At most \(devicesMax)."),
            read: { $0.reader.readDevices($0["devices"], &$1) },
            write: { ScenarioWriter.block($0.devices) { ScenarioWriter.entry($0.name, device.tree($0)) } }),
        TopKey(
            Key(
                "writers", .map(.newWriter, .object("writer")),
                "Clients without a link, such as a user in a browser. At most \(writersMax)."),
            read: { $0.reader.readWriters($0["writers"], &$1) },
            write: { scenario in
                if scenario.writers.isEmpty { return nil }
                return ScenarioWriter.block(scenario.writers) { ScenarioWriter.entry($0.name, writer.tree($0)) }
            }),
        .key(
            "policy", \.policy, .object(policy), default: Scenario.ClientSettings(), as: nil,
            "Delays and limits of the reference clients in place of the published ones."),
        TopKey(
            Key(
                "network", .map(.device, .map(.time, FormatCodec.networkEntry.shape)), required: true,
                "For each device, the links over time. The first entry is at `0s`; a link applies until the next entry."
            ),
            read: { fields, scenario in
                fields.reader.readNetworks(fields, &scenario)
                fields.reader.checkApps(fields, scenario)
                // The keys that follow refer to notes and marks of steps.
                fields.reader.collectNames(fields["steps"])
                return true
            },
            write: { ScenarioWriter.block($0.devices) { ScenarioWriter.entry($0.name, networkTree($0.network)) } }),
        .key(
            "faults", \.faults, FormatCodec.object(fault).list(0...1000, isFlow: false), default: [],
            "Effects on single exchanges: lost responses, delays, kills."),
        TopKey(
            Key(
                "steps", .list(.object("step"), atLeast: 0, atMost: 10_000), default: "[]",
                "Actions of devices and writers, and marks."),
            read: { fields, scenario in
                guard let node = fields["steps"], fields.hasLength("steps") else { return true }
                scenario.steps = fields.reader.list(node).compactMap { step.read($0, fields.reader) }
                return true
            }, write: { $0.steps.isEmpty ? nil : .list(stepTrees($0), isFlow: false) }),
        .key(
            "workload", \.workload, FormatCodec.object(workload).list(0...100, isFlow: false), default: [],
            "Actions at random times, drawn from the seed."),
        TopKey(
            Key("expect", .object("expect"), required: true, "The conditions that decide the verdict."),
            read: { fields, scenario in
                if let node = fields["expect"] { scenario.expectations = expect.read(node, fields.reader) ?? [] }
                return true
            }, write: { .mapping(expect.entries(expectations(of: $0)), isFlow: false) }),
        .key(
            "invariants", \.invariants, .invariants, default: .standard, as: "standard",
            "The properties that are checked in every run."),
        loaded(
            "matrix", .map(.parameter, .list(.anything, atLeast: 1, atMost: 100)),
            "Lists of values by parameter. The scenario runs once for each combination; a value `$name` stands for the "
                + "parameter's value."),
        .optional("explore", \.exploration, .object(explore), "What `slowlane explore` draws by default."),
    ]

    /// Returns the expectations with those of the end in the order of the devices, in which they are read.
    private static func expectations(of scenario: Scenario) -> [Expectation] {
        let last = scenario.devices.map(\.name).flatMap { name in
            scenario.expectations.filter { if case .finally(name, _) = $0.kind { true } else { false } }
        }
        return last + scenario.expectations.filter { if case .finally = $0.kind { false } else { true } }
    }

    private static func networkTree(_ network: [Scenario.NetworkEntry]) -> YAMLTree {
        let codec = FormatCodec.networkEntry
        let entries = network.map { ScenarioWriter.entry(QuantityText.time($0.start), codec.write($0)) }
        return .mapping(entries, isFlow: entries.count == 1)
    }

    private static func stepTrees(_ scenario: Scenario) -> [YAMLTree] {
        let writers = Set(scenario.writers.map(\.name))
        return scenario.steps.map { planned in
            let entry = planned.action.map { actor, action in
                ScenarioWriter.entry(
                    actor, (writers.contains(actor) ? writerAction : ScenarioFormat.action).tree(action))
            }
            return step.tree(planned, named: entry.map { [$0] } ?? [])
        }
    }

    // MARK: Settings of the run

    private static let policy = FormatMapping<Scenario.ClientSettings>(
        "policy", "'policy'",
        [
            .optional("first-delay", \.firstDelay, .time, default: "1s", "The delay after the first failure."),
            .optional(
                "longest-delay", \.longestDelay, .time, default: "60s",
                "The longest delay between attempts, at least `first-delay`."),
            .optional("poll", \.poll, .time, default: "60s", "The interval between index fetches."),
            .optional(
                "timeout", \.timeout, .time, default: "10s to connect, 30s for the response",
                "The time without progress after which an exchange fails. Three times this time is the limit of a whole exchange."
            ),
            .optional(
                "large", \.largeBytes, .size, default: "16KB",
                "The size from which a change is sent on a connection of its own: a number of bytes, or `2KB`."),
        ], blank: { _ in Scenario.ClientSettings() }, check: { $1.reader.check($0, $1) })

    fileprivate static let invariants = FormatMapping<Scenario.Invariants>(
        "invariants", "'invariants'",
        [
            .key(
                "add", \.added, FormatCodec<Scenario.Invariant>.invariant.list(0...18), default: [],
                "Invariants in addition to the standard set."),
            .key(
                "drop", \.dropped, FormatCodec<Scenario.Invariant>.invariant.list(0...18), default: [],
                "Invariants of the standard set that are not checked."),
        ], blank: { _ in .standard }, check: { $1.reader.check($0, $1) })

    private static let explore = FormatMapping<Scenario.Exploration>(
        "explore", "'explore'",
        [
            .required("seeds", \.seeds, .integer(1...numberMax), "The number of seeds."),
            .key(
                "vary", \.vary, FormatCodec<Scenario.Exploration.Part>.word.list(1...4),
                default: Scenario.Exploration.Part.allCases, as: "all",
                "The parts that are drawn for each seed: actions of users and kills, links, faults, and contract and "
                    + "policy."),
            FormatKey(
                Key(
                    "expect", .object("expect"), default: "the `sometimes` of the scenario",
                    "Further expectations, which hold for any drawn actions. Each `sometimes` is reached by at least one seed."
                ),
                read: { fields, exploration in
                    if let node = fields["expect"] { exploration.expectations = expect.read(node, fields.reader) ?? [] }
                    return true
                },
                write: { exploration in
                    let entries = expect.entries(exploration.expectations)
                    return entries.isEmpty ? nil : .mapping(entries, isFlow: false)
                }),
        ], blank: { _ in Scenario.Exploration(seeds: 0, vary: Scenario.Exploration.Part.allCases) })
}

/// The random seed in a file.
private enum FileSeed: Hashable, Sendable {
    case commit
    case number(UInt64)
}

extension Scenario {
    fileprivate var fileSeed: FileSeed {
        get { seedOrigin == .commit ? .commit : .number(seed) }
        set {
            switch newValue {
            case .commit: seedOrigin = .commit
            case .number(let number): seed = number
            }
        }
    }
}

extension FormatCodec where Value == FileSeed {
    fileprivate static var seed: Self {
        Self(
            .either([.integer(0...ScenarioFormat.seedMax), .choice(["commit"])]),
            read: { node, reader in
                if node.scalar?.string == "commit" { return .commit }
                return reader.number(node, "a whole number, or commit", max: ScenarioFormat.seedMax)
                    .map { .number(UInt64($0)) }
            },
            write: { seed in
                switch seed {
                case .commit: .word("commit")
                case .number(let number): .word("\(number)")
                }
            })
    }
}

extension FormatCodec where Value == Scenario.Invariant {
    fileprivate static var invariant: Self {
        Self(.invariant, read: { $1.invariant($0) }, write: { .word($0.rawValue) })
    }
}

extension FormatCodec where Value == Scenario.Invariants {
    /// The name of a set, or changes of the standard one.
    fileprivate static var invariants: Self {
        let names = Self.words([("standard", .standard), ("all", .all)])
        return names.orMapping(.object(ScenarioFormat.invariants)) { $0 == .standard }
    }
}
