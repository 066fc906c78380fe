internal import Determinism
internal import Impairment
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
            .optional(
                "bytes", \.bytes, .integer(0...Int(Int32.max)),
                "The bytes of the body that have passed at `mid-request` and `mid-response`. Default: half of the body."
            ),
            .optional(
                "side", \.side, .word,
                "The socket that `reset`, `close` and `stall` affect. Default: both, at `stall` the receiver's."),
            .required(
                "then", \.action, faultAction,
                "The effect. `reset` resets the connection, `close` closes it, `stall` leaves it open and delivers "
                    + "nothing more, `kill` kills the client that sent the request, and `portal` responds with a sign-in page."
            ),
        ], blank: { Scenario.Fault(request: .any, device: nil, action: .link(.reset), location: $0) },
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
        ("reset", .link(.reset)), ("close", .link(.close)), ("stall", .link(.stall)),
        ("portal", .link(.respond(.portal))), ("kill", .kill(device: nil)),
    ]

    private static let faultAction = FormatCodec<Scenario.Fault.Action>(
        .choice(faultWords.map(\.word)), read: { $1.faultWord($0) },
        write: { action in .word(faultWords.first { $0.value == action }?.word ?? action.name) }
    ).orMapping(.object(then)) { action in faultWords.contains { $0.value == action } }

    static let then = FormatMapping<Scenario.Fault.Action>(
        "then", "'then'",
        [
            .alternative(
                "delay", .time, "Delivers nothing for this time.",
                get: { if case .link(.delay(let time)) = $0 { time } else { nil } }, set: { $0 = .link(.delay($1)) }),
            .alternative(
                "kill", .device, "Kills the client of a device.",
                get: { if case .kill(let device) = $0 { device } else { nil } }, set: { $0 = .kill(device: $1) }),
            .alternative(
                "throttle", .integer(1...numberMax), "Delivers the rest at this rate in bytes per second.",
                get: { if case .link(.throttle(let rate)) = $0 { rate } else { nil } },
                set: { $0 = .link(.throttle(bytesPerSecond: $1)) }),
            .alternative(
                "respond", .object(respond), "Responds in place of the server.",
                get: { $0.response }, set: { $0 = .link(.respond($1)) }),
        ], blank: { _ in .link(.reset) },
        check: { _, fields in
            let keys = fields.object.exactlyOne
            return fields.only(of: keys, expected: "'then' needs one of \(keys.joined(separator: ", "))") != nil
        })

    private static let respond = FormatMapping<FaultResponse>(
        "respond", "'respond'",
        [
            .required("status", \.status, .integer(FaultResponse.statuses), "The status."),
            .key("headers", \.arguments, .headers, default: [], as: "none", "Header fields."),
            .key("body", \.text, .text, default: "", as: "empty", "The body."),
        ], blank: { _ in FaultResponse(status: 200) })
}

extension FaultResponse {
    /// The header fields as those of scenario files.
    fileprivate var arguments: [Scenario.Argument] {
        get { fields.map { Scenario.Argument(name: $0.name, value: $0.value) } }
        set { fields = newValue.map { Field($0.name, $0.value) } }
    }

    /// The body as a text.
    fileprivate var text: String {
        get { String(decoding: body, as: UTF8.self) }
        set { body = Array(newValue.utf8) }
    }
}
