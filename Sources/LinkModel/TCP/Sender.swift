internal import DequeModule

/// The sending half of an end: what is outstanding, what is lost, and what goes out next.
///
/// ACKs and timers come in; segments are what it wants to send. Loss is found by RACK (RFC 8985: lost is what was sent
/// before something that has arrived), a lost tail by a probe, and everything else by the retransmission time-out,
/// which F-RTO (RFC 5682) and timestamps (Eifel, RFC 4015) take back when it was wrong. While repairing, the window
/// falls by proportional rate reduction (PRR, RFC 6937). The order of things is Linux's (`tcp_ack` in `tcp_input.c`).
struct Sender: Sendable {
    /// A segment that has been sent and not acknowledged.
    struct Outstanding: Sendable {
        let start: Int64
        let end: Int64
        let isFinal: Bool
        /// When it was last sent.
        var sentAt: Int64
        var isSacked = false
        var isLost = false
        /// A retransmission of it is under way.
        var isRepairing = false
        /// It has been sent more than once.
        var wasRepeated = false
    }

    enum State: Sendable { case open, reducing, recovery, loss }
    enum Timer: Sendable { case none, retransmit, probe, reorder, persist }

    /// A segment to send now.
    struct Order: Sendable {
        let start: Int64
        let end: Int64
        let isFinal: Bool
        /// It asks whether a closed window has opened.
        var isProbe = false
    }

    // What there is to send.
    /// The end of what has been handed over, the FIN included.
    var streamEnd: Int64 = 0
    var isFinished = false
    var next: Int64 = 0
    var acknowledged: Int64 = 0
    /// The end of what the receiver can take.
    var windowEnd: Int64 = .max
    var outstanding = Deque<Outstanding>()

    // Linux's counters of it.
    var sackedCount = 0
    var lostCount = 0
    var repairCount = 0
    var delivered: Int64 = 0

    // Congestion.
    var state = State.open
    var cubic: Cubic
    var estimator: RoundTripEstimator
    /// An episode of repair ends with this byte.
    var episodeEnd: Int64 = 0
    var priorWindow: Int64 = 0
    var priorThreshold: Int64 = 0
    var reductionDelivered: Int64 = 0
    var reductionSent: Int64 = 0
    // Whether the window limited what was sent (`tcp_cwnd_validate`).
    var isWindowLimited = false
    var flightMax = 0
    var usageEnd: Int64 = 0
    var lastSent: Int64 = 0

    // Taking back.
    var canUndo = false
    /// Repairs not yet reported as duplicates; -1 before the first.
    var repairsToExplain = -1
    /// When the first repair of an episode went out; 0 if none has.
    var firstRepair: Int64 = 0
    var isProbingTimeout = false
    var timeouts = 0

    // RACK.
    var newestSentAt: Int64 = -1
    var newestEnd: Int64 = 0
    var newestRoundTrip: Int64 = 0
    var hasAdvanced = false
    // What the network has taught about reordering: whether there is any, and for how many quarters of the shortest
    // round trip to wait for it (RFC 8985, 6.2; `tcp_check_sack_reordering`, `tcp_rack_update_reo_wnd`).
    var hasSeenReordering = false
    var reorderingSteps: Int64 = 1
    var reorderingEpisodes = 0
    var reorderingEnd: Int64 = 0
    /// The first byte of the highest segment that has been SACKed.
    var highestSacked: Int64 = 0

    // Timers.
    var timer = Timer.none
    var timerSpan: Int64 = 0
    /// Counts arming, so that the driver sees a timer armed again with the same span.
    var timerGeneration = 0
    /// The ACK being read has set the timer for what may only have been reordered.
    var waitsForReordering = false
    /// Probes of a closed window since it closed.
    var persistTries: Int64 = 0
    var probeEnd: Int64?
    var probeWasRepeat = false

    let stack: StackPreset
    static let segmentMax = Int64(PacketSize.segmentMax)
    /// A stream is no longer, so that positions and windows beyond it stay within 64 bits: 4 EiB, 11 years at 100 Gbit/s.
    static let streamMax: Int64 = 1 << 62
    static let millisecond: Int64 = 1_000_000
    /// A reordering window that has been widened is kept for so many recoveries (`TCP_RACK_RECOVERY_THRESH`).
    static let reorderingEpisodesMax = 16
    /// Segments beyond a gap that prove a loss without waiting (RFC 5681, `tcp_reordering`).
    static let duplicateThreshold = 3

    /// - Parameter first: Where the stream begins; 0 but for tests of long ones.
    init(_ stack: StackPreset, first: Int64 = 0) {
        streamEnd = first
        next = first
        acknowledged = first
        self.stack = stack
        cubic = Cubic(initialWindow: stack.initialWindow)
        estimator = RoundTripEstimator(stack)
    }

    // MARK: Facts

    /// The application hands over `bytes`.
    mutating func write(_ bytes: Int64) { streamEnd = min(streamEnd.addingSaturating(bytes), Self.streamMax) }

    /// The application closes: a FIN follows the last byte.
    mutating func finish() {
        isFinished = true
        streamEnd += 1
    }

    /// Everything has been acknowledged.
    var isIdle: Bool { outstanding.isEmpty && next == streamEnd }
    /// Bytes handed over and not acknowledged.
    var bytesHeld: Int64 { streamEnd - acknowledged }
    /// Bytes handed over and never sent.
    var bytesUnsent: Int64 { max(0, streamEnd - (isFinished ? 1 : 0) - next) }
    /// The FIN has been acknowledged.
    var isClosed: Bool { isFinished && acknowledged == streamEnd }

    /// The handshake is complete.
    mutating func begin(roundTrip: Int64?, afterRepeats repeats: Int, window: Int64, at now: Int64) {
        if let roundTrip {
            estimator.take(roundTrip, acknowledged: acknowledged, next: next)
            estimator.takeShortest(roundTrip)
        } else {
            estimator.fallBack()
        }
        if repeats > 1 { cubic.window = 1 }  // tcp_init_transfer
        windowEnd = window
        cubic.beginRound(next: next, at: now)
        lastSent = now
    }

    var inFlight: Int { outstanding.count - sackedCount - lostCount + repairCount }

    /// Takes an ACK and gives what to send because of it.
    mutating func take(_ ack: Segment, at now: Int64, _ orders: inout [Order]) {
        guard ack.acknowledges >= acknowledged else { return }
        windowEnd = max(windowEnd == .max ? 0 : windowEnd, ack.acknowledges + ack.window)
        let isAdvance = ack.acknowledges > acknowledged
        let priorFlightLost = lostCount
        let priorDelivered = delivered
        var facts = AckFacts()

        let priorHighest = sackedCount > 0 ? highestSacked : acknowledged
        if ack.saysDuplicate { takeDuplicateReport() }
        if ack.sacks.count > 0 { mark(ack.sacks, from: ack.acknowledges, &facts, at: now) }
        if isAdvance { clear(upTo: ack.acknowledges, &facts, at: now) }
        // Something that was sent once has come after something sent later.
        if let lowest = facts.lowestOriginal, lowest < priorHighest, state != .loss || canUndo {
            hasSeenReordering = true
        }
        measure(ack, facts, isAdvance: isAdvance, at: now)
        if isAdvance { timeouts = 0 }
        if probeEnd != nil { takeProbeAnswer(ack, isAdvance: isAdvance, facts) }

        let newlyDelivered = delivered - priorDelivered
        waitsForReordering = false
        var mayRepair = false
        var mayOnlySendNew = false
        if outstanding.isEmpty { stopTimer() }
        if isAdvance || newlyDelivered > 0 || ack.saysDuplicate || state != .open {
            (mayRepair, mayOnlySendNew) = react(ack, facts, isAdvance: isAdvance, at: now)
        }
        if isAdvance && !outstanding.isEmpty && !waitsForReordering { setTimer(isAdvancing: true, at: now) }

        if state == .recovery || state == .reducing {
            reduce(newlyDelivered, isAdvance: isAdvance, hasNewLoss: lostCount > priorFlightLost)
        } else if isAdvance && newlyDelivered > 0 && isLimitedByWindow {
            cubic.grow(newlyDelivered, at: now)
        }
        if mayOnlySendNew {
            sendNew(at: now, &orders)
            if next <= episodeEnd {
                isProbingTimeout = false
                mayRepair = true
            }
        }
        if mayRepair { repair(at: now, &orders) }
        sendNew(at: now, &orders)
    }

    /// Sends what the window allows; to be called after ``write(_:)`` and ``finish()``.
    mutating func push(at now: Int64, _ orders: inout [Order]) { sendNew(at: now, &orders) }

    /// The timer has expired.
    mutating func timerFired(at now: Int64, _ orders: inout [Order]) {
        let fired = timer
        timer = .none
        if fired == .persist { return persist(at: now, &orders) }
        guard !outstanding.isEmpty else { return }
        switch fired {
        case .none, .persist: break
        case .probe: probe(at: now, &orders)
        case .retransmit: timeOut(at: now, &orders)
        case .reorder:
            let before = inFlight
            let wait = findLosses(at: now)
            if inFlight != before {
                if state != .recovery {
                    enterRecovery()
                    reduce(1, isAdvance: false, hasNewLoss: true)
                }
                repair(at: now, &orders)
            } else if wait > 0 {
                arm(.reorder, wait + 2 * Self.millisecond)
            }
            if timer == .none { rearmTimeout(from: .reorder, at: now) }
        }
    }

    // MARK: Reading an ACK

    struct AckFacts {
        /// When the first newly acknowledged segment that went out only once was sent.
        var firstSent: Int64?
        /// The same of the last, the shortest round trip.
        var lastSent: Int64?
        var sackedSent: Int64?
        var coversRepeat = false
        /// A segment from before the time-out, sent only once, has arrived.
        var originalArrived = false
        var newlySacked = false
        /// The first byte of the lowest newly acknowledged segment that went out only once.
        var lowestOriginal: Int64?
    }

    /// A segment came twice (D-SACK).
    mutating func takeDuplicateReport() {
        if repairsToExplain > 0 && canUndo { repairsToExplain -= 1 }
        if probeEnd != nil && probeWasRepeat { return }
        // Once a round trip at most.
        guard acknowledged >= reorderingEnd else { return }
        reorderingSteps = min(255, reorderingSteps + 1)
        reorderingEpisodes = Self.reorderingEpisodesMax
        reorderingEnd = next
    }

    mutating func mark(_ blocks: SackBlocks, from base: Int64, _ facts: inout AckFacts, at now: Int64) {
        for position in 0..<blocks.count {
            let block = blocks.range(position, from: base)
            var index = firstOutstanding(from: block.lowerBound)
            while index < outstanding.count, outstanding[index].end <= block.upperBound {
                defer { index += 1 }
                if outstanding[index].isSacked { continue }
                outstanding[index].isSacked = true
                sackedCount += 1
                delivered += 1
                facts.newlySacked = true
                if outstanding[index].isRepairing {
                    outstanding[index].isRepairing = false
                    repairCount -= 1
                }
                if outstanding[index].isLost {
                    outstanding[index].isLost = false
                    lostCount -= 1
                }
                let segment = outstanding[index]
                if !segment.wasRepeated {
                    if segment.end <= episodeEnd { facts.originalArrived = true }
                    facts.sackedSent = min(facts.sackedSent ?? .max, segment.sentAt)
                    facts.lowestOriginal = min(facts.lowestOriginal ?? .max, segment.start)
                }
                highestSacked = sackedCount == 1 ? segment.start : max(highestSacked, segment.start)
                advanceRack(segment, at: now)
            }
        }
    }

    func firstOutstanding(from start: Int64) -> Int {
        var low = 0
        var high = outstanding.count
        while low < high {
            let middle = (low + high) / 2
            if outstanding[middle].start < start { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func clear(upTo end: Int64, _ facts: inout AckFacts, at now: Int64) {
        while let segment = outstanding.first, segment.end <= end {
            outstanding.removeFirst()
            if segment.isRepairing { repairCount -= 1 }
            if segment.wasRepeated {
                facts.coversRepeat = true
            } else if !segment.isSacked {
                if facts.firstSent == nil { facts.firstSent = segment.sentAt }
                facts.lastSent = segment.sentAt
                facts.lowestOriginal = min(facts.lowestOriginal ?? .max, segment.start)
                if segment.end <= episodeEnd { facts.originalArrived = true }
            }
            if segment.isSacked {
                sackedCount -= 1
            } else {
                delivered += 1
                advanceRack(segment, at: now)
            }
            if segment.isLost { lostCount -= 1 }
        }
        acknowledged = end
    }

    mutating func measure(_ ack: Segment, _ facts: AckFacts, isAdvance: Bool, at now: Int64) {
        var sample: Int64?
        if let sent = facts.firstSent, !facts.coversRepeat {
            sample = now - sent
            estimator.takeShortest(now - (facts.lastSent ?? sent))
        } else if let sent = facts.sackedSent {
            sample = now - sent
            estimator.takeShortest(now - sent)
        }
        let measured = sample
        if sample == nil && isAdvance && ack.echo > 0 { sample = max(now - ack.echo + 1, Self.millisecond) }
        guard let sample else { return }
        estimator.take(sample, acknowledged: acknowledged, next: next)
        if let measured, isAdvance {
            let shortest = facts.lastSent.map { now - $0 } ?? measured
            cubic.take(roundTrip: shortest, acknowledged: acknowledged, next: next, at: now)
        }
    }

    mutating func advanceRack(_ segment: Outstanding, at now: Int64) {
        let roundTrip = now - segment.sentAt
        if segment.wasRepeated && roundTrip < estimator.shortest { return }  // the first copy has arrived
        hasAdvanced = true
        newestRoundTrip = roundTrip
        if (segment.sentAt, segment.end) > (newestSentAt, newestEnd) {
            newestSentAt = segment.sentAt
            newestEnd = segment.end
        }
    }

    mutating func takeProbeAnswer(_ ack: Segment, isAdvance: Bool, _ facts: AckFacts) {
        guard let end = probeEnd, ack.acknowledges >= end else { return }
        if !probeWasRepeat || ack.saysDuplicate {
            probeEnd = nil
        } else if ack.acknowledges > end {
            // The probe repaired a loss: the window falls as for any other.
            beginReduction()
            cubic.window = cubic.threshold
            state = .open
        } else if !isAdvance && !facts.newlySacked {
            probeEnd = nil
        }
    }
}
