internal import Determinism
internal import LinkModel
internal import NIOCore

/// The faults of rules about the bytes of a connection, whatever its protocol.
struct TrackedText {
    /// The search of one rule in one connection.
    struct Search {
        let rule: Int
        /// The states of the searches for the text, and for the text that the other peer must have sent.
        var state = 0
        var afterState = 0
        /// Whether the other peer has sent its text.
        var isArmed: Bool
    }

    /// A fault whose point has not been reached.
    struct Pending {
        let fault: ExchangeFault
        let point: StreamPoint
        let direction: Direction
        let offset: Int64

        var endsStream: Bool { if case .delay = fault.action { false } else { true } }
    }

    var searches: [Search] = []
    /// The version of the rules that ``searches`` belong to.
    var version = 0
    var pending: [Pending] = []
    /// The bytes that have been taken for the link, searched or not: the offset of the next ones.
    var entered = PerDirection(up: Int64(0), down: Int64(0))

    /// The faults of one connection that wait for their points; further matches have no effect.
    static let pendingMax = 64
}

extension ExchangeTracker {
    /// Counts bytes that enter the link, and searches them for the texts of rules. Called before they can be written.
    mutating func search(_ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        let start = text.entered[direction]
        defer { text.entered[direction] = start + Int64(bytes.readableBytes) }
        guard registry.hasTextRules, streams.isEmpty, !isEnded else { return }
        if text.version != registry.textVersion { beginSearches(&registry) }
        bytes.withUnsafeReadableBytes { bytes in
            for index in text.searches.indices {
                let rule = text.searches[index].rule
                guard let (match, search, after) = registry.textRule(rule), !match.text.isEmpty else { continue }
                if direction != match.sender.sendDirection {
                    if after.next(in: bytes[...], state: &text.searches[index].afterState) != nil {
                        text.searches[index].isArmed = true
                    }
                    continue
                }
                var position = 0
                while let count = search.next(in: bytes[position...], state: &text.searches[index].state) {
                    position += count
                    guard text.searches[index].isArmed else { continue }
                    text.searches[index].isArmed = match.after.isEmpty
                    let end = start + Int64(position)
                    let isBefore = match.point == .beforeMatch
                    addText(rule, isBefore ? max(0, end - Int64(search.count)) : end, &registry)
                }
            }
        }
        fireText(&registry)
    }

    /// Begins the searches of new rules, and ends those of removed ones.
    private mutating func beginSearches(_ registry: inout ExchangeRegistry) {
        text.version = registry.textVersion
        let numbers = registry.textRules
        text.searches.removeAll { !numbers.contains($0.rule) }
        let known = Set(text.searches.map(\.rule))
        for number in numbers where !known.contains(number) {
            guard let match = registry.textRule(number)?.match else { continue }
            text.searches.append(TrackedText.Search(rule: number, isArmed: match.after.isEmpty))
            if match.text.isEmpty { addText(number, 0, &registry) }
        }
    }

    /// Counts a match for its rule, whose fault waits for its point if the rule applies.
    private mutating func addText(_ rule: Int, _ offset: Int64, _ registry: inout ExchangeRegistry) {
        guard text.pending.count < TrackedText.pendingMax, let match = registry.textRule(rule)?.match else { return }
        let direction = match.sender.sendDirection
        let bytes = match.point == .beforeMatch ? 0 : registry.textBytes(rule)
        let (sum, isTooFar) = offset.addingReportingOverflow(bytes)
        if match.text.isEmpty, text.entered[direction] > sum { return }
        // What follows the point of a fault that ends the stream does not pass, so it is not counted.
        let isBeyondEnd = text.pending.contains { $0.endsStream && $0.direction == direction && $0.offset <= sum }
        guard !isTooFar, !isBeyondEnd, let fault = registry.matchText(rule) else { return }
        text.pending.append(
            TrackedText.Pending(fault: fault, point: match.point, direction: direction, offset: sum))
    }

    /// Returns the number of bytes that may be written before the next point of a fault of a text.
    func textAllowance(_ direction: Direction) -> Int64 {
        var limit = Int64.max
        for pending in text.pending where pending.direction == direction {
            limit = min(limit, max(0, pending.offset - written[direction]))
        }
        return limit
    }

    /// Fires the faults whose points have been reached.
    mutating func fireText(_ registry: inout ExchangeRegistry) {
        while hold == nil, !isEnded,
            let index = text.pending.firstIndex(where: { $0.offset <= written[$0.direction] })
        {
            let pending = text.pending.remove(at: index)
            let (fault, direction) = (pending.fault, pending.direction)
            if discardsFrom[direction] != nil { continue }
            firedPointName = pending.point.rawValue
            registry.recordFired(fault)
            report(
                .streamFault(
                    rule: fault.rule, point: pending.point, sender: direction.sender, offset: written[direction]))
            execute(fault, stalling: [direction])
        }
    }

    /// Executes a fault that is not about an exchange.
    ///
    /// - Parameter directions: The streams that a stall ends, unless the rule names a socket.
    mutating func execute(_ fault: ExchangeFault, stalling directions: [Direction]) {
        switch fault.action {
        case .reset: end(.abort(fault.point, fault.side), at: fault.point)
        case .close: end(.close(fault.point, fault.side), at: fault.point)
        case .stall:
            let stalled: [Direction] =
                switch fault.side {
                case .client: [.down]
                case .server: [.up]
                case .both: [.up, .down]
                case nil: directions
                }
            for direction in stalled { stall(direction, from: written[direction]) }
        case .delay(let time): hold = Hold(fault: fault, deadline: now + time, isReport: false)
        // Not possible in a rule of handshakes or of texts.
        case .resetStream, .resetConnection, .throttle, .respond, .report, .goAway, .limitStreams, .ignorePings, .ping,
            .blockWindow, .dropTrailers, .truncateHeaders:
            break
        }
    }
}
