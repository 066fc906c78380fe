internal import LinkModel
internal import NIOCore

/// Passes so many bytes and no more, then closes both sockets.
struct LimitDataToxic: ToxicMachine {
    let limit: Int64
    /// Bytes that have passed since the toxic met the connection; outlasts updates.
    private(set) var passed: Int64
    private var isDue = false

    init(bytes: Int64, passed: Int64 = 0) {
        limit = max(0, bytes)
        self.passed = passed
    }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if isDue { return .close }
        guard !input.isEmpty else { return input.isAtEnd ? .finish : .idle }
        let room = limit - passed
        guard room > 0, let bytes = input.take(atMost: Int(min(room, 1 << 40))) else { return .close }
        passed += Int64(bytes.readableBytes)
        isDue = passed >= limit
        return .pass(bytes)
    }
}
