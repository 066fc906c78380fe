internal import DequeModule

/// The packets queued for transmission, the one being transmitted included.
struct TransmitQueue: Sendable {
    private var packets = Deque<(departure: Int64, bytes: Int)>()
    /// The bytes of these packets.
    private(set) var bytes = 0

    var count: Int { packets.count }

    func isFull(_ limit: QueueLimit) -> Bool { limit.isFull(packets: packets.count, bytes: bytes) }

    mutating func append(bytes size: Int, departure: Int64) {
        packets.append((departure, size))
        bytes += size
    }

    mutating func popFirst() -> (departure: Int64, bytes: Int)? {
        guard let first = packets.popFirst() else { return nil }
        bytes -= first.bytes
        checkBytes()
        return first
    }

    /// Removes the packets that have been transmitted by `now`.
    mutating func release(at now: Int64) {
        while let first = packets.first, first.departure <= now {
            bytes -= first.bytes
            packets.removeFirst()
        }
        checkBytes()
    }

    private func checkBytes() {
        precondition(bytes >= 0 && (bytes == 0) == packets.isEmpty, "the byte count is not the sum of the packets")
        // Long queues would make debug builds quadratic.
        assert(packets.count > 64 || bytes == packets.reduce(0) { $0 + $1.bytes })
    }
}
