internal import DequeModule

/// Loss recovery: the congestion states of Linux's `tcp_fastretrans_alert`, and RACK.
extension Sender {
    /// Updates the congestion state after an ACK (`tcp_fastretrans_alert`). Returns whether lost segments may be
    /// retransmitted, and whether new segments are to be sent first.
    mutating func updateCongestionState(
        _ ack: Segment, _ facts: AckFacts, isAdvance: Bool, at now: Int64
    ) -> (mayRetransmit: Bool, sendsNewFirst: Bool) {
        if state == .open {
            retransStamp = 0
        } else if sndUna >= highSequence, state == .recovery {
            countRecovery()
            if mayUndo(ack) {
                undo(clearingLosses: false)
            } else if hasUndoMarker {
                cubic.cwnd = max(2, cubic.ssthresh)
            }
            state = .open
            hasUndoMarker = false
        }
        switch state {
        case .recovery:
            if isAdvance && mayUndoPartially(ack) {
                undo(clearingLosses: true)
                state = .open
            }
            identifyLosses(at: now)
            return (true, false)
        case .loss:
            if let result = processLoss(ack, facts, isAdvance: isAdvance) {
                if result.sendsNewFirst { return result }
                let before = retransOut
                identifyLosses(at: now)
                if state != .open && retransOut >= before { return result }
            } else {
                identifyLosses(at: now)
            }
            // A retransmission was lost too, or the timeout was spurious and another segment is lost.
            if lostOut > 0 { enterRecovery() }
            return (true, false)
        case .open:
            if hasUndoMarker && undoRetrans == 0 { undo(clearingLosses: false) }
            identifyLosses(at: now)
            guard lostOut > 0 else { return (false, false) }
            enterRecovery()
            return (true, false)
        }
    }

    /// Processes an ACK in the loss state (`tcp_process_loss`). Returns `nil` once the timeout has been undone.
    mutating func processLoss(
        _ ack: Segment, _ facts: AckFacts, isAdvance: Bool
    ) -> (mayRetransmit: Bool, sendsNewFirst: Bool)? {
        let hasRecovered = sndUna >= highSequence
        if isAdvance && mayUndo(ack) {
            undo(clearingLosses: true)
            state = .open
            return nil
        }
        if isInFRTO {
            // F-RTO: the timeout was spurious if a segment sent before it, and not since, has been delivered.
            if facts.originalDelivered && (isAdvance || facts.newlySacked) {
                undo(clearingLosses: true)
                state = .open
                return nil
            }
            if sndNxt > highSequence {
                if facts.newlySacked || (!isAdvance && !ack.isDSACK) { isInFRTO = false }
            } else if isAdvance && !hasRecovered {
                highSequence = sndNxt
                if nextFits { return (false, true) }
                isInFRTO = false
            }
        }
        if hasRecovered {
            state = .open
            hasUndoMarker = false
            isInFRTO = false
            return (false, false)
        }
        return (true, false)
    }

    /// Returns whether the window reduction may be undone (`tcp_may_undo`).
    func mayUndo(_ ack: Segment) -> Bool {
        hasUndoMarker && (undoRetrans == 0 || isDelayed(ack))
    }

    /// Returns whether the ACK echoes a timestamp from before the first retransmission, and so acknowledges the
    /// original (Eifel; `tcp_packet_delayed`).
    func isDelayed(_ ack: Segment) -> Bool {
        retransStamp > 0 && ack.timestampEcho > 0 && ack.timestampEcho <= retransStamp
    }

    /// Returns whether a partial ACK permits an undo (`tcp_try_undo_partial`).
    func mayUndoPartially(_ ack: Segment) -> Bool {
        hasUndoMarker && isDelayed(ack) && retransOut == 0
    }

    /// Restores the window from before the episode (`tcp_undo_cwnd_reduction`).
    mutating func undo(clearingLosses: Bool) {
        if clearingLosses {
            for index in outstanding.indices where outstanding[index].isLost { outstanding[index].isLost = false }
            lostOut = 0
        }
        cubic.cwnd = max(cubic.cwnd, priorCwnd)
        cubic.ssthresh = max(cubic.ssthresh, priorSsthresh)
        hasUndoMarker = false
        isInFRTO = false
        timeouts = 0
        rackHasAdvanced = true
    }

    /// Starts a window reduction (`tcp_init_cwnd_reduction`).
    mutating func startReduction() {
        highSequence = sndNxt
        tlpHighSequence = nil
        cubic.cwndCount = 0
        priorCwnd = cubic.cwnd
        prrDelivered = 0
        prrOut = 0
        cubic.ssthresh = cubic.recalculateSsthresh()
    }

    /// Enters the recovery state (`tcp_enter_recovery`).
    mutating func enterRecovery() {
        startUndo()
        priorSsthresh = currentSsthresh
        startReduction()
        state = .recovery
    }

    /// Permits an undo from now on (`tcp_init_undo`).
    mutating func startUndo() {
        hasUndoMarker = true
        undoRetrans = retransOut > 0 ? retransOut : -1
    }

    /// The slow-start threshold for undo and restart (`tcp_current_ssthresh`).
    var currentSsthresh: Int64 {
        state == .recovery ? cubic.ssthresh : max(cubic.ssthresh, cubic.cwnd * 3 / 4)
    }

    /// Reduces the window in proportion to the delivered segments (PRR; `tcp_cwnd_reduction`).
    mutating func reduceWindow(_ newlyDelivered: Int64, isAdvance: Bool, hasNewLoss: Bool) {
        guard newlyDelivered > 0, priorCwnd > 0 else { return }
        prrDelivered += newlyDelivered
        let delta = cubic.ssthresh - Int64(packetsInFlight)
        var sendCount: Int64
        if delta < 0 {
            // ssthresh is below 2^31 and an episode delivers a few windows: at most 2^47.
            sendCount = (cubic.ssthresh * prrDelivered + priorCwnd - 1) / priorCwnd - prrOut
        } else {
            sendCount = max(prrDelivered - prrOut, newlyDelivered)
            if isAdvance && !hasNewLoss { sendCount += 1 }
            sendCount = min(delta, sendCount)
        }
        sendCount = max(sendCount, prrOut > 0 ? 0 : 1)
        cubic.cwnd = Int64(packetsInFlight) + sendCount
    }

    // MARK: Loss detection (RACK)

    /// Marks lost segments and arms the reordering timer for those that may only be reordered
    /// (`tcp_identify_packet_loss`).
    mutating func identifyLosses(at now: Int64) {
        guard rackHasAdvanced else { return }
        rackHasAdvanced = false
        let wait = detectLosses(at: now)
        if wait > 0 {
            arm(.reordering, wait + 2 * Self.millisecond)
            hasArmedReorderingTimer = true
        }
    }

    /// Marks lost segments (`tcp_rack_detect_loss`). Returns the time until the segments that may only be reordered
    /// count as lost; 0 if there are none.
    mutating func detectLosses(at now: Int64) -> Int64 {
        guard rackSentAt >= 0 else { return 0 }
        let reorderingWindow = reorderingWindow
        let isInOrder = retransOut == 0 && lostOut == 0 && sackedOut == 0
        var wait: Int64 = 0
        for index in outstanding.indices {
            let segment = outstanding[index]
            if segment.isSacked || (segment.isLost && !segment.isRetransmitted) { continue }
            guard (segment.sentAt, segment.end) < (rackSentAt, rackEnd) else {
                if isInOrder { break }
                continue
            }
            let left = rackRoundTrip + reorderingWindow - (now - segment.sentAt)
            if left <= 0 { markLost(index) } else { wait = max(wait, left) }
        }
        return wait
    }

    /// The time beyond the round trip for which RACK does not mark a segment lost, because it may only be reordered
    /// (`tcp_rack_reo_wnd`).
    var reorderingWindow: Int64 {
        let isLossProven = state != .open || sackedOut >= Self.duplicateThreshold
        if isLossProven && !hasSeenReordering { return 0 }
        // The longest window applies without a round-trip sample, as when only retransmissions have been acknowledged.
        guard estimator.minRTT < .max else { return estimator.srtt }
        return min(estimator.minRTT / 4 * reorderingSteps, estimator.srtt)
    }

    /// Counts a completed recovery; after enough of them the reordering window shrinks to its minimum.
    mutating func countRecovery() {
        guard reorderingRecoveriesLeft > 0 else { return }
        reorderingRecoveriesLeft -= 1
        if reorderingRecoveriesLeft == 0 { reorderingSteps = 1 }
    }

    mutating func markLost(_ index: Int) {
        if outstanding[index].isRetransmitted {
            outstanding[index].isRetransmitted = false
            retransOut -= 1
        }
        if !outstanding[index].isLost {
            outstanding[index].isLost = true
            lostOut += 1
        }
    }
}
