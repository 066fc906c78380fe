internal import DequeModule

/// What waits for a link, the packet being sent included.
struct Departures: Sendable {
    private var packets = Deque<(sent: Int64, bytes: Int)>()
    /// Bytes of these packets.
    private(set) var bytes = 0

    var count: Int { packets.count }
    /// When the first will have been sent.
    var first: Int64? { packets.first?.sent }

    func isFull(_ limit: QueueLimit) -> Bool { limit.isFull(packets: packets.count, bytes: bytes) }

    mutating func append(bytes size: Int, sent: Int64) {
        packets.append((sent, size))
        bytes += size
    }

    /// Takes the first out.
    mutating func popFirst() -> (sent: Int64, bytes: Int)? {
        guard let first = packets.popFirst() else { return nil }
        bytes -= first.bytes
        return first
    }

    /// Forgets what has been sent by `now`.
    mutating func release(at now: Int64) {
        while let first = packets.first, first.sent <= now {
            bytes -= first.bytes
            packets.removeFirst()
        }
    }
}
