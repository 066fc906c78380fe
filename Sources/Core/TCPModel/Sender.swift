internal import DequeModule
internal import Determinism

/// The sending half of an endpoint: outstanding segments, loss detection and congestion control.
///
/// Inputs are ACKs, writes and timer expiries; outputs are segments to send. RACK (RFC 8985) marks a segment lost when
/// one sent after it has been delivered; a tail loss probe (TLP) detects the loss of the last segments, and the
/// retransmission timeout (RTO) everything else. F-RTO (RFC 5682) and timestamps (Eifel, RFC 4015) undo a spurious RTO.
/// During recovery, proportional rate reduction (PRR, RFC 6937) reduces the window. The order of steps follows Linux
/// (`tcp_ack` in `tcp_input.c`), and names follow its `struct tcp_sock`.
struct Sender: Sendable {
    /// A segment that has been sent and not acknowledged.
    struct SentSegment: Sendable {
        let start: Int64
        let end: Int64
        let isFIN: Bool
        /// The time of the last transmission.
        var sentAt: Int64
        var isSacked = false
        var isLost = false
        /// Whether a retransmission is in flight (`TCPCB_SACKED_RETRANS`).
        var isRetransmitted = false
        /// Whether the segment has been sent more than once (`TCPCB_EVER_RETRANS`).
        var everRetransmitted = false
    }

    /// The congestion state (`tcp_ca_state`).
    enum State: Sendable { case open, recovery, loss }
    enum Timer: Sendable { case none, retransmission, lossProbe, reordering, persist }

    /// A segment to send.
    struct OutgoingSegment: Sendable {
        let start: Int64
        let end: Int64
        let isFIN: Bool
        /// Whether the segment probes a zero window.
        var isWindowProbe = false
    }

    // Sequence space.
    /// The end of the written data, the FIN included (`write_seq`).
    var writeEnd: Int64 = 0
    var isFinished = false
    var sndNxt: Int64 = 0
    var sndUna: Int64 = 0
    /// The end of the send window.
    var windowEnd: Int64 = .max
    /// The segments between `sndUna` and `sndNxt`, in order of sequence number.
    var outstanding = Deque<SentSegment>()

    // Counters of segments.
    var sackedOut = 0
    var lostOut = 0
    var retransOut = 0
    var delivered: Int64 = 0

    // Congestion control.
    var state = State.open
    var cubic: Cubic
    var estimator: RoundTripEstimator
    /// The end of the recovery or loss episode (`high_seq`).
    var highSequence: Int64 = 0
    var priorCwnd: Int64 = 0
    var priorSsthresh: Int64 = 0
    var prrDelivered: Int64 = 0
    var prrOut: Int64 = 0
    // Whether the congestion window limited transmission (`tcp_cwnd_validate`).
    var isCwndLimited = false
    var maxPacketsOut = 0
    var cwndUsageSequence: Int64 = 0
    var lastSentAt: Int64 = 0

    // Undo.
    /// Whether the window reduction may be undone (`undo_marker`).
    var hasUndoMarker = false
    /// Retransmissions not yet reported as duplicates; -1 before the first.
    var undoRetrans = -1
    /// The time of the first retransmission of the episode; 0 if there is none (`retrans_stamp`).
    var retransStamp: Int64 = 0
    /// Whether F-RTO is in progress (`frto`).
    var isInFRTO = false
    /// Consecutive retransmission timeouts (`icsk_retransmits`).
    var timeouts = 0

    // RACK: the most recently sent segment that has been delivered.
    var rackSentAt: Int64 = -1
    var rackEnd: Int64 = 0
    var rackRoundTrip: Int64 = 0
    var rackHasAdvanced = false
    // Observed reordering, and the reordering window in quarters of the minimum round trip (RFC 8985, 6.2;
    // `tcp_check_sack_reordering`, `tcp_rack_update_reo_wnd`).
    var hasSeenReordering = false
    var reorderingSteps: Int64 = 1
    var reorderingRecoveriesLeft = 0
    var reorderingRoundEnd: Int64 = 0
    /// The start of the highest SACKed segment.
    var highestSacked: Int64 = 0

    // Timers.
    var timer = Timer.none
    var timerSpan: Int64 = 0
    /// Incremented on each arming, so that the endpoint detects a timer armed again with the same span.
    var timerGeneration = 0
    /// Whether the current ACK has armed the reordering timer.
    var hasArmedReorderingTimer = false
    /// Window probes since the window closed.
    var windowProbes: Int64 = 0
    /// The end of the outstanding data when the tail loss probe was sent (`tlp_high_seq`).
    var tlpHighSequence: Int64?
    /// Whether the tail loss probe was a retransmission (`tlp_retrans`).
    var isTLPRetransmission = false

    let stack: StackPreset
    static let segmentMax = Int64(PacketSize.segmentMax)
    /// The longest stream, so that sequence numbers and windows above them fit into 64 bits: 4 EiB, 11 years at 100
    /// Gbit/s.
    static let streamMax: Int64 = 1 << 62
    static let millisecond: Int64 = 1_000_000
    /// The recoveries for which a widened reordering window is kept (`TCP_RACK_RECOVERY_THRESH`).
    static let reorderingRecoveriesMax = 16
    /// The segments SACKed above a gap that prove a loss without waiting (RFC 5681, `tcp_reordering`).
    static let duplicateThreshold = 3

    /// Creates a sender.
    ///
    /// - Parameter first: The sequence number of the first byte; other than 0 in tests of long streams only.
    init(_ stack: StackPreset, first: Int64 = 0) {
        writeEnd = first
        sndNxt = first
        sndUna = first
        self.stack = stack
        cubic = Cubic(initialWindow: stack.initialWindow)
        estimator = RoundTripEstimator(stack)
    }

    // MARK: Inputs

    /// Adds `bytes` written by the application.
    mutating func write(_ bytes: Int64) { writeEnd = min(writeEnd.addingSaturating(bytes), Self.streamMax) }

    /// Adds a FIN after the last byte.
    mutating func finish() {
        isFinished = true
        writeEnd += 1
    }

    /// The bytes in the send buffer: written and not acknowledged.
    var bytesHeld: Int64 { writeEnd - sndUna }
    /// The bytes written and never sent.
    var bytesUnsent: Int64 { max(0, writeEnd - (isFinished ? 1 : 0) - sndNxt) }

    /// Completes the handshake.
    mutating func establish(roundTrip: Int64?, synRetransmissions: Int, window: Int64, at now: Int64) {
        if let roundTrip {
            estimator.addSample(roundTrip, sndUna: sndUna, sndNxt: sndNxt)
            estimator.updateMinimum(roundTrip)
        } else {
            estimator.useFallback()
        }
        if synRetransmissions > 1 { cubic.cwnd = 1 }  // tcp_init_transfer
        windowEnd = window
        cubic.startHyStartRound(sndNxt: sndNxt, at: now)
        lastSentAt = now
    }

    /// The segments in flight (`tcp_packets_in_flight`).
    var packetsInFlight: Int { outstanding.count - sackedOut - lostOut + retransOut }

    /// Processes an ACK and appends the segments to send (`tcp_ack`).
    mutating func receive(_ ack: Segment, at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        guard ack.ackNumber >= sndUna else { return }
        precondition(ack.ackNumber <= sndNxt, "ACK \(ack.ackNumber) for data that was never sent (SND.NXT \(sndNxt))")
        windowEnd = max(windowEnd == .max ? 0 : windowEnd, ack.ackNumber + ack.window)
        let isAdvance = ack.ackNumber > sndUna
        let priorLostOut = lostOut
        let priorDelivered = delivered
        var facts = AckFacts()

        let priorHighestSacked = sackedOut > 0 ? highestSacked : sndUna
        if ack.isDSACK { recordDSACK() }
        if ack.sackBlocks.count > 0 { markSacked(ack.sackBlocks, from: ack.ackNumber, &facts, at: now) }
        if isAdvance { removeAcknowledged(upTo: ack.ackNumber, &facts, at: now) }
        // A segment sent once has been delivered after one sent later.
        if let lowest = facts.lowestOriginal, lowest < priorHighestSacked, state != .loss || hasUndoMarker {
            hasSeenReordering = true
        }
        if isAdvance || facts.newlySacked { updateRoundTrip(ack, facts, isAdvance: isAdvance, at: now) }
        if isAdvance { timeouts = 0 }
        if tlpHighSequence != nil { processLossProbeAck(ack, isAdvance: isAdvance, facts) }

        let newlyDelivered = delivered - priorDelivered
        hasArmedReorderingTimer = false
        var mayRetransmit = false
        var sendsNewFirst = false
        if outstanding.isEmpty { stopTimer() }
        if isAdvance || newlyDelivered > 0 || ack.isDSACK || state != .open {
            (mayRetransmit, sendsNewFirst) = updateCongestionState(ack, facts, isAdvance: isAdvance, at: now)
        }
        if isAdvance && !outstanding.isEmpty && !hasArmedReorderingTimer { armAfterAdvance(at: now) }

        if state == .recovery {
            reduceWindow(newlyDelivered, isAdvance: isAdvance, hasNewLoss: lostOut > priorLostOut)
        } else if isAdvance && newlyDelivered > 0 && mayIncreaseWindow {
            cubic.increase(newlyDelivered, at: now)
        }
        if sendsNewFirst {
            sendNew(at: now, &outgoing)
            if sndNxt <= highSequence {
                isInFRTO = false
                mayRetransmit = true
            }
        }
        if mayRetransmit { retransmitLost(at: now, &outgoing) }
        sendNew(at: now, &outgoing)
        checkCounters()
    }

    /// Appends the segments that the windows permit; to be called after ``write(_:)`` and ``finish()``.
    mutating func push(at now: Int64, _ outgoing: inout [OutgoingSegment]) { sendNew(at: now, &outgoing) }

    /// Handles the expiry of the timer and appends the segments to send.
    mutating func fireTimer(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        let fired = timer
        timer = .none
        if fired == .persist { return probeWindow(at: now, &outgoing) }
        guard !outstanding.isEmpty else { return }
        switch fired {
        case .none, .persist: break
        case .lossProbe: sendLossProbe(at: now, &outgoing)
        case .retransmission: retransmissionTimeout(at: now, &outgoing)
        case .reordering:
            let before = packetsInFlight
            let wait = detectLosses(at: now)
            if packetsInFlight != before {
                if state != .recovery {
                    enterRecovery()
                    reduceWindow(1, isAdvance: false, hasNewLoss: true)
                }
                retransmitLost(at: now, &outgoing)
            } else if wait > 0 {
                arm(.reordering, wait + 2 * Self.millisecond)
            }
            if timer == .none { rearmRTO(from: .reordering, at: now) }
        }
        checkCounters()
    }

    /// Checks the invariants of the model.
    private func checkCounters() {
        precondition(sndUna <= sndNxt && sndNxt <= writeEnd, "SND.UNA \(sndUna), SND.NXT \(sndNxt), end \(writeEnd)")
        precondition(
            sackedOut >= 0 && lostOut >= 0 && retransOut >= 0 && sackedOut + lostOut <= outstanding.count,
            "\(sackedOut) SACKed, \(lostOut) lost, \(retransOut) retransmitted of \(outstanding.count) segments")
        precondition(
            outstanding.isEmpty == (sndUna == sndNxt), "outstanding segments do not match the sequence numbers")
        // Long queues would make debug builds quadratic.
        assert(outstanding.count > 64 || countersMatchSegments)
    }

    private var countersMatchSegments: Bool {
        sackedOut == outstanding.count(where: \.isSacked) && lostOut == outstanding.count(where: \.isLost)
            && retransOut == outstanding.count(where: \.isRetransmitted)
            && outstanding.reduce(0) { $0 + $1.end - $1.start } == sndNxt - (outstanding.first?.start ?? sndNxt)
    }

    // MARK: ACK processing

    /// The results of processing one ACK.
    struct AckFacts {
        /// The send time of the first newly acknowledged segment that was sent only once.
        var firstSentAt: Int64?
        /// The send time of the last such segment, which gives the shortest round trip.
        var lastSentAt: Int64?
        var sackedSentAt: Int64?
        var coversRetransmission = false
        /// Whether a segment sent before the timeout, and only once, has been delivered (`FLAG_ORIG_SACK_ACKED`).
        var originalDelivered = false
        var newlySacked = false
        /// The start of the lowest newly acknowledged segment that was sent only once.
        var lowestOriginal: Int64?
    }

    /// Records a D-SACK: the peer has received a segment twice.
    mutating func recordDSACK() {
        if undoRetrans > 0 && hasUndoMarker { undoRetrans -= 1 }
        if tlpHighSequence != nil && isTLPRetransmission { return }
        // The reordering window is widened at most once per round trip.
        guard sndUna >= reorderingRoundEnd else { return }
        reorderingSteps = min(255, reorderingSteps + 1)
        reorderingRecoveriesLeft = Self.reorderingRecoveriesMax
        reorderingRoundEnd = sndNxt
    }

    /// Marks the segments that SACK blocks cover (`tcp_sacktag_write_queue`).
    mutating func markSacked(_ blocks: SACKBlocks, from base: Int64, _ facts: inout AckFacts, at now: Int64) {
        for position in 0..<blocks.count {
            let block = blocks.range(position, from: base)
            var index = firstOutstanding(from: block.lowerBound)
            while index < outstanding.count, outstanding[index].end <= block.upperBound {
                defer { index += 1 }
                if outstanding[index].isSacked { continue }
                outstanding[index].isSacked = true
                sackedOut += 1
                delivered += 1
                facts.newlySacked = true
                if outstanding[index].isRetransmitted {
                    outstanding[index].isRetransmitted = false
                    retransOut -= 1
                }
                if outstanding[index].isLost {
                    outstanding[index].isLost = false
                    lostOut -= 1
                }
                let segment = outstanding[index]
                if !segment.everRetransmitted {
                    if segment.end <= highSequence { facts.originalDelivered = true }
                    facts.sackedSentAt = min(facts.sackedSentAt ?? .max, segment.sentAt)
                    facts.lowestOriginal = min(facts.lowestOriginal ?? .max, segment.start)
                }
                highestSacked = sackedOut == 1 ? segment.start : max(highestSacked, segment.start)
                advanceRACK(segment, at: now)
            }
        }
    }

    /// Returns the index of the first outstanding segment that starts at or after `start`.
    func firstOutstanding(from start: Int64) -> Int {
        var low = 0
        var high = outstanding.count
        while low < high {
            let middle = (low + high) / 2
            if outstanding[middle].start < start { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Removes cumulatively acknowledged segments (`tcp_clean_rtx_queue`).
    mutating func removeAcknowledged(upTo end: Int64, _ facts: inout AckFacts, at now: Int64) {
        while let segment = outstanding.first, segment.end <= end {
            outstanding.removeFirst()
            if segment.isRetransmitted { retransOut -= 1 }
            if segment.everRetransmitted {
                facts.coversRetransmission = true
            } else if !segment.isSacked {
                if facts.firstSentAt == nil { facts.firstSentAt = segment.sentAt }
                facts.lastSentAt = segment.sentAt
                facts.lowestOriginal = min(facts.lowestOriginal ?? .max, segment.start)
                if segment.end <= highSequence { facts.originalDelivered = true }
            }
            if segment.isSacked {
                sackedOut -= 1
            } else {
                delivered += 1
                advanceRACK(segment, at: now)
            }
            if segment.isLost { lostOut -= 1 }
        }
        sndUna = end
    }

    /// Updates the round-trip estimate (`tcp_ack_update_rtt`).
    mutating func updateRoundTrip(_ ack: Segment, _ facts: AckFacts, isAdvance: Bool, at now: Int64) {
        var sample: Int64?
        if let sentAt = facts.firstSentAt, !facts.coversRetransmission {
            sample = now - sentAt
            estimator.updateMinimum(now - (facts.lastSentAt ?? sentAt))
        } else if let sentAt = facts.sackedSentAt {
            sample = now - sentAt
            estimator.updateMinimum(now - sentAt)
        }
        let measured = sample
        if sample == nil && isAdvance && ack.timestampEcho > 0 {
            sample = max(now - ack.timestampEcho + 1, Self.millisecond)
        }
        guard let sample else { return }
        estimator.addSample(sample, sndUna: sndUna, sndNxt: sndNxt)
        if let measured, isAdvance {
            let shortest = facts.lastSentAt.map { now - $0 } ?? measured
            cubic.addSample(roundTrip: shortest, sndUna: sndUna, sndNxt: sndNxt, at: now)
        }
    }

    /// Records the delivery of a segment for RACK (`tcp_rack_advance`).
    mutating func advanceRACK(_ segment: SentSegment, at now: Int64) {
        let roundTrip = now - segment.sentAt
        if segment.everRetransmitted && roundTrip < estimator.minRTT { return }  // the original was delivered
        rackHasAdvanced = true
        rackRoundTrip = roundTrip
        if (segment.sentAt, segment.end) > (rackSentAt, rackEnd) {
            rackSentAt = segment.sentAt
            rackEnd = segment.end
        }
    }

    /// Ends the tail loss probe's episode, and reduces the window if the probe repaired a loss (`tcp_process_tlp_ack`).
    mutating func processLossProbeAck(_ ack: Segment, isAdvance: Bool, _ facts: AckFacts) {
        guard let end = tlpHighSequence, ack.ackNumber >= end else { return }
        if !isTLPRetransmission || ack.isDSACK {
            tlpHighSequence = nil
        } else if ack.ackNumber > end {
            startReduction()
            cubic.cwnd = cubic.ssthresh
            state = .open
        } else if !isAdvance && !facts.newlySacked {
            tlpHighSequence = nil
        }
    }
}
