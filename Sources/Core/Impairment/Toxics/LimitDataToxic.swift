internal import Determinism
internal import NIOCore

/// A limit on the bytes of a stream: both sockets are closed when it is reached.
struct LimitDataToxic: ToxicMachine {
    let limit: Int64
    /// Bytes passed since the toxic was added to the connection, across updates.
    private(set) var bytesPassed: Int64
    private var isReached = false

    init(bytes: Int64, bytesPassed: Int64 = 0) {
        limit = max(0, bytes)
        self.bytesPassed = bytesPassed
    }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if isReached { return .close }
        guard !input.isEmpty else { return input.isAtEnd ? .finish : .idle }
        let room = limit - bytesPassed
        guard room > 0, let bytes = input.take(atMost: Int(min(room, 1 << 40))) else { return .close }
        bytesPassed += Int64(bytes.readableBytes)
        isReached = bytesPassed >= limit
        return .pass(bytes)
    }
}
