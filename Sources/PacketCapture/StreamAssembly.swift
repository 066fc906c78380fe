/// Puts one direction of a connection in order, whatever was sent twice or overtook.
struct StreamAssembly: Sendable {
    /// The number of the next byte; `nil` until the connection's beginning has been seen.
    private var next: UInt32?
    /// Segments beyond a gap, by how far they are from the beginning.
    private var held: [UInt32: [UInt8]] = [:]
    private var heldBytes = 0
    /// Bytes are missing that were never captured: nothing more can be put in order.
    private(set) var isBroken = false

    /// How many bytes may wait beyond a gap.
    static let heldBytesMax = 1 << 20
    /// What a segment counts at least: it costs memory, however small it is.
    private static let segmentCostMin = 64
    /// Where the FIN stands, once it has been seen.
    private var fin: UInt32?

    /// Whether everything up to the FIN is in order.
    var isFinished: Bool { fin != nil && fin == next }

    /// The FIN has been seen; it stands at `sequence`.
    mutating func noteFin(at sequence: UInt32) { fin = fin ?? sequence }

    private mutating func breakOff() {
        isBroken = true
        held = [:]
        heldBytes = 0
    }

    private static func cost(_ payload: [UInt8]) -> Int { max(payload.count, segmentCostMin) }

    /// Whether the beginning has been seen.
    var hasBegun: Bool { next != nil }

    /// The SYN's number was `sequence`.
    mutating func begin(_ sequence: UInt32) { next = sequence &+ 1 }

    /// Takes a segment's bytes; gives those that are in order now.
    mutating func take(_ payload: [UInt8], at sequence: UInt32, length: Int) -> [UInt8] {
        guard let next, !isBroken, length > 0 else { return [] }
        let ahead = Int32(bitPattern: sequence &- next)
        if ahead <= 0 && Int(-Int64(ahead)) >= length { return [] }
        if payload.count < length {
            // Cut short when it was captured.
            breakOff()
            return []
        }
        if ahead > 0 {
            if (held[sequence]?.count ?? 0) < payload.count {
                heldBytes += Self.cost(payload) - (held[sequence].map(Self.cost) ?? 0)
                held[sequence] = payload
            }
            if heldBytes > Self.heldBytesMax { breakOff() }
            return []
        }
        var ready = Array(payload.dropFirst(Int(-Int64(ahead))))
        self.next = next &+ UInt32(ready.count)
        while let now = self.next, let piece = firstHeld(now) {
            ready += piece
            self.next = now &+ UInt32(piece.count)
        }
        return ready
    }

    /// The peer has acknowledged everything before `sequence`: what is missing of it was never captured.
    mutating func noteAcknowledged(_ sequence: UInt32) {
        guard let next, !isBroken else { return }
        // The FIN is a number without a byte.
        if Int32(bitPattern: sequence &- next) > 1 { breakOff() }
    }

    private mutating func firstHeld(_ now: UInt32) -> [UInt8]? {
        if let exact = held.removeValue(forKey: now) {
            heldBytes -= Self.cost(exact)
            return exact
        }
        for (sequence, bytes) in held {
            let behind = Int32(bitPattern: now &- sequence)
            if behind < 0 { continue }
            held[sequence] = nil
            heldBytes -= Self.cost(bytes)
            if Int(behind) < bytes.count { return Array(bytes.dropFirst(Int(behind))) }
        }
        return nil
    }
}
