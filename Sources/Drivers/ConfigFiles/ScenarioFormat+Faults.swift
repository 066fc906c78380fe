internal import Determinism
internal import Scenario

/// Faults.
extension ScenarioFormat {
    static let faults: [Object] = [fault.object, times.object, then.object, respond.object]

    static let fault = FormatMapping<Scenario.Fault>(
        "fault", "a fault",
        [
            .required(
                "request", \.request, .request,
                "The requests to match: `METHOD NOTE`, such as `PUT n1`; `any` matches every method, note or both."),
            .key(
                "nth", \.nth, .integer(1...numberMax), default: 1,
                "The first matching request to which the fault applies, counted over all devices that match."),
            .optional(
                "probability", \.probability, .percentage,
                "The probability with which the fault applies, in place of `nth`."),
            .key(
                "times", \.times, .range(.integer(1...numberMax), times, least: 1) { max(1, $0) }, default: 1...1,
                "How often the fault applies. A fault that applies fewer times than `min` makes the verdict "
                    + "inconclusive."),
            .optional("to", \.device, .device, default: "any", "The device."),
            .required(
                "point", \.point, .word,
                "The point of the exchange. `before-request`: nothing is sent; `mid-request`; `before-request-end`: "
                    + "the server lacks the last byte of the request (with `respond` or `throttle` it executes "
                    + "it); `before-response`: it has executed it, and nothing of the response is delivered; "
                    + "`after-response-head`, `mid-response`, `after-response`: the client has the head, a part or "
                    + "all of the response; `stored`: and has stored it; `any`: one of them at random."),
            .required(
                "then", \.action, faultAction,
                "The effect. `reset` resets the connection, `close` closes it, `stall` leaves it open and delivers "
                    + "nothing more, `kill` kills the client that sent the request."),
        ], blank: { Scenario.Fault(request: .any, device: nil, action: .reset, location: $0) },
        check: { $1.reader.check($0, $1) })

    private static let times = FormatMapping<Bounds>(
        "times", "'times'",
        [
            .optional(
                "min", \.least, .integer(0...numberMax), default: "1", "The least number; 0 makes the fault optional."),
            .optional(
                "max", \.most, .most(.integer(1...numberMax)), default: "the greater of 1 and `min`",
                "The greatest number."),
        ], needsKey: true, blank: { _ in Bounds() }, check: { $1.hasBound("'times'") })

    /// The effects without a value.
    static let faultWords: [(word: String, value: Scenario.Fault.Action)] = [
        ("reset", .reset), ("close", .close), ("stall", .stall), ("kill", .kill(device: nil)),
    ]

    private static let faultAction = FormatCodec<Scenario.Fault.Action>(
        .choice(faultWords.map(\.word)), read: { $1.faultWord($0) }, write: { .word($0.name) }
    ).orMapping(.object(then)) { action in faultWords.contains { $0.value == action } }

    static let then = FormatMapping<Scenario.Fault.Action>(
        "then", "'then'",
        [
            .alternative(
                "delay", .time, "Delivers nothing for this time.",
                get: { if case .delay(let time) = $0 { time } else { nil } }, set: { $0 = .delay($1) }),
            .alternative(
                "kill", .device, "Kills the client of a device.",
                get: { if case .kill(let device) = $0 { device } else { nil } }, set: { $0 = .kill(device: $1) }),
            .alternative(
                "throttle", .integer(1...numberMax), "Delivers the rest at this rate in bytes per second.",
                get: { if case .throttle(let rate) = $0 { rate } else { nil } },
                set: { $0 = .throttle(bytesPerSecond: $1) }),
            .alternative(
                "respond", .object(respond), "Responds in place of the server.",
                get: { if case .respond(let response) = $0 { response } else { nil } }, set: { $0 = .respond($1) }),
        ], blank: { _ in .reset },
        check: { _, fields in
            let keys = fields.object.exactlyOne
            return fields.only(of: keys, expected: "'then' needs one of \(keys.joined(separator: ", "))") != nil
        })

    private static let respond = FormatMapping<Scenario.Fault.Response>(
        "respond", "'respond'",
        [
            .required("status", \.status, .integer(100...599), "The status."),
            .key("headers", \.headers, .headers, default: [], as: "none", "Header fields."),
            .key("body", \.body, .text, default: "", as: "empty", "The body."),
        ], blank: { _ in Scenario.Fault.Response(status: 200) })
}
