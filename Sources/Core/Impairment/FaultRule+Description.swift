internal import Determinism

extension FaultRule: CustomStringConvertible {
    /// The rule on one line, in the syntax of `slowlane proxy --fault`: `POST /api/notes/ nth 3 before-response stall`.
    ///
    /// A body that is not UTF-8 is shown with replacement characters; the subject has no syntax and is shown last.
    public var description: String { text(bodyBytesMax: .max) }

    /// Returns the rule on one line; a longer body is cut after `bodyBytesMax` bytes, and `...` follows.
    public func text(bodyBytesMax: Int) -> String {
        var words =
            stream.map { ["TCP", $0.description] } ?? [handshake == nil ? method ?? "any" : "TLS", path ?? "*"]
        if nth != 1 { words.append("nth \(nth)") }
        if probability < 1 { words.append("probability \(Self.percent(probability))") }
        if times.upperBound == .max {
            if probability >= 1 { words.append("times unlimited") }
        } else if times.upperBound != 1 || probability < 1 {
            words.append("times \(times.upperBound)")
        }
        words.append(stream?.point.rawValue ?? handshake?.rawValue ?? point?.rawValue ?? "any")
        if let bytes { words.append("bytes \(bytes)") }
        words.append(action.text(bodyBytesMax: bodyBytesMax))
        if let side { words.append(side.rawValue) }
        if let subject { words.append("subject \(subject)") }
        return words.joined(separator: " ")
    }

    /// Returns a probability in percent with at most four decimals.
    private static func percent(_ probability: Double) -> String {
        guard probability > 0 else { return "0%" }
        return decimal(Int64((probability * 1e6).rounded()), of: 10_000, digits: 4) + "%"
    }

    /// Returns `count / scale`, with the decimals that are needed.
    fileprivate static func decimal(_ count: Int64, of scale: Int64, digits: Int) -> String {
        var rest = "\(count % scale)"
        if count % scale == 0 { return "\(count / scale)" }
        rest = String(repeating: "0", count: max(0, digits - rest.count)) + rest
        while rest.hasSuffix("0") { rest.removeLast() }
        return "\(count / scale).\(rest)"
    }
}

extension FaultAction: CustomStringConvertible {
    /// The action in the syntax of `slowlane proxy --fault`: `delay 5s`, `respond 503 Retry-After: 120`.
    public var description: String { text(bodyBytesMax: .max) }

    fileprivate func text(bodyBytesMax: Int) -> String {
        switch self {
        case .reset: "reset"
        case .resetStream(let code): "reset \(code)"
        case .resetConnection: "reset connection"
        case .goAway: "goaway"
        case .limitStreams(let count): "limit-streams \(count)"
        case .ignorePings: "ignore-pings"
        case .ping: "ping"
        case .blockWindow(let connection): connection ? "block-window connection" : "block-window"
        case .dropTrailers: "drop-trailers"
        case .truncateHeaders: "truncate-headers"
        case .close: "close"
        case .stall: "stall"
        case .delay(let time): "delay \(Self.text(time))"
        case .throttle(let rate): "throttle \(rate)"
        case .respond(.portal): "portal"
        case .respond(let reply): "respond \(reply.text(bodyBytesMax: bodyBytesMax))"
        case .report(let time): time == .zero ? "report" : "report \(Self.text(time))"
        }
    }

    private static func text(_ time: Nanoseconds) -> String {
        let (seconds, rest) = time.count.quotientAndRemainder(dividingBy: 1_000_000_000)
        let milliseconds = FaultRule.decimal(rest, of: 1_000_000, digits: 6) + "ms"
        return rest == 0 ? "\(seconds)s" : seconds == 0 ? milliseconds : "\(seconds)s\(milliseconds)"
    }
}

extension FaultResponse {
    /// The sign-in page of a captive portal.
    public static let portal = FaultResponse(
        status: 200, reason: "OK",
        fields: [Field("Content-Type", "text/html; charset=utf-8"), Field("Cache-Control", "no-store")],
        body: Array(CaptivePortal.page.utf8))

    fileprivate func text(bodyBytesMax: Int) -> String {
        var words = ["\(status)"]
        for field in fields { words.append("\(field.name): \(Self.value(field.value))") }
        guard !body.isEmpty else { return words.joined(separator: " ") }
        let shown = String(decoding: body.prefix(bodyBytesMax), as: UTF8.self)
        return words.joined(separator: " ") + " body \(shown)\(body.count > bodyBytesMax ? "..." : "")"
    }

    /// Returns a value, in quotes unless it is a single word that cannot be mistaken for another part.
    private static func value(_ value: String) -> String {
        let isPlain = value.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
        let isWord =
            !value.isEmpty && value != "body" && value.utf8.first != UInt8(ascii: "\"")
            && value.utf8.last != UInt8(ascii: ":")
        if isPlain && isWord { return value }
        var quoted = "\""
        for scalar in value.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}
