internal import Scenario

extension ScenarioFormat {
    private static let actionKeys: [Key] = [
        Key("create", .name(.newRow), "Creates a note, with `title` and `text`."),
        Key("edit", .name(.row), "Changes a note's `title`, `text` or both."),
        Key("delete", .name(.row), "Deletes a note."),
    ]

    private static let contentKeys: [Key] = [
        Key("title", .text, default: "unchanged", "The new title, with `create`, `edit` and `resolve`."),
        Key("text", .text, default: "unchanged", "The new text, with `create`, `edit` and `resolve`."),
    ]

    private static let matchKeys: [Key] = [
        Key(
            "request", .request, required: true,
            "The requests: `METHOD NOTE`, such as `PUT n1`; `any` matches every method, note or both."),
        Key("from", .name(.actor), default: "any", "The device or writer that sends the request."),
        Key(
            "seen", .choice(["server", "proxy"]), default: "server",
            "`server`: the requests that reach the server; `proxy`: all that enter the device's link. A request to "
                + "which a captive portal or a fault responds before the server does not reach it."),
        Key(
            "between", .list(.timeOrMark, atLeast: 2, atMost: 2), default: "the script",
            "The start and the end of a window. The end `finally` is that of the run: the requests of the restore phase "
                + "count too."),
        Key(
            "during", .either([.choice(["flap"]), .name(.link)]), default: "the whole run",
            "`flap`, or the name of a link: requests are counted while it is in effect. A writer has no link."),
        Key(
            "count", .either([.integer(0...numberMax), .object("count")]),
            "The number of requests: a number, or `min` and `max`."),
        Key(
            "attempts", .either([.integer(0...numberMax), .object("attempts")]),
            "The number of attempts of the devices: attempts to connect, and requests on connections that were open "
                + "already. Needs `request: any`."),
        Key(
            "responses", .list(.response, atLeast: 0, atMost: 1000),
            "The results in order: a status, `2xx`, `lost` (the server responded, the client received nothing), or "
                + "`none` (the request did not reach the server)."),
        Key(
            "same", .list(.choice(["body", "idempotency-key"]), atLeast: 1, atMost: 2),
            "Properties that are equal in all matching requests."),
        Key(
            "order", .list(.either([.request, .name(.row)]), atLeast: 2, atMost: 1000),
            "Requests or notes whose first matching requests are in this order. One that occurs again stands for its next "
                + "request."),
        Key(
            "duplicates", .integer(0...numberMax),
            "The greatest number of requests with which the server has executed a write once more. Without `between`, those "
                + "of the restore phase count too."),
        Key(
            "bytes-down", .either([.size, .object("bytes")]),
            "The number of bytes of the responses' bodies that the server has sent into the link, received or not."),
        Key(
            "bytes-up", .either([.size, .object("bytes")]),
            "The number of bytes of the requests' bodies that the client has sent into the link."),
    ]

    static let events: [Object] = [
        Object(
            "fault", "a fault",
            [
                Key(
                    "request", .request, required: true,
                    "The requests to match: `METHOD NOTE`, such as `PUT n1`; `any` matches every method, note or both."),
                Key(
                    "nth", .integer(1...numberMax), default: "1",
                    "The first matching request to which the fault applies, counted over all devices that match."),
                Key("probability", .percentage, "The probability with which the fault applies, in place of `nth`."),
                Key(
                    "times", .either([.integer(1...numberMax), .object("times")]), default: "1",
                    "How often the fault applies. A fault that applies fewer times than `min` makes the verdict "
                        + "inconclusive."),
                Key("to", .name(.device), default: "any", "The device."),
                Key(
                    "point", .choice(Scenario.Fault.Point.allCases.map(\.rawValue)), required: true,
                    "The point of the exchange. `before-request`: nothing is sent; `mid-request`; `before-request-end`: "
                        + "the server lacks the last byte of the request (with `respond` or `throttle` it executes "
                        + "it); `before-response`: it has executed it, and nothing of the response is delivered; "
                        + "`after-response-head`, `mid-response`, `after-response`: the client has the head, a part or "
                        + "all of the response; `stored`: and has stored it; `any`: one of them at random."),
                Key(
                    "then", .either([.choice(["reset", "close", "stall", "kill"]), .object("then")]), required: true,
                    "The effect. `reset` resets the connection, `close` closes it, `stall` leaves it open and delivers "
                        + "nothing more, `kill` kills the client that sent the request."),
            ]),
        Object(
            "times", "'times'",
            [
                Key("min", .integer(0...numberMax), default: "1", "The least number; 0 makes the fault optional."),
                Key("max", .integer(1...numberMax), default: "the greater of 1 and `min`", "The greatest number."),
            ], atLeastOne: ["min", "max"]),
        Object(
            "then", "'then'",
            [
                Key("delay", .time, "Delivers nothing for this time."),
                Key("kill", .name(.device), "Kills the client of a device."),
                Key("throttle", .integer(1...numberMax), "Delivers the rest at this rate in bytes per second."),
                Key("respond", .object("respond"), "Responds in place of the server."),
            ], exactlyOne: ["delay", "kill", "throttle", "respond"]),
        Object(
            "respond", "'respond'",
            [
                Key("status", .integer(100...599), required: true, "The status."),
                Key("headers", .map(.field, .text), default: "none", "Header fields."),
                Key("body", .text, default: "empty", "The body."),
            ]),
        Object(
            "step", "a step",
            [
                Key("at", .time, "Trigger: a time."),
                Key("after", .name(.mark), "Trigger: a mark."),
                Key("delay", .time, default: "0s", "With `after`: the delay after the mark."),
                Key("when", .object("states"), "Trigger: the state of a device."),
                Key(
                    "within", .time, default: "the whole run",
                    "With `when`: the time from the start of the run by which the state must be reached."),
                Key(
                    "mark", .name(.newMark),
                    "A name for the step, to which other parts of the file refer. It is set when the action has taken "
                        + "effect."),
                Key(
                    "optional", .boolean, default: "false",
                    "Whether the run goes on as if the step were not there if its action is an error or cannot be "
                        + "performed."),
            ], named: NamedKeys(.actor, .either([.object("action"), .object("writer-action")]), after: 5),
            exactlyOne: ["at", "after", "when"]),
        Object(
            "action", "an action",
            actionKeys + [
                Key("resolve", .name(.row), "Resolves a conflict, with `title` or `text`, or `with`."),
                Key("keep", .name(.row), "Keeps a note whose deletion is in conflict with a change."),
                Key(
                    "pin", .name(.row),
                    "Pins a note. Of the reference client, version 1 has pins: it keeps them in its outbox and sends none."
                ),
                Key(
                    "open", .either([.choice(["list"]), .name(.row)]),
                    "Opens the list, or a note. The reference client draws both from its store, and sends nothing."),
                Key("sync", .choice(["now"]), "Requests a sync."),
                Key(
                    "send", .object("request"),
                    "Sends a request over the device's link, past the client's queue. Every response is a result."),
                Key("kill", .choice(["now"]), "Kills the client."),
                Key("start", .choice(["now", "again"]), "Starts the client again."),
                Key(
                    "upgrade", .integer(1...1000),
                    "Replaces the client by this version of it, on the same store. The reference client has versions 1 and "
                        + "2, and a device with `upgrade` or `pin` starts with version 1. Version 2 migrates the store of "
                        + "version 1; version 1 does not open that of version 2, and does not run then."),
                Key("clock", .object("clock"), "Shifts the wall clock, on which only the dates of changes depend."),
                Key(
                    "call", .text,
                    "Calls a function of the app under test, with the arguments `with`. The reference client has `retry` "
                        + "(sends a parked change again) and `dismiss` (discards it), each with `note`. For those of an app see "
                        + "[patterns](patterns.md#scenarios)."),
            ] + contentKeys + [
                Key(
                    "with",
                    .either([.choice(["theirs", "mine", "write", "delete"]), .map(.field, .text)]),
                    default: "write",
                    "With `resolve`: the side to keep, or `delete`. With `call`: a mapping of arguments.")
            ],
            exactlyOne: [
                "create", "edit", "delete", "resolve", "keep", "pin", "open", "sync", "send", "kill", "start",
                "upgrade", "clock", "call",
            ]),
        Object(
            "writer-action", "an action",
            actionKeys + [Key("raw", .object("request"), "Sends a request as given.")] + contentKeys + [
                Key(
                    "stale", .boolean, default: "false",
                    "With `edit` and `delete`: the writer sends the revision that it read before, instead of reading "
                        + "first. Every response is a result.")
            ], exactlyOne: ["create", "edit", "delete", "raw"]),
        Object(
            "request", "a request",
            [
                Key("method", .choice(methods), required: true, "The method."),
                Key(
                    "path", .text, required: true,
                    "The request target, such as `/api/notes/{n1}/`; `{n1}` stands for the identifier of the note n1."),
                Key(
                    "headers", .map(.field, .text), default: "none",
                    "Header fields. `{n1.revision}` stands for the revision of the note n1 in the last response that the "
                        + "sender has received."),
                Key("body", .text, default: "empty", "The body."),
            ]),
        Object(
            "clock", "'clock'",
            [
                Key(
                    "wall", .signedTime, required: true,
                    "The shift of the wall clock, such as `+6h`. The monotonic clock is not changed.")
            ]),
        Object(
            "workload", "an entry of 'workload'",
            [
                Key("from", .time, default: "0s", "The start of the window."),
                Key("to", .time, "The end of the window."),
                Key("every", .time, "The period: each contains one action."),
                Key("jitter", .percentage, default: "0 %", "The greatest delay of an action, as a part of the period."),
                Key("when", .object("states"), "In place of a window: the state that triggers an action."),
                Key("delay", .time, default: "0s", "With `when`: the delay after the state."),
                Key(
                    "by", .list(.name(.actor), atLeast: 1, atMost: 200), required: true,
                    "The devices or writers, of which one performs each action."),
                Key(
                    "notes", .integer(1...10_000), default: "all",
                    "The number of notes that are edited, from the first."
                ),
                Key("mix", .object("mix"), required: true, "The kinds of actions with their weights."),
            ], exactlyOne: ["every", "when"]),
        Object(
            "mix", "'mix'",
            Scenario.Workload.Kind.allCases.map { kind in
                Key(
                    kind.rawValue, .integer(0...1000), default: "0",
                    kind == .resolve
                        ? "The weight of resolutions of conflicts, with `when`." : "The weight of `\(kind.rawValue)`.")
            }, atLeastOne: Scenario.Workload.Kind.allCases.map(\.rawValue)),
    ]

    static let checks: [Object] = [
        Object(
            "expect", "'expect'",
            [
                Key("traffic", .list(.object("traffic"), atLeast: 0, atMost: 1000), "Conditions on requests."),
                Key(
                    "always", .list(.object("states"), atLeast: 0, atMost: 1000),
                    "States that hold at all times from `since` to `until`. A note may appear later, but not vanish."),
                Key(
                    "sometimes", .list(.object("sometimes"), atLeast: 0, atMost: 1000),
                    "States, requests or faults that are seen at least once; otherwise the verdict is inconclusive."),
                Key(
                    "eventually", .list(.object("eventually"), atLeast: 0, atMost: 1000),
                    "States that hold at least once in a window."),
                Key("finally", .object("finally"), "The values at the end."),
                Key(
                    "thresholds", .map(.metric, .object("threshold")),
                    "Bounds of metrics: save-to-screen, save-to-synced (times), attempts-per-write (a number)."),
            ], atLeastOne: ["traffic", "always", "sometimes", "eventually", "finally", "thresholds"]),
        Object(
            "traffic", "'traffic'", matchKeys,
            atLeastOne: ["count", "attempts", "responses", "same", "order", "duplicates", "bytes-down", "bytes-up"]),
        Object(
            "count", "'count'",
            [
                Key("min", .integer(0...numberMax), default: "0", "The least number."),
                Key(
                    "max", .either([.integer(0...numberMax), .choice(["budget"])]), default: "no limit",
                    "The greatest number. `budget` is the number of attempts that the client's retry policy allows in "
                        + "each outage."),
            ], atLeastOne: ["min", "max"]),
        Object(
            "attempts", "'attempts'",
            [
                Key("min", .integer(0...numberMax), default: "0", "The least number."),
                Key("max", .integer(0...numberMax), default: "no limit", "The greatest number."),
            ], atLeastOne: ["min", "max"]),
        Object(
            "bytes", "a number of bytes",
            [
                Key("min", .size, default: "0", "The least number."),
                Key("max", .size, default: "no limit", "The greatest number, such as `2MB`."),
            ], atLeastOne: ["min", "max"]),
        Object(
            "states", "a state",
            [Key("any", .object("state"), "The state of at least one device; with `always`, of every device.")],
            named: NamedKeys(.device, .object("state"))),
        Object(
            "sometimes", "'sometimes'",
            [
                Key("any", .object("state"), "The state of at least one device."),
                Key("fault", .object("fault-pattern"), "A fault that applies."),
            ] + matchKeys.map { Key($0.name, $0.shape, required: false, default: $0.defaultText, $0.about) },
            named: NamedKeys(.device, .object("state"))),
        Object(
            "fault-pattern", "'fault'",
            [
                Key(
                    "point", .choice(Scenario.Fault.Point.allCases.map(\.rawValue)), default: "any",
                    "The point of the exchange."),
                Key("request", .request, default: "any", "The requests."),
            ]),
        Object(
            "eventually", "'eventually'",
            [
                Key("by", .time, "The end of the window, which starts at 0 s."),
                Key("after", .name(.mark), "The mark at which the window starts."),
                Key("within", .time, "With `after`: the length of the window."),
                Key("any", .object("state"), "The state of at least one device."),
            ], named: NamedKeys(.device, .object("state"), after: 3), exactlyOne: ["by", "after"]),
        Object(
            "state", "a state",
            [
                Key(
                    "row", .name(.row),
                    "The note; required by `present`, `icon`, `text`, `title`, `keeps`, `opacity` and `strike`."),
                Key("present", .either([.boolean, .object("not-boolean")]), "Whether the note is shown."),
                Key(
                    "icon",
                    .either([.choice(["none", "upload", "conflict", "error"]), .object("not-icon")]),
                    "The note's icon: `upload` is a pending change. Without `row`, with `any`: the icon of any note."),
                Key("title", .either([.text, .object("not-text")]), "The visible title."),
                Key("text", .either([.text, .object("not-text")]), "The visible text."),
                Key(
                    "keeps", .either([.text, .object("not-text")]),
                    "A text that the client stores for the note: the visible text, a pending text, or the base or the "
                        + "server's side of a conflict."),
                Key(
                    "pending", .either([.boolean, .object("not-boolean")]),
                    "Whether the note, or without `row` any note, has a pending change."),
                Key(
                    "outbox", .either([.integer(0...numberMax), .object("not-number")]),
                    "The number of pending changes."),
                Key(
                    "screen", .either([.text, .object("not-text")]),
                    "The name of the visible screen. That of the reference client is `list`, or the name of the open note."
                ),
                Key(
                    "control", .either([.text, .object("not-text")]),
                    "The name of a control that can be used on the visible screen. See [screens](#screens)."),
                Key(
                    "dialog", .either([.text, .object("not-text")]),
                    "The name of the visible dialog; `none` for no dialog. The reference client has no dialogs."),
                Key(
                    "toast", .either([.text, .object("not-text")]),
                    "The name of a message that vanishes by itself; `none` for no message. The reference client has "
                        + "`no-connection`."),
                Key(
                    "opacity", .either([.fraction, .object("not-fraction")]),
                    "The opacity of the note. In the reference client 0.5 while its deletion is pending, otherwise 1."),
                Key(
                    "strike", .either([.boolean, .object("not-boolean")]),
                    "Whether the note is struck through. In the reference client, while its deletion is pending."),
                Key(
                    "error", .either([.text, .object("not-text")]),
                    "The message at the note, or without `row` the notice or error on the screen; `none` for no message. Of "
                        + "an app."),
                Key(
                    "marker", .either([.choice(["none", "red"]), .object("not-marker")]),
                    "The mark of an error at the note or at what contains it; without `row`, at the root. Of an app."
                ),
                Key(
                    "field", .either([.text, .object("not-text")]),
                    "An input of the form or a value of the page on the screen, such as `to=Bo`. Of an app."),
                Key(
                    "since", .timeOrMark, default: "0s",
                    "The start of the period; a mark stands for the effect of its action."),
                Key(
                    "until", .timeOrMark, default: "the end of the run",
                    "The end of the period, exclusive; a mark stands for the start of its action."),
            ],
            atLeastOne: StateCondition.Check.Key.allCases.map(\.rawValue)),
        not("not-text", .text), not("not-boolean", .boolean), not("not-number", .integer(0...numberMax)),
        not("not-marker", .choice(["none", "red"])),
        not("not-fraction", .fraction), not("not-icon", .choice(["none", "upload", "conflict", "error"])),
        Object(
            "finally", "'finally'",
            [
                Key("server", .object("server-end"), "The notes on the server."),
                Key(
                    "agree", .list(.either([.name(.device), .choice(["server"])]), atLeast: 2, atMost: 101),
                    "Devices, and `server`, that have equal notes."),
            ],
            named: NamedKeys(
                .device, .either([.object("state"), .list(.object("state"), atLeast: 1, atMost: 1000)]), after: 1)),
        Object(
            "server-end", "'server'",
            [Key("count", .integer(0...numberMax), "The number of notes.")],
            named: NamedKeys(.row, .object("row-end"), after: 1)),
        Object(
            "row-end", "a note",
            [
                Key("revision", .integer(1...numberMax), "The number of the revision."),
                Key("title", .text, "The title."),
                Key("text", .text, "The text."),
            ], atLeastOne: ["revision", "title", "text"]),
        Object(
            "threshold", "a threshold",
            Threshold.Statistic.allCases.map { statistic in
                Key(
                    statistic.rawValue, .either([.time, .integer(0...numberMax)]),
                    statistic == .max
                        ? "The greatest value." : "The value that \(statistic.rawValue.dropFirst()) % do not exceed.")
            }, atLeastOne: Threshold.Statistic.allCases.map(\.rawValue)),
    ]

    private static func not(_ name: String, _ shape: Shape) -> Object {
        Object(name, "a state", [Key("not", shape, required: true, "The value that must differ.")])
    }
}
