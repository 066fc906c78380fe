internal import Scenario

extension ScenarioFormat {
    /// The keys of a file, without those that a variant cannot have.
    private static let shared: [Key] = [
        Key("about", .text, default: "empty", "A description in a sentence or two. `run` prints it."),
        Key(
            "tags", .list(.kebabCase, atLeast: 0, atMost: 50), default: "[]",
            "Words by which scenarios are selected."),
        Key(
            "seed", .either([.integer(0...seedMax), .choice(["commit"])]), default: "1",
            "The random seed. Scenario and seed determine a simulated run. `commit` derives the seed from the "
                + "commit that is tested."),
        Key(
            "limit", .time, default: "10m",
            "The duration of the script. A run that exceeds the limit is aborted and fails."),
        Key(
            "restore", .time, default: "when nothing more can happen",
            "The time at which the links are restored, even if requests are in flight. Earlier than `limit`."),
        Key("server", .object("server"), "The server: its contract and its notes at the start."),
        Key(
            "devices", .map(.newDevice, .object("device")), required: true,
            "Clients, each behind a link of its own. At most \(devicesMax)."),
        Key(
            "writers", .map(.newWriter, .object("writer")),
            "Clients without a link, such as a user in a browser. At most \(writersMax)."),
        Key("policy", .object("policy"), "Delays and limits of the reference clients in place of the published ones."),
        Key(
            "network", .map(.device, .map(.time, .either([.link, .object("network")]))), required: true,
            "For each device, the links over time. The first entry is at `0s`; a link applies until the next entry."),
        Key(
            "faults", .list(.object("fault"), atLeast: 0, atMost: 1000), default: "[]",
            "Effects on single exchanges: lost responses, delays, kills."),
        Key(
            "steps", .list(.object("step"), atLeast: 0, atMost: 10_000), default: "[]",
            "Actions of devices and writers, and marks."),
        Key(
            "workload", .list(.object("workload"), atLeast: 0, atMost: 100), default: "[]",
            "Actions at random times, drawn from the seed."),
        Key("expect", .object("expect"), required: true, "The conditions that decide the verdict."),
        Key(
            "invariants", .either([.choice(["standard", "all"]), .object("invariants")]), default: "standard",
            "The properties that are checked in every run."),
        Key(
            "matrix", .map(.parameter, .list(.anything, atLeast: 1, atMost: 100)),
            "Lists of values by parameter. The scenario runs once for each combination; a value `$name` stands for "
                + "the parameter's value."),
        Key("explore", .object("explore"), "What `slowlane explore` draws by default."),
    ]

    static let top: [Object] = [
        Object(
            "scenario", "the scenario",
            [
                Key("scenario", .version, required: true, "The version of the format."),
                Key("name", .kebabCase, required: true, "The name, in kebab-case."),
                Key(
                    "extends", .path,
                    "Another scenario file, relative to this file. Its keys apply unless this file has them; mappings "
                        + "are merged, other values replaced, and `null` takes a key back. `name` and `variants` are "
                        + "not taken over."),
            ] + shared + [
                Key(
                    "variants", .map(.variant, .object("variant")),
                    "Changed keys by name. Each variant is a run of its own; mappings are merged, other values "
                        + "replace the scenario's, and `null` takes a key of the scenario back, such as `5s: null`.")
            ]),
        Object("variant", "a variant", shared),
        Object(
            "server", "'server'",
            [
                Key(
                    "contract", .choice(["compat", "orig", "strict"]), default: "compat",
                    "The API contract of the notes server."),
                Key(
                    "token-life", .time, default: "no tokens",
                    "Devices authenticate with access tokens of this lifetime, at least 1 s, and renew them. Without it they "
                        + "send passwords. Not with `orig`."),
                Key("notes", .map(.newRow, .object("note")), "Notes at the start, by their names in the scenario."),
                Key(
                    "records", .map(.newRow, .object("record")),
                    "Records of an app's service at the start, by their names in the scenario; a record comes before those "
                        + "in it. With a client that is an [app](patterns.md)."),
                Key("fill", .object("fill"), "Generated notes at the start, called f1, f2 and so on."),
                Key(
                    "run", .list(.text, atLeast: 1, atMost: 100),
                    "A program with its arguments, in place of the built-in server."),
                Key(
                    "ready", .text, default: "the port accepts connections",
                    "With `run`: the path of a resource, or a URL with a port, that the server serves once it is ready."
                ),
                Key("url", .text, "The URL (`http://`) of a server, in place of the built-in server."),
            ]),
        Object(
            "note", "a note",
            [
                Key("title", .text, default: "none", "The title."),
                Key("text", .text, default: "none", "The text."),
                Key("revision", .integer(1...numberMax), default: "1", "The number of the revision."),
            ]),
        Object(
            "record", "a record",
            [
                Key(
                    "kind", .choice(Scenario.App.allCases.flatMap { $0.vocabulary.kinds.map(\.name) }), required: true,
                    "The kind of record."),
                Key("in", .name(.row), "The record that contains it, such as the report of an expense."),
                Key("title", .text, default: "none", "The title."),
                Key("text", .text, default: "none", "The text, such as the amount of an expense, `12.00`."),
                Key(
                    "approved", .boolean, default: "false",
                    "Whether an expense is approved, so that it cannot be deleted."),
                Key("with", .map(.field, .text), default: "none", "Further fields, which depend on the kind."),
            ]),
        Object(
            "fill", "'fill'",
            [
                Key("notes", .integer(1...10_000), required: true, "The number of notes."),
                Key("bytes", .size, default: "100", "The size of each text: a number of bytes, or `2KB`."),
            ]),
        Object(
            "policy", "'policy'",
            [
                Key("first-delay", .time, default: "1s", "The delay after the first failure."),
                Key(
                    "longest-delay", .time, default: "60s",
                    "The longest delay between attempts, at least `first-delay`."),
                Key("poll", .time, default: "60s", "The interval between index fetches."),
                Key(
                    "timeout", .time, default: "10s to connect, 30s for the response",
                    "The time without progress after which an exchange fails. Three times as long in all."),
                Key(
                    "large", .size, default: "16KB",
                    "The size from which a change is sent on a connection of its own: a number of bytes, or `2KB`."),
            ]),
        Object(
            "invariants", "'invariants'",
            [
                Key(
                    "add", .list(.invariant, atLeast: 0, atMost: 18), default: "[]",
                    "Invariants in addition to the standard set."),
                Key(
                    "drop", .list(.invariant, atLeast: 0, atMost: 18), default: "[]",
                    "Invariants of the standard set that are not checked."),
            ]),
        Object(
            "explore", "'explore'",
            [
                Key("seeds", .integer(1...numberMax), required: true, "The number of seeds."),
                Key(
                    "vary",
                    .list(
                        .choice(Scenario.Exploration.Part.allCases.map(\.rawValue)), atLeast: 1, atMost: 4),
                    default: "all",
                    "The parts that are drawn for each seed: actions of users and kills, links, faults, and contract and "
                        + "policy."),
            ]),
    ]

    /// The clients besides programs.
    static let clients = ["reference", "legacy"] + Scenario.App.allCases.map(\.rawValue)

    static let actors: [Object] = [
        Object(
            "device", "a device",
            [
                Key("user", .text, required: true, "The user whose notes the client syncs."),
                Key(
                    "starts", .choice(["synced", "empty"]), default: "synced",
                    "Whether the client has fetched the server's notes before 0 s."),
                Key(
                    "client", .either([.choice(clients), .object("client")]),
                    default: "reference",
                    "The client: Slowlane's, one with the defects of its time, an [app](patterns.md), or a program."),
                Key(
                    "settings", .map(.field, .text), default: "none",
                    "Settings of a client that is an [app](patterns.md#scenarios)."),
                Key(
                    "restarts", .time, default: "never",
                    "The time after which a client that was killed starts again by itself. Its actions wait for that."),
                Key(
                    "restored", .boolean, default: "true",
                    "Whether the restore phase restores the link and starts the client. The others must converge without a "
                        + "device that is not restored."),
            ]),
        Object(
            "client", "'client'",
            [
                Key(
                    "run", .list(.text, atLeast: 1, atMost: 100), required: true,
                    "The program and its arguments. A relative path begins at the folder of the file."),
                Key(
                    "adapter", .choice(Scenario.Device.Adapter.allCases.map(\.rawValue)), default: "lines",
                    "How the runner talks to the program: with JSON lines, or not at all."),
            ]),
        Object("writer", "a writer", [Key("user", .text, required: true, "The user whose notes the writer changes.")]),
        Object(
            "network", "an entry of 'network'",
            [
                Key("link", .link, "The link."),
                Key(
                    "flap", .list(.map(.link, .time), atLeast: 1, atMost: 100),
                    "Links with durations, which alternate: `[{ 3g: 8s }, { 100-loss: 2s }]`."),
                Key("jitter", .percentage, default: "0 %", "With `flap`: the random part of each duration."),
                Key(
                    "signalled", .choice(["true", "false", "sometimes"]), default: "true",
                    "Whether the operating system reports the interface as down in an outage and while offline."),
                Key(
                    "interface", .choice(["cellular", "wifi", "wired"]), default: "unchanged",
                    "The kind of interface that the client sees: `cellular` is metered, `wifi` and `wired` are not."),
                Key("down", .anything, "Conditions in place of a profile: those of the downlink."),
                Key("up", .anything, "Conditions in place of a profile: those of the uplink."),
                Key(
                    "dns-delay", .text, default: "0 ms", "Conditions in place of a profile: the delay of name lookups."),
                Key(
                    "access", .text, default: "open", "Conditions in place of a profile: the effect on new connections."
                ),
            ], exactlyOne: []),
    ]
}
