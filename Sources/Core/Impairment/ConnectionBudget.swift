/// The bytes that all connections of a link hold, and the share that each stream may hold.
struct ConnectionBudget {
    let limits: BufferLimits
    /// Bytes in all conduits.
    private(set) var bytesHeld = 0
    /// The part of ``bytesHeld`` that waits before toxics.
    private(set) var toxicBytesHeld = 0

    init(_ limits: BufferLimits) { self.limits = limits }

    /// Counts bytes that have entered a stream (positive) or left it (negative).
    mutating func changeStreamBytes(by change: Int) {
        bytesHeld += change
        precondition(bytesHeld >= toxicBytesHeld, "more bytes have left the streams than entered them")
    }

    /// Counts bytes that have entered the input queues of toxics (positive) or left them (negative).
    mutating func changeToxicBytes(by change: Int) {
        bytesHeld += change
        toxicBytesHeld += change
        precondition(toxicBytesHeld >= 0, "more bytes have left the toxics than entered them")
    }

    /// Returns the bytes that a stream may hold after its toxics.
    ///
    /// The result is the stream's share, limited to the unused part of the total. Other streams may hold more than
    /// their shares, because shares shrink when connections are added. All streams together therefore hold at most
    /// `bytesMaxTotal` plus, per stream, one smallest share and one read.
    func streamShare(connections: Int) -> Int {
        let left = limits.bytesMaxTotal - (bytesHeld - toxicBytesHeld)
        return min(limits.bytesMax(connections: connections), max(limits.bytesMinPerDirection, left))
    }

    /// Returns the bytes that may wait before the toxics of a stream: its share, limited to the unused part of
    /// the total.
    func toxicShare(connections: Int) -> Int {
        let left = limits.toxicBytesMaxTotal - toxicBytesHeld
        return min(limits.toxicBytesMax(connections: connections), max(limits.bytesMinPerDirection, left))
    }

    /// Returns the bytes that a receiving socket may hold unsent.
    func socketShare(connections: Int) -> Int {
        min(limits.socketBytesMax, limits.bytesMax(connections: connections))
    }
}
