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
    private(set) var streamEnd: Int64 = 0
    private(set) var isFinished = false
    private(set) var next: Int64 = 0
    private(set) var acknowledged: Int64 = 0
    /// The end of what the receiver can take.
    private(set) var windowEnd: Int64 = .max
    private(set) var outstanding = Deque<Outstanding>()

    // Linux's counters of it.
    private var sackedCount = 0
    private var lostCount = 0
    private var repairCount = 0
    private var delivered: Int64 = 0

    // Congestion.
    private(set) var state = State.open
    private(set) var cubic: Cubic
    private(set) var estimator: RoundTripEstimator
    /// An episode of repair ends with this byte.
    private var episodeEnd: Int64 = 0
    private var priorWindow: Int64 = 0
    private var priorThreshold: Int64 = 0
    private var reductionDelivered: Int64 = 0
    private var reductionSent: Int64 = 0
    // Whether the window limited what was sent (`tcp_cwnd_validate`).
    private var isWindowLimited = false
    private var flightMax = 0
    private var usageEnd: Int64 = 0
    private var lastSent: Int64 = 0

    // Taking back.
    private var canUndo = false
    /// Repairs not yet reported as duplicates; -1 before the first.
    private var repairsToExplain = -1
    /// When the first repair of an episode went out; 0 if none has.
    private var firstRepair: Int64 = 0
    private var isProbingTimeout = false
    private var timeouts = 0

    // RACK.
    private var newestSentAt: Int64 = -1
    private var newestEnd: Int64 = 0
    private var newestRoundTrip: Int64 = 0
    private var hasAdvanced = false
    // What the network has taught about reordering: whether there is any, and for how many quarters of the shortest
    // round trip to wait for it (RFC 8985, 6.2; `tcp_check_sack_reordering`, `tcp_rack_update_reo_wnd`).
    private var hasSeenReordering = false
    private var reorderingSteps: Int64 = 1
    private var reorderingEpisodes = 0
    private var reorderingEnd: Int64 = 0
    /// The first byte of the highest segment that has been SACKed.
    private var highestSacked: Int64 = 0

    // Timers.
    private(set) var timer = Timer.none
    private(set) var timerSpan: Int64 = 0
    /// Counts arming, so that the driver sees a timer armed again with the same span.
    private(set) var timerGeneration = 0
    /// The ACK being read has set the timer for what may only have been reordered.
    private var waitsForReordering = false
    /// Probes of a closed window since it closed.
    private var persistTries: Int64 = 0
    private var probeEnd: Int64?
    private var probeWasRepeat = false

    private let stack: StackPreset
    private static let segmentMax = Int64(PacketSize.segmentMax)
    private static let millisecond: Int64 = 1_000_000
    /// A reordering window that has been widened is kept for so many recoveries (`TCP_RACK_RECOVERY_THRESH`).
    private static let reorderingEpisodesMax = 16
    /// Segments beyond a gap that prove a loss without waiting (RFC 5681, `tcp_reordering`).
    private static let duplicateThreshold = 3

    init(_ stack: StackPreset) {
        self.stack = stack
        cubic = Cubic(initialWindow: stack.initialWindow)
        estimator = RoundTripEstimator(stack)
    }

    // MARK: Facts

    /// The application hands over `bytes`.
    mutating func write(_ bytes: Int64) { streamEnd += bytes }

    /// The application closes: a FIN follows the last byte.
    mutating func finish() {
        isFinished = true
        streamEnd += 1
    }

    /// Everything has been acknowledged.
    var isIdle: Bool { outstanding.isEmpty && next == streamEnd }
    /// Bytes handed over and not acknowledged.
    var bytesHeld: Int64 { streamEnd - acknowledged }
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

    private var inFlight: Int { outstanding.count - sackedCount - lostCount + repairCount }

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

    private struct AckFacts {
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
    private mutating func takeDuplicateReport() {
        if repairsToExplain > 0 && canUndo { repairsToExplain -= 1 }
        if probeEnd != nil && probeWasRepeat { return }
        // Once a round trip at most.
        guard acknowledged >= reorderingEnd else { return }
        reorderingSteps = min(255, reorderingSteps + 1)
        reorderingEpisodes = Self.reorderingEpisodesMax
        reorderingEnd = next
    }

    private mutating func mark(_ blocks: SackBlocks, from base: Int64, _ facts: inout AckFacts, at now: Int64) {
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

    private func firstOutstanding(from start: Int64) -> Int {
        var low = 0
        var high = outstanding.count
        while low < high {
            let middle = (low + high) / 2
            if outstanding[middle].start < start { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func clear(upTo end: Int64, _ facts: inout AckFacts, at now: Int64) {
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

    private mutating func measure(_ ack: Segment, _ facts: AckFacts, isAdvance: Bool, at now: Int64) {
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

    private mutating func advanceRack(_ segment: Outstanding, at now: Int64) {
        let roundTrip = now - segment.sentAt
        if segment.wasRepeated && roundTrip < estimator.shortest { return }  // the first copy has arrived
        hasAdvanced = true
        newestRoundTrip = roundTrip
        if (segment.sentAt, segment.end) > (newestSentAt, newestEnd) {
            newestSentAt = segment.sentAt
            newestEnd = segment.end
        }
    }

    private mutating func takeProbeAnswer(_ ack: Segment, isAdvance: Bool, _ facts: AckFacts) {
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

    // MARK: States (`tcp_fastretrans_alert`)

    /// Gives whether lost segments may be sent again, and whether new ones shall be tried first.
    private mutating func react(
        _ ack: Segment, _ facts: AckFacts, isAdvance: Bool, at now: Int64
    ) -> (mayRepair: Bool, mayOnlySendNew: Bool) {
        if state == .open {
            firstRepair = 0
        } else if acknowledged >= episodeEnd {
            if state == .recovery {
                noteEndOfRecovery()
                if mayTakeBack(ack) {
                    takeBack(clearingLosses: false)
                } else if canUndo {
                    cubic.window = max(2, cubic.threshold)
                }
                state = .open
                canUndo = false
            } else if state == .reducing {
                state = .open
            }
        }
        switch state {
        case .recovery:
            if isAdvance && mayTakeBackPartly(ack) {
                takeBack(clearingLosses: true)
                state = .open
            }
            noteLosses(at: now)
            return (true, false)
        case .loss:
            if let verdict = reactInLoss(ack, facts, isAdvance: isAdvance) {
                if verdict.mayOnlySendNew { return verdict }
                let before = repairCount
                noteLosses(at: now)
                if state != .open && repairCount >= before { return verdict }
            } else {
                noteLosses(at: now)
            }
            // A repair was lost too, or the time-out was wrong and something else is lost.
            if lostCount > 0 { enterRecovery() }
            return (true, false)
        case .open, .reducing:
            if canUndo && repairsToExplain == 0 { takeBack(clearingLosses: false) }
            noteLosses(at: now)
            guard lostCount > 0 else { return (false, false) }
            enterRecovery()
            return (true, false)
        }
    }

    /// `tcp_process_loss`; `nil` once the time-out has been taken back.
    private mutating func reactInLoss(
        _ ack: Segment, _ facts: AckFacts, isAdvance: Bool
    ) -> (mayRepair: Bool, mayOnlySendNew: Bool)? {
        let hasRecovered = acknowledged >= episodeEnd
        if isAdvance && mayTakeBack(ack) {
            takeBack(clearingLosses: true)
            state = .open
            return nil
        }
        if isProbingTimeout {
            // F-RTO: the time-out was wrong if something sent before it, and not since, has arrived.
            if facts.originalArrived && (isAdvance || facts.newlySacked) {
                takeBack(clearingLosses: true)
                state = .open
                return nil
            }
            if next > episodeEnd {
                if facts.newlySacked || (!isAdvance && !ack.saysDuplicate) { isProbingTimeout = false }
            } else if isAdvance && !hasRecovered {
                episodeEnd = next
                if nextFits { return (false, true) }
                isProbingTimeout = false
            }
        }
        if hasRecovered {
            state = .open
            canUndo = false
            isProbingTimeout = false
            return (false, false)
        }
        return (true, false)
    }

    private func mayTakeBack(_ ack: Segment) -> Bool {
        canUndo && (repairsToExplain == 0 || isOlderThanRepair(ack))
    }

    /// Eifel: the ACK echoes a timestamp from before the first repair, so it answers the first copy.
    private func isOlderThanRepair(_ ack: Segment) -> Bool {
        firstRepair > 0 && ack.echo > 0 && ack.echo <= firstRepair
    }

    private func mayTakeBackPartly(_ ack: Segment) -> Bool {
        canUndo && isOlderThanRepair(ack) && repairCount == 0
    }

    /// The window as it was before the episode (`tcp_undo_cwnd_reduction`).
    private mutating func takeBack(clearingLosses: Bool) {
        if clearingLosses {
            for index in outstanding.indices where outstanding[index].isLost { outstanding[index].isLost = false }
            lostCount = 0
        }
        cubic.window = max(cubic.window, priorWindow)
        cubic.threshold = max(cubic.threshold, priorThreshold)
        canUndo = false
        isProbingTimeout = false
        timeouts = 0
        hasAdvanced = true
    }

    private mutating func beginReduction() {
        episodeEnd = next
        probeEnd = nil
        cubic.count = 0
        priorWindow = cubic.window
        reductionDelivered = 0
        reductionSent = 0
        cubic.threshold = cubic.thresholdAfterLoss()
    }

    private mutating func enterRecovery() {
        noteUndo()
        if state != .reducing {
            priorThreshold = currentThreshold
            beginReduction()
        }
        state = .recovery
    }

    private mutating func noteUndo() {
        canUndo = true
        repairsToExplain = repairCount > 0 ? repairCount : -1
    }

    /// `tcp_current_ssthresh`.
    private var currentThreshold: Int64 {
        state == .open || state == .loss
            ? max(cubic.threshold, cubic.window * 3 / 4) : cubic.threshold
    }

    /// PRR: what may be sent follows what has arrived (`tcp_cwnd_reduction`).
    private mutating func reduce(_ newlyDelivered: Int64, isAdvance: Bool, hasNewLoss: Bool) {
        guard newlyDelivered > 0, priorWindow > 0 else { return }
        reductionDelivered += newlyDelivered
        let room = cubic.threshold - Int64(inFlight)
        var allowance: Int64
        if room < 0 {
            allowance = (cubic.threshold * reductionDelivered + priorWindow - 1) / priorWindow - reductionSent
        } else {
            allowance = max(reductionDelivered - reductionSent, newlyDelivered)
            if isAdvance && !hasNewLoss { allowance += 1 }
            allowance = min(room, allowance)
        }
        allowance = max(allowance, reductionSent > 0 ? 0 : 1)
        cubic.window = Int64(inFlight) + allowance
    }

    // MARK: Loss detection (RACK)

    private mutating func noteLosses(at now: Int64) {
        guard hasAdvanced else { return }
        hasAdvanced = false
        let wait = findLosses(at: now)
        if wait > 0 {
            arm(.reorder, wait + 2 * Self.millisecond)
            waitsForReordering = true
        }
    }

    /// Marks what is lost; gives how long to wait for what may only have been reordered.
    private mutating func findLosses(at now: Int64) -> Int64 {
        guard newestSentAt >= 0 else { return 0 }
        let tolerance = reorderingTolerance
        let isInOrder = repairCount == 0 && lostCount == 0 && sackedCount == 0
        var wait: Int64 = 0
        for index in outstanding.indices {
            let segment = outstanding[index]
            if segment.isSacked || (segment.isLost && !segment.isRepairing) { continue }
            guard (segment.sentAt, segment.end) < (newestSentAt, newestEnd) else {
                if isInOrder { break }
                continue
            }
            let left = newestRoundTrip + tolerance - (now - segment.sentAt)
            if left <= 0 { markLost(index) } else { wait = max(wait, left) }
        }
        return wait
    }

    /// How much later than something sent after it a segment may come (`tcp_rack_reo_wnd`).
    private var reorderingTolerance: Int64 {
        let hasProof = state == .recovery || state == .loss || sackedCount >= Self.duplicateThreshold
        if hasProof && !hasSeenReordering { return 0 }
        return min(estimator.shortest / 4 * reorderingSteps, estimator.smoothed)
    }

    private mutating func noteEndOfRecovery() {
        guard reorderingEpisodes > 0 else { return }
        reorderingEpisodes -= 1
        if reorderingEpisodes == 0 { reorderingSteps = 1 }
    }

    private mutating func markLost(_ index: Int) {
        if outstanding[index].isRepairing {
            outstanding[index].isRepairing = false
            repairCount -= 1
        }
        if !outstanding[index].isLost {
            outstanding[index].isLost = true
            lostCount += 1
        }
    }

    // MARK: Time-outs

    private mutating func timeOut(at now: Int64, _ orders: inout [Order]) {
        let isNew = state == .open || state == .reducing
        for index in outstanding.indices where !outstanding[index].isSacked {
            // What was sent a moment ago is not given up yet.
            if index > 0 && newestSentAt >= 0 && newestRoundTrip - (now - outstanding[index].sentAt) > 0 { continue }
            markLost(index)
        }
        if state == .open || episodeEnd <= acknowledged || (state == .loss && timeouts == 0) {
            priorThreshold = currentThreshold
            priorWindow = cubic.window
            cubic.threshold = cubic.thresholdAfterLoss()
            noteUndo()
        }
        cubic.window = Int64(inFlight) + 1
        cubic.count = 0
        cubic.forget()
        cubic.beginRound(next: next, at: now)
        state = .loss
        episodeEnd = next
        probeEnd = nil
        isProbingTimeout = isNew || timeouts > 0
        timeouts += 1
        `repeat`(0, at: now, &orders)
        estimator.backOff()
        arm(.retransmit, estimator.timeout)
    }

    /// The tail loss probe: something new if there is something, otherwise the last segment again.
    private mutating func probe(at now: Int64, _ orders: inout [Order]) {
        if probeEnd == nil {
            if nextFits {
                sendOne(at: now, &orders)
                probeWasRepeat = false
            } else {
                let last = outstanding.count - 1
                outstanding[last].sentAt = now
                outstanding[last].wasRepeated = true
                let segment = outstanding[last]
                if firstRepair == 0 { firstRepair = now }
                orders.append(Order(start: segment.start, end: segment.end, isFinal: segment.isFinal))
                lastSent = now
                probeWasRepeat = true
            }
            probeEnd = next
            arm(.retransmit, estimator.timeout)
        } else {
            rearmTimeout(from: .probe, at: now)
        }
    }

    /// After an ACK or new data: the probe if it would come before the time-out, otherwise the time-out.
    private mutating func setTimer(isAdvancing: Bool, at now: Int64) {
        if !setProbe(isAdvancing: isAdvancing, at: now) { rearmTimeout(from: timer, at: now) }
    }

    /// `tcp_schedule_loss_probe`.
    private mutating func setProbe(isAdvancing: Bool, at now: Int64) -> Bool {
        guard state == .open || state == .reducing, sackedCount == 0, !outstanding.isEmpty else { return false }
        var span: Int64
        if estimator.hasSample {
            span = 2 * estimator.smoothed
            span += outstanding.count == 1 ? stack.rtoVarianceMin.count : 2 * Self.millisecond
        } else {
            span = Nanoseconds.seconds(1).count
        }
        let timeout = isAdvancing ? estimator.timeout : timeoutLeft(at: now)
        if timeout > 0 { span = min(span, timeout) }
        arm(.probe, span)
        return true
    }

    private func timeoutLeft(at now: Int64) -> Int64 {
        (outstanding.first?.sentAt ?? now) + estimator.timeout - now
    }

    /// `tcp_rearm_rto`: after a probe or a reordering timer the time-out still counts from when the first was sent.
    private mutating func rearmTimeout(from previous: Timer, at now: Int64) {
        if outstanding.isEmpty { return stopTimer() }
        let isCounting = previous == .probe || previous == .reorder
        arm(.retransmit, isCounting ? max(timeoutLeft(at: now), 1000) : estimator.timeout)
    }

    private mutating func arm(_ kind: Timer, _ span: Int64) {
        timer = kind
        timerSpan = kind == .reorder ? min(span, estimator.timeout) : min(span, stack.rtoMax.count)
        timerGeneration &+= 1
    }

    private mutating func stopTimer() {
        timer = .none
        timerGeneration &+= 1
    }

    // MARK: Sending

    private mutating func repair(at now: Int64, _ orders: inout [Order]) {
        guard lostCount > repairCount else { return }
        var repairedFirst = false
        for index in outstanding.indices {
            if Int64(inFlight) >= cubic.window || repairCount >= lostCount { break }
            guard outstanding[index].isLost, !outstanding[index].isSacked, !outstanding[index].isRepairing else {
                continue
            }
            `repeat`(index, at: now, &orders)
            if state == .recovery || state == .reducing { reductionSent += 1 }
            if index == 0 { repairedFirst = true }
        }
        if repairedFirst && timer != .reorder { arm(.retransmit, estimator.timeout) }
    }

    private mutating func `repeat`(_ index: Int, at now: Int64, _ orders: inout [Order]) {
        if !outstanding[index].isRepairing {
            outstanding[index].isRepairing = true
            repairCount += 1
        }
        outstanding[index].wasRepeated = true
        outstanding[index].sentAt = now
        if firstRepair == 0 { firstRepair = now }
        if repairsToExplain < 0 { repairsToExplain = 0 }
        repairsToExplain += 1
        lastSent = now
        let segment = outstanding[index]
        orders.append(Order(start: segment.start, end: segment.end, isFinal: segment.isFinal))
    }

    private mutating func sendNew(at now: Int64, _ orders: inout [Order]) {
        var sent = 0
        if outstanding.isEmpty && next < streamEnd { restartAfterIdle(at: now) }
        let wasEmpty = outstanding.isEmpty
        while nextFits && Int64(inFlight) < cubic.window {
            sendOne(at: now, &orders)
            sent += 1
        }
        if sent == 0 {
            if outstanding.isEmpty && next < streamEnd && timer == .none { armPersist() }
            return
        }
        persistTries = 0
        if state == .recovery || state == .reducing { reductionSent += Int64(sent) }
        // tcp_cwnd_validate
        let isLimited = Int64(inFlight) >= cubic.window
        if acknowledged >= usageEnd || isLimited || (!isWindowLimited && outstanding.count > flightMax) {
            isWindowLimited = isLimited
            flightMax = outstanding.count
            usageEnd = next
        }
        if wasEmpty || timer == .probe { rearmTimeout(from: timer, at: now) }
        _ = setProbe(isAdvancing: false, at: now)
    }

    /// The end of the stream without its FIN, which takes no room and may ride on a full segment.
    private var dataEnd: Int64 { isFinished ? streamEnd - 1 : streamEnd }

    /// Whether there is a new segment, and all of it fits into the receiver's window (`tcp_snd_wnd_test`).
    private var nextFits: Bool {
        next < streamEnd && min(next + Self.segmentMax, dataEnd) <= windowEnd
    }

    // MARK: A closed window (`tcp_probe_timer`)

    private mutating func armPersist() {
        let base = max(estimator.timeout, stack.rtoMin.count)
        arm(.persist, min(base << min(persistTries, 20), stack.rtoMax.count))
    }

    private mutating func persist(at now: Int64, _ orders: inout [Order]) {
        guard outstanding.isEmpty, next < streamEnd else { return }
        if windowEnd > next && !nextFits {
            // Part of a segment fits, and nothing else will come.
            sendOne(upTo: windowEnd, at: now, &orders)
            return rearmTimeout(from: .persist, at: now)
        }
        persistTries += 1
        orders.append(Order(start: acknowledged, end: acknowledged, isFinal: false, isProbe: true))
        armPersist()
    }

    private mutating func sendOne(upTo limit: Int64 = .max, at now: Int64, _ orders: inout [Order]) {
        var end = min(next + Self.segmentMax, min(dataEnd, limit))
        let isFinal = isFinished && end == dataEnd
        if isFinal { end = streamEnd }
        let order = Order(start: next, end: end, isFinal: isFinal)
        outstanding.append(Outstanding(start: next, end: end, isFinal: isFinal, sentAt: now))
        next = end
        lastSent = now
        orders.append(order)
    }

    /// `tcp_cwnd_restart`: after a pause longer than the time-out the window is halved for each one.
    private mutating func restartAfterIdle(at now: Int64) {
        let idle = now - lastSent
        cubic.skipIdle(idle)
        guard idle > estimator.timeout else { return }
        let restart = min(Int64(stack.initialWindow), cubic.window)
        cubic.threshold = currentThreshold
        var left = idle - estimator.timeout
        while left > 0 && cubic.window > restart {
            cubic.window /= 2
            left -= estimator.timeout
        }
        cubic.window = max(cubic.window, restart)
    }

    /// Whether the window is worth raising (`tcp_is_cwnd_limited`).
    private var isLimitedByWindow: Bool {
        isWindowLimited || (cubic.isInSlowStart && cubic.window < 2 * Int64(flightMax))
    }
}
