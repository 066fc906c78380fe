public import Determinism

/// The measurements of one transfer, as an application would take them.
public struct TrialResult: Hashable, Sendable {
    /// The transfer.
    public let transfer: Transfer
    /// The time from `connect()` to its return.
    public var connect: Nanoseconds?
    /// The time from the request to the first byte of the response.
    public var firstByte: Nanoseconds?
    /// The time from the request to the last byte.
    public var lastByte: Nanoseconds?
    /// The time from `connect()` to the last byte.
    public var total: Nanoseconds?
    /// The time of each exchange.
    public var exchanges: [Nanoseconds] = []
    /// The time from the end of the outage to the first new byte.
    public var resume: Nanoseconds?
    /// The time from the end of the outage until the received data has caught up with the schedule of the sender.
    public var caughtUp: Nanoseconds?
    /// The time from the end of the outage to the last byte.
    public var lastByteAfterOutage: Nanoseconds?
    /// The bytes received before the first new byte after the outage.
    public var bytesBeforeResume: Int?
    /// Whether the received data has not caught up in time, because the link is slower than the sender.
    public var isBehind = false
    /// Whether the transfer ended before the outage.
    public var isEarly = false
    /// The cause of the failure; `nil` on success.
    public var failure: String?

    init(_ transfer: Transfer) { self.transfer = transfer }

    /// Returns the result as one line of JSON with times in milliseconds.
    public func json(profile: String, repetition: Int) -> String {
        var parts = ["\"k\":\"\(transfer.kind)\""]
        if let number = transfer.number { parts.append("\"n\":\(number)") }
        func add(_ key: String, _ span: Nanoseconds?) {
            if let span { parts.append("\"\(key)\":\(Self.milliseconds(span))") }
        }
        if case .outageBulk(_, let bytes, _) = transfer { parts.append("\"size\":\(bytes)") }
        add("connect", connect)
        add("first", firstByte)
        if !exchanges.isEmpty { parts.append("\"ex\":[\(exchanges.map(Self.milliseconds).joined(separator: ","))]") }
        add("done", lastByte)
        add("total", total)
        add("resume", resume)
        add("caught", caughtUp)
        add("after", lastByteAfterOutage)
        if let bytesBeforeResume { parts.append("\"got\":\(bytesBeforeResume)") }
        if isBehind { parts.append("\"behind\":1") }
        if isEarly { parts.append("\"early\":1") }
        parts.append("\"ok\":\(failure == nil ? 1 : 0)")
        if let failure { parts.append("\"err\":\"\(failure)\"") }
        parts.append("\"p\":\"\(Self.escaped(profile))\",\"i\":0,\"rep\":\(repetition)")
        return "{\(parts.joined(separator: ","))}"
    }

    /// Returns milliseconds with three decimals, rounded, without floating point.
    static func milliseconds(_ span: Nanoseconds) -> String {
        let microseconds = (span.count + 500) / 1000
        let fraction = String(microseconds % 1000 + 1000).dropFirst()
        return "\(microseconds / 1000).\(fraction)"
    }

    private static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case _ where scalar.value < 0x20: out += "?"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
