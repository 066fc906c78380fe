/// The reassembly of one direction of a TCP connection from segments that may be repeated or out of order.
struct StreamReassembler: Sendable {
    /// The sequence number of the next byte; `nil` until the SYN has been seen.
    private var next: UInt32?
    /// Segments beyond a gap, by sequence number.
    private var held: [UInt32: [UInt8]] = [:]
    private var heldBytes = 0
    /// Whether bytes are missing that were not captured. Nothing can be reassembled after them.
    private(set) var isBroken = false

    /// The maximum number of bytes held beyond a gap.
    static let heldBytesMax = 1 << 20
    /// The minimum number of bytes counted for a held segment, because of its memory overhead.
    private static let segmentCostMin = 64
    /// The sequence number of the FIN, once it has been seen.
    private var fin: UInt32?

    /// Whether all bytes up to the FIN have been reassembled.
    var isFinished: Bool { fin != nil && fin == next }

    /// Records the sequence number of the FIN.
    mutating func recordFIN(at sequenceNumber: UInt32) { fin = fin ?? sequenceNumber }

    private mutating func recordGap() {
        isBroken = true
        held = [:]
        heldBytes = 0
    }

    private static func cost(_ payload: [UInt8]) -> Int { max(payload.count, segmentCostMin) }

    /// Whether the SYN has been seen.
    var hasStarted: Bool { next != nil }

    /// Starts the stream after the SYN.
    mutating func start(afterSYN sequenceNumber: UInt32) { next = sequenceNumber &+ 1 }

    /// Inserts a segment's payload. Returns the bytes that are in order now.
    ///
    /// - Parameter length: The payload's length on the wire; more than `payload` has if the capture truncated it.
    mutating func insert(_ payload: [UInt8], at sequenceNumber: UInt32, length: Int) -> [UInt8] {
        guard let next, !isBroken, length > 0 else { return [] }
        let ahead = Int32(bitPattern: sequenceNumber &- next)
        if ahead <= 0 && Int(-Int64(ahead)) >= length { return [] }
        if payload.count < length {
            recordGap()
            return []
        }
        if ahead > 0 {
            if (held[sequenceNumber]?.count ?? 0) < payload.count {
                heldBytes += Self.cost(payload) - (held[sequenceNumber].map(Self.cost) ?? 0)
                held[sequenceNumber] = payload
            }
            if heldBytes > Self.heldBytesMax { recordGap() }
            return []
        }
        var ready = Array(payload.dropFirst(Int(-Int64(ahead))))
        self.next = next &+ UInt32(ready.count)
        while let position = self.next, let piece = removeHeld(at: position) {
            ready += piece
            self.next = position &+ UInt32(piece.count)
        }
        return ready
    }

    /// Records that the peer has acknowledged all bytes before `sequenceNumber`. Those that are missing were not
    /// captured.
    mutating func recordAcknowledgment(_ sequenceNumber: UInt32) {
        guard let next, !isBroken else { return }
        // The FIN takes one sequence number without a byte.
        if Int32(bitPattern: sequenceNumber &- next) > 1 { recordGap() }
    }

    /// Removes a held segment that contains `position`. Returns its bytes from there on.
    private mutating func removeHeld(at position: UInt32) -> [UInt8]? {
        if let exact = held.removeValue(forKey: position) {
            heldBytes -= Self.cost(exact)
            return exact
        }
        for (sequenceNumber, bytes) in held {
            let behind = Int32(bitPattern: position &- sequenceNumber)
            if behind < 0 { continue }
            held[sequenceNumber] = nil
            heldBytes -= Self.cost(bytes)
            if Int(behind) < bytes.count { return Array(bytes.dropFirst(Int(behind))) }
        }
        return nil
    }
}
