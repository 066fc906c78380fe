internal import DequeModule

/// Finding and repairing losses: the states of Linux's `tcp_fastretrans_alert`, and RACK.
extension Sender {
    /// Gives whether lost segments may be sent again, and whether new ones shall be tried first.
    mutating func react(
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
    mutating func reactInLoss(
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

    func mayTakeBack(_ ack: Segment) -> Bool {
        canUndo && (repairsToExplain == 0 || isOlderThanRepair(ack))
    }

    /// Eifel: the ACK echoes a timestamp from before the first repair, so it answers the first copy.
    func isOlderThanRepair(_ ack: Segment) -> Bool {
        firstRepair > 0 && ack.echo > 0 && ack.echo <= firstRepair
    }

    func mayTakeBackPartly(_ ack: Segment) -> Bool {
        canUndo && isOlderThanRepair(ack) && repairCount == 0
    }

    /// The window as it was before the episode (`tcp_undo_cwnd_reduction`).
    mutating func takeBack(clearingLosses: Bool) {
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

    mutating func beginReduction() {
        episodeEnd = next
        probeEnd = nil
        cubic.count = 0
        priorWindow = cubic.window
        reductionDelivered = 0
        reductionSent = 0
        cubic.threshold = cubic.thresholdAfterLoss()
    }

    mutating func enterRecovery() {
        noteUndo()
        if state != .reducing {
            priorThreshold = currentThreshold
            beginReduction()
        }
        state = .recovery
    }

    mutating func noteUndo() {
        canUndo = true
        repairsToExplain = repairCount > 0 ? repairCount : -1
    }

    /// `tcp_current_ssthresh`.
    var currentThreshold: Int64 {
        state == .open || state == .loss
            ? max(cubic.threshold, cubic.window * 3 / 4) : cubic.threshold
    }

    /// PRR: what may be sent follows what has arrived (`tcp_cwnd_reduction`).
    mutating func reduce(_ newlyDelivered: Int64, isAdvance: Bool, hasNewLoss: Bool) {
        guard newlyDelivered > 0, priorWindow > 0 else { return }
        reductionDelivered += newlyDelivered
        let room = cubic.threshold - Int64(inFlight)
        var allowance: Int64
        if room < 0 {
            // Below 2^31 segments times what an episode delivers, some windows: no more than 2^47.
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

    mutating func noteLosses(at now: Int64) {
        guard hasAdvanced else { return }
        hasAdvanced = false
        let wait = findLosses(at: now)
        if wait > 0 {
            arm(.reorder, wait + 2 * Self.millisecond)
            waitsForReordering = true
        }
    }

    /// Marks what is lost; gives how long to wait for what may only have been reordered.
    mutating func findLosses(at now: Int64) -> Int64 {
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
    var reorderingTolerance: Int64 {
        let hasProof = state == .recovery || state == .loss || sackedCount >= Self.duplicateThreshold
        if hasProof && !hasSeenReordering { return 0 }
        // Without a round trip of its own, as when only repeats have been acknowledged, the longest wait.
        guard estimator.shortest < .max else { return estimator.smoothed }
        return min(estimator.shortest / 4 * reorderingSteps, estimator.smoothed)
    }

    mutating func noteEndOfRecovery() {
        guard reorderingEpisodes > 0 else { return }
        reorderingEpisodes -= 1
        if reorderingEpisodes == 0 { reorderingSteps = 1 }
    }

    mutating func markLost(_ index: Int) {
        if outstanding[index].isRepairing {
            outstanding[index].isRepairing = false
            repairCount -= 1
        }
        if !outstanding[index].isLost {
            outstanding[index].isLost = true
            lostCount += 1
        }
    }
}
