internal import Determinism

/// A transfer to run. The kinds are those of the measurements on real kernels.
public enum Transfer: Hashable, Sendable {
    /// 100 B up, 200 B down.
    case ttfb
    /// 100 B up, `bytes` down.
    case down(bytes: Int)
    /// `bytes` up, 1 B down.
    case up(bytes: Int)
    /// `count` exchanges of `bytes` each way.
    case pingPong(count: Int, bytes: Int)
    /// A handshake.
    case connect
    /// 1 kB down every 100 ms, with an outage 2 s after the first byte.
    case outageDrip(seconds: Int)
    /// A download of `bytes`, with an outage `after` milliseconds after its start.
    case outageBulk(seconds: Int, bytes: Int, after: Int)
    /// An exchange, then an outage, with a request 0.3 to 0.6 s after the start of the outage.
    case outageRequest(seconds: Int)
    /// An outage, with a connection attempt 0.2 to 0.7 s after its start.
    case outageConnect(seconds: Int)

    /// The largest transfer in bytes.
    public static let bytesMax = 1 << 30
    /// The longest outage in seconds.
    public static let secondsMax = 3600

    /// An unknown or invalid transfer of a plan.
    public struct PlanError: Error, CustomStringConvertible {
        public let description: String
    }

    /// Parses transfers separated by commas.
    public static func plan(_ text: String) throws(PlanError) -> [Transfer] {
        var transfers: [Transfer] = []
        for word in text.split(separator: ",") {
            guard let transfer = Transfer(word) else {
                throw PlanError(
                    description: "'\(word.prefix(40))' must be ttfb, down:N, up:N (N >= 100), pp:K[:S], conn, odrip:D, "
                        + "obulk:D:N[:A], oreq:D or oconn:D")
            }
            transfers.append(transfer)
        }
        return transfers
    }

    /// Parses `ttfb`, `down:N`, `up:N`, `pp:K[:S]`, `conn`, `odrip:D`, `obulk:D:N[:A]`, `oreq:D`, `oconn:D`.
    public init?(_ text: some StringProtocol) {
        let words = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let kind = words.first else { return nil }
        let numbers = words.dropFirst().compactMap { Int($0) }
        let needsWholeNumbers = kind != "obulk" || words.count < 4
        guard !needsWholeNumbers || numbers.count == words.count - 1 else { return nil }
        func number(_ index: Int, _ range: ClosedRange<Int>) -> Int? {
            guard words.count > index + 1, let value = Int(words[index + 1]), range.contains(value) else { return nil }
            return value
        }
        let bytes = 1...Self.bytesMax
        let seconds = 1...Self.secondsMax
        switch (kind, words.count) {
        case ("ttfb", 1): self = .ttfb
        case ("conn", 1): self = .connect
        case ("down", 2):
            guard let size = number(0, bytes) else { return nil }
            self = .down(bytes: size)
        case ("up", 2):
            guard let size = number(0, 100...Self.bytesMax) else { return nil }
            self = .up(bytes: size)
        case ("pp", 2...3):
            guard let count = number(0, 1...100_000) else { return nil }
            guard let size = words.count == 3 ? number(1, 100...Self.bytesMax) : 200 else { return nil }
            self = .pingPong(count: count, bytes: size)
        case ("odrip", 2):
            guard let length = number(0, seconds) else { return nil }
            self = .outageDrip(seconds: length)
        case ("obulk", 3...4):
            guard let length = number(0, seconds), let size = number(1, bytes) else { return nil }
            var after = 2000
            if words.count == 4 {
                guard let given = Double(words[3]), given >= 0, given <= 3600 else { return nil }
                after = Int((given * 1000).rounded())
            }
            self = .outageBulk(seconds: length, bytes: size, after: after)
        case ("oreq", 2):
            guard let length = number(0, seconds) else { return nil }
            self = .outageRequest(seconds: length)
        case ("oconn", 2):
            guard let length = number(0, seconds) else { return nil }
            self = .outageConnect(seconds: length)
        default: return nil
        }
    }

    /// The name of the kind.
    public var kind: String {
        switch self {
        case .ttfb: "ttfb"
        case .down: "down"
        case .up: "up"
        case .pingPong: "pp"
        case .connect: "conn"
        case .outageDrip: "odrip"
        case .outageBulk: "obulk"
        case .outageRequest: "oreq"
        case .outageConnect: "oconn"
        }
    }

    /// The first parameter of the transfer: bytes, a count, or seconds.
    public var number: Int? {
        switch self {
        case .ttfb, .connect: nil
        case .down(let bytes), .up(let bytes): bytes
        case .pingPong(let count, _): count
        case .outageDrip(let seconds), .outageBulk(let seconds, _, _), .outageRequest(let seconds),
            .outageConnect(let seconds):
            seconds
        }
    }

    /// The transfer as in a plan.
    public var text: String {
        let suffix =
            switch self {
            case .pingPong(_, let bytes): bytes == 200 ? "" : ":\(bytes)"
            case .outageBulk(_, let bytes, let after):
                after == 2000 ? ":\(bytes)" : ":\(bytes):\(Double(after) / 1000)"
            default: ""
            }
        return kind + (number.map { ":\($0)" } ?? "") + suffix
    }

    /// The length of the outage, if there is one.
    var outage: Nanoseconds? {
        switch self {
        case .outageDrip(let seconds), .outageBulk(let seconds, _, _), .outageRequest(let seconds),
            .outageConnect(let seconds):
            .seconds(Int64(seconds))
        default: nil
        }
    }
}
