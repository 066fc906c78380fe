internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Steps and the workload.
extension ScenarioFormat {
    static let steps: [Object] = [
        step.object, action.object, writerAction.object, request.object, clock.object, disk.object, workload.object,
        mix.object,
    ]

    static let step = FormatMapping<Scenario.Step>(
        "step", "a step",
        [
            .alternative(
                "at", .time, "Trigger: a time.",
                get: { if case .at(let time) = $0.trigger { time } else { nil } }, set: { $0.trigger = .at($1) }),
            .alternative(
                "after", .mark, "Trigger: a mark.",
                get: { if case .after(let mark, _) = $0.trigger { mark } else { nil } },
                set: { $0.trigger = .after($1, delay: .zero) }),
            .key("delay", \.trigger.delay, .time, default: .zero, "With `after`: the delay after the mark."),
            .alternative(
                "when", .oneState(in: "'when'"), "Trigger: the state of a device.", get: { $0.trigger.state },
                set: { $0.trigger = .when(device: $1.device, $1.condition, within: Timeline.timeMax) }),
            .key(
                "within", \.trigger.within, .time, default: Timeline.timeMax, as: "the whole run",
                "With `when`: the time from the start of the run, or from the mark of `since`, by which the state must be "
                    + "reached."),
            .optional(
                "since", \.since, .mark, default: "the start of the run",
                "With `when`: the mark from which the state counts; a state that holds then counts, too."),
            .optional(
                "mark", \.mark, .word(.name(.newMark)) { node, _ in node.scalar?.string },
                "A name for the step, to which other parts of the file refer. It is set when the action has taken "
                    + "effect."),
            .key(
                "optional", \.isOptional, .boolean, default: false,
                "Whether the run leaves out the step if its action is an error or cannot be "
                    + "performed."),
        ],
        named: .init(
            NamedKeys(.actor, .either([.object("action"), .object("writer-action")]), after: 6),
            names: { $0.deviceNames + $0.writerNames }, read: { $0.reader.readAction($0, &$1) }),
        blank: { Scenario.Step(trigger: .at(.zero), action: nil, mark: nil, location: $0) },
        check: { $1.reader.check($0, $1) })

    // MARK: Actions

    private static let changes: [FormatKey<Scenario.Action>] = [
        .alternative(
            "create", .newRow, "Creates a note, with `title` and `text`.",
            get: { $0.kind == .create ? $0.row : nil }, set: { $0 = .create(row: $1) }),
        .alternative(
            "edit", .row, "Changes a note's `title`, `text` or both.", get: { $0.kind == .edit ? $0.row : nil },
            set: { $0 = .edit(row: $1) }),
        .alternative(
            "delete", .row, "Deletes a note.", get: { $0.kind == .delete ? $0.row : nil },
            set: { $0 = .delete(row: $1) }
        ),
    ]

    private static let content: [FormatKey<Scenario.Action>] = [
        .optional(
            "title", \.title, .text, default: "unchanged", "The new title, with `create`, `edit` and `resolve`."),
        .optional("text", \.text, .text, default: "unchanged", "The new text, with `create`, `edit` and `resolve`."),
    ]

    private static let deviceActions: [FormatKey<Scenario.Action>] = [
        .alternative(
            "resolve", .row, "Resolves a conflict, with `title` or `text`, or `with`.",
            get: { $0.kind == .resolve ? $0.row : nil }, set: { $0 = .resolve(row: $1) }),
        .alternative(
            "keep", .row, "Keeps a note whose deletion is in conflict with a change.",
            get: { $0.kind == .keep ? $0.row : nil }, set: { $0 = .keep(row: $1) }),
        .alternative(
            "pin", .row,
            "Pins a note. Of the reference client, version 1 has pins: it keeps them in its outbox and sends none.",
            get: { $0.kind == .pin ? $0.row : nil }, set: { $0 = .pin(row: $1) }),
        .alternative(
            "open", FormatCodec<String?>.screen,
            "Opens the list, or a note. The reference client draws both from its store, and sends nothing.",
            get: { if case .open(let row) = $0 { .some(row) } else { nil } }, set: { $0 = .open(row: $1) }),
        .alternative(
            "sync", .choice(["now"]), "Requests a sync.", get: { $0 == .sync ? "now" : nil },
            set: { action, _ in action = .sync }),
        .alternative(
            "send", .object(request),
            "Sends a request over the device's link, past the client's queue. Any response ends the step, whatever its status.",
            get: { if case .send(let request) = $0 { request } else { nil } }, set: { $0 = .send($1) }),
        .alternative(
            "kill", .choice(["now"]), "Kills the client.", get: { $0 == .kill ? "now" : nil },
            set: { action, _ in action = .kill }),
        .alternative(
            "start", .choice(["now", "again"]), "Starts the client again.",
            get: { $0 == .start ? "again" : nil }, set: { action, _ in action = .start }),
        .alternative(
            "upgrade", .integer(1...1000),
            "Replaces the client by this version of it, on the same store. The reference client has versions 1 and "
                + "2, and a device with `upgrade` or `pin` starts with version 1. Version 2 migrates the store of "
                + "version 1; version 1 does not open the store of version 2, and does not run then.",
            get: { if case .upgrade(let version) = $0 { version } else { nil } },
            set: { $0 = .upgrade(version: $1) }),
        .alternative(
            "clock", .object(clock),
            "Shifts the device's wall clock. In the reference client, only the dates of changes depend on it.",
            get: { if case .clock(let shift) = $0 { shift } else { nil } }, set: { $0 = .clock(shift: $1) }),
        .alternative(
            "disk",
            .words([("normal", .normal), ("full", .full)]).orMapping(.object(disk)) { disk in
                if case .slow = disk { false } else { true }
            },
            "Changes the disk of the device: while it is `full`, no commit of the client succeeds; with `delay`, each "
                + "takes this time.",
            get: { if case .disk(let disk) = $0 { disk } else { nil } }, set: { $0 = .disk($1) }),
        .alternative(
            "sign-out", .choice(["now"]),
            "Signs the user out: the client ends, and the store of the account stays on the device. Only for apps.",
            get: { $0 == .signOut ? "now" : nil }, set: { action, _ in action = .signOut }),
        .alternative(
            "sign-in", .text,
            "Signs a user in: the client starts again with the credentials of this user and the store of the account. Only "
                + "for apps.",
            get: { if case .signIn(let user) = $0 { user } else { nil } }, set: { $0 = .signIn(user: $1) }),
        .alternative(
            "call", .text,
            "Calls a function of the app under test, with the arguments `with`. The reference client has `retry` "
                + "(sends a parked change again) and `dismiss` (discards it), each with `note`. For the functions of an app see "
                + "[patterns](../explanation/patterns.md#scenarios).",
            get: { if case .call(let name, _) = $0 { name } else { nil } },
            set: { $0 = .call(name: $1, arguments: []) }),
    ]

    private static let with = FormatKey<Scenario.Action>(
        Key(
            "with", .either([.choice(ways), .map(.field, .text)]), default: "write",
            "With `resolve`: `theirs` or `mine`, the side to keep; `delete`; or `write`, which stores the `title` and "
                + "`text` of the step. With `call`: a mapping of arguments."),
        read: { $0.reader.readWith($0, &$1) },
        write: { action in
            switch action {
            case .choose(_, let choice): .word(choice.rawValue)
            case .call(_, let arguments) where !arguments.isEmpty:
                FormatCodec<[Scenario.Argument]>.arguments.write(arguments)
            default: nil
            }
        })

    static let action = FormatMapping<Scenario.Action>(
        "action", "an action", changes + deviceActions + content + [with],
        blank: { _ in .sync }, check: { $1.reader.check($0, $1) })

    /// The ways to resolve a conflict.
    static let ways = ["theirs", "mine", "write", "delete"]

    private static let raw = FormatKey<Scenario.Action>.alternative(
        "raw", .object(request), "Sends a request as given.",
        get: { if case .send(let request) = $0 { request } else { nil } }, set: { $0 = .send($1) })

    private static let serverOperation = FormatKey<Scenario.Action>.alternative(
        "server", FormatCodec<Scenario.ServerOperation>.word,
        "`backup`: the server keeps a copy of all that it stores, in place of an earlier copy. `restore`: the copy replaces "
            + "all that it stores. Only for the built-in server.",
        get: { if case .server(let operation) = $0 { operation } else { nil } }, set: { $0 = .server($1) })

    private static let stale = FormatKey<Scenario.Action>.key(
        "stale", \.isStale, .boolean, default: false,
        "With `edit` and `delete`: the writer sends the revision that it read before, instead of reading first. Any "
            + "response ends the step, whatever its status.")

    static let writerAction = FormatMapping<Scenario.Action>(
        "writer-action", "an action", changes + [raw, serverOperation] + content + [stale],
        blank: { _ in .sync }, check: { $1.reader.check($0, $1) })

    private static let request = FormatMapping<Scenario.RawRequest>(
        "request", "a request",
        [
            .required("method", \.method, .choice(methods), "The method."),
            .required(
                "path", \.path, .text,
                "The request target, such as `/api/notes/{n1}/`; `{n1}` stands for the identifier of the note n1."),
            .key(
                "headers", \.headers, .headers, default: [], as: "none",
                "Header fields. `{n1.revision}` stands for the revision of the note n1 in the last response that the "
                    + "sender has received."),
            .key("body", \.body, .text, default: "", as: "empty", "The body."),
        ], blank: { _ in Scenario.RawRequest(method: "", path: "") }, check: { $1.reader.check($0, $1) })

    private static let clock = FormatMapping<Nanoseconds>(
        "clock", "'clock'",
        [
            .required(
                "wall", \.self, .signedTime,
                "The shift of the wall clock, such as `+6h` or `-30d`. The monotonic clock is not changed.")
        ], blank: { _ in .zero })

    private static let disk = FormatMapping<Scenario.Disk>(
        "disk", "'disk'",
        [
            .required("delay", \.delay, .time, "The time that each commit takes.")
        ], blank: { _ in .slow(.zero) })

    // MARK: The workload

    static let workload = FormatMapping<Scenario.Workload>(
        "workload", "an entry of 'workload'",
        [
            .part(
                "from", .time, default: "0s", "The start of the window.",
                get: { ($0.trigger.window?.from).flatMap { $0 == .zero ? nil : $0 } },
                set: { $0.trigger.window?.from = $1 }),
            .part(
                "to", .time, "The end of the window.", get: { $0.trigger.window?.to },
                set: { $0.trigger.window?.to = $1 }
            ),
            .alternative(
                "every", .time, "The period: each contains one action.", get: { $0.trigger.window?.every },
                set: { $0.trigger.window?.every = $1 }),
            .part(
                "jitter", .percentage, default: "0 %",
                "The greatest delay of an action, as a part of the period.",
                get: { ($0.trigger.window?.jitter).flatMap { $0 == .zero ? nil : $0 } },
                set: { $0.trigger.window?.jitter = $1 }),
            .alternative(
                "when", .oneState(in: "'when'"), "In place of a window: the state that triggers an action.",
                get: { $0.trigger.state }, set: { $0.trigger = .when(device: $1.device, $1.condition, delay: .zero) }),
            .key("delay", \.trigger.delay, .time, default: .zero, "With `when`: the delay after the state."),
            .required(
                "by", \.actors, FormatCodec<String>.actor.list(1...200),
                "The devices or writers, of which one performs each action."),
            .optional(
                "notes", \.notes, .integer(1...10_000), default: "all",
                "The number of notes that are edited, from the first."),
            .required("mix", \.mix, .object(mix), "The kinds of actions with their weights."),
        ],
        blank: {
            Scenario.Workload(
                trigger: .periodic(from: .zero, to: .zero, every: .zero, jitter: .zero), actors: [], notes: nil,
                mix: [],
                location: $0)
        }, check: { $1.reader.check($0, $1) })

    private static let mix = FormatMapping<[Scenario.Workload.Share]>(
        "mix", "'mix'",
        Scenario.Workload.Kind.allCases.map { kind in
            .part(
                kind.rawValue, .integer(0...1000), default: "0",
                kind == .resolve
                    ? "The weight of resolutions of conflicts, with `when`." : "The weight of `\(kind.rawValue)`.",
                get: { shares in shares.first { $0.kind == kind }?.weight },
                set: { if $1 > 0 { $0.append(Scenario.Workload.Share(kind, weight: $1)) } })
        }, needsKey: true, blank: { _ in [] },
        check: { shares, fields in
            if fields.isWhole, shares.isEmpty, fields.knowsAllKeys {
                fields.report("'mix' needs an action with a weight, such as '{ create: 2, edit: 6 }'")
            }
            return !shares.isEmpty
        })
}

// MARK: - Values of keys

extension Scenario.Action {
    fileprivate var title: String? {
        get { content?.title }
        set { content?.title = newValue }
    }

    fileprivate var text: String? {
        get { content?.text }
        set { content?.text = newValue }
    }

    /// Whether a writer sends the revision that it read before.
    fileprivate var isStale: Bool {
        get {
            switch self {
            case .editStale, .deleteStale: true
            default: false
            }
        }
        set {
            switch self {
            case .edit(let row, let title, let text) where newValue:
                self = .editStale(row: row, title: title, text: text)
            case .delete(let row) where newValue: self = .deleteStale(row: row)
            default: break
            }
        }
    }
}

extension Scenario.Disk {
    fileprivate var delay: Nanoseconds {
        get { if case .slow(let delay) = self { delay } else { .zero } }
        set { self = .slow(newValue) }
    }
}

extension Scenario.Step.Trigger {
    fileprivate var delay: Nanoseconds {
        get { if case .after(_, let delay) = self { delay } else { .zero } }
        set { if case .after(let mark, _) = self { self = .after(mark, delay: newValue) } }
    }

    fileprivate var within: Nanoseconds {
        get { if case .when(_, _, let within) = self { within } else { Timeline.timeMax } }
        set { if case .when(let device, let state, _) = self { self = .when(device: device, state, within: newValue) } }
    }

    fileprivate var state: DeviceState? {
        if case .when(let device, let condition, _) = self { DeviceState(device, condition) } else { nil }
    }
}

extension Scenario.Workload.Trigger {
    fileprivate typealias Window = (from: Nanoseconds, to: Nanoseconds, every: Nanoseconds, jitter: Probability)

    /// The window of actions with a period.
    fileprivate var window: Window? {
        get {
            if case .periodic(let from, let to, let every, let jitter) = self { (from, to, every, jitter) } else { nil }
        }
        set {
            guard let (from, to, every, jitter) = newValue else { return }
            self = .periodic(from: from, to: to, every: every, jitter: jitter)
        }
    }

    fileprivate var delay: Nanoseconds {
        get { if case .when(_, _, let delay) = self { delay } else { .zero } }
        set { if case .when(let device, let state, _) = self { self = .when(device: device, state, delay: newValue) } }
    }

    fileprivate var state: DeviceState? {
        if case .when(let device, let condition, _) = self { DeviceState(device, condition) } else { nil }
    }
}

extension FormatCodec where Value == String? {
    /// A screen of a client: the list, or a note.
    fileprivate static var screen: Self {
        Self(
            .either([.choice(["list"]), .name(.row)]),
            read: { node, reader in
                node.scalar?.string == "list" ? .some(nil) : reader.knownRow(node).map { .some($0) }
            }, write: { .word($0 ?? "list") })
    }
}
