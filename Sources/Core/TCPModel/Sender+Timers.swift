internal import DequeModule
internal import Determinism

/// The sender's timers: retransmission timeout, tail loss probe and window probe.
extension Sender {
    /// Handles a retransmission timeout (`tcp_enter_loss`).
    mutating func retransmissionTimeout(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        let isNew = state == .open
        for index in outstanding.indices where !outstanding[index].isSacked {
            // A segment sent within the last round trip is not lost yet.
            if index > 0 && rackSentAt >= 0 && rackRoundTrip - (now - outstanding[index].sentAt) > 0 { continue }
            markLost(index)
        }
        if state == .open || highSequence <= sndUna || (state == .loss && timeouts == 0) {
            priorSsthresh = currentSsthresh
            priorCwnd = cubic.cwnd
            cubic.ssthresh = cubic.recalculateSsthresh()
            startUndo()
        }
        cubic.cwnd = Int64(packetsInFlight) + 1
        cubic.cwndCount = 0
        cubic.reset()
        cubic.startHyStartRound(sndNxt: sndNxt, at: now)
        state = .loss
        highSequence = sndNxt
        tlpHighSequence = nil
        isInFRTO = isNew || timeouts > 0
        timeouts += 1
        retransmit(0, at: now, &outgoing)
        estimator.backOff()
        arm(.retransmission, estimator.rto)
    }

    /// Sends a tail loss probe: a new segment if there is one, otherwise the last one again (`tcp_send_loss_probe`).
    mutating func sendLossProbe(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        if tlpHighSequence == nil {
            if nextFits {
                sendOne(at: now, &outgoing)
                isTLPRetransmission = false
            } else {
                let last = outstanding.count - 1
                outstanding[last].sentAt = now
                outstanding[last].everRetransmitted = true
                let segment = outstanding[last]
                if retransStamp == 0 { retransStamp = now }
                outgoing.append(OutgoingSegment(start: segment.start, end: segment.end, isFIN: segment.isFIN))
                lastSentAt = now
                isTLPRetransmission = true
            }
            tlpHighSequence = sndNxt
            arm(.retransmission, estimator.rto)
        } else {
            rearmRTO(from: .lossProbe, at: now)
        }
    }

    /// Arms the tail loss probe if it would fire before the RTO, otherwise the RTO (`tcp_set_xmit_timer`).
    mutating func armAfterAdvance(at now: Int64) {
        if !scheduleLossProbe(isAdvancing: true, at: now) { rearmRTO(from: timer, at: now) }
    }

    /// Arms the tail loss probe (`tcp_schedule_loss_probe`). Returns whether the state permits a probe.
    mutating func scheduleLossProbe(isAdvancing: Bool, at now: Int64) -> Bool {
        guard state == .open, sackedOut == 0, !outstanding.isEmpty else { return false }
        var span: Int64
        if estimator.hasSample {
            span = 2 * estimator.srtt
            span += outstanding.count == 1 ? stack.rtoVarianceMin.count : 2 * Self.millisecond
        } else {
            span = Nanoseconds.seconds(1).count
        }
        let timeout = isAdvancing ? estimator.rto : rtoLeft(at: now)
        if timeout > 0 { span = min(span, timeout) }
        arm(.lossProbe, span)
        return true
    }

    /// Returns the remaining time of the RTO, counted from the transmission of the first outstanding segment.
    func rtoLeft(at now: Int64) -> Int64 {
        (outstanding.first?.sentAt ?? now) + estimator.rto - now
    }

    /// Arms the RTO (`tcp_rearm_rto`). After a loss probe or reordering timer it counts from the transmission of the
    /// first outstanding segment.
    mutating func rearmRTO(from previous: Timer, at now: Int64) {
        if outstanding.isEmpty { return stopTimer() }
        let isElapsing = previous == .lossProbe || previous == .reordering
        arm(.retransmission, isElapsing ? max(rtoLeft(at: now), 1000) : estimator.rto)
    }

    mutating func arm(_ kind: Timer, _ span: Int64) {
        timer = kind
        timerSpan = kind == .reordering ? min(span, estimator.rto) : min(span, stack.rtoMax.count)
        timerGeneration &+= 1
    }

    mutating func stopTimer() {
        timer = .none
        timerGeneration &+= 1
    }

    // MARK: Zero window (`tcp_probe_timer`)

    mutating func armPersist() {
        // The base is at most an hour (``StackPreset/spanMax``), 2^42 ns: shifted by 20 it fits into 64 bits.
        let base = max(estimator.rto, stack.rtoMin.count)
        arm(.persist, min(base << min(windowProbes, 20), stack.rtoMax.count))
    }

    mutating func probeWindow(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        guard outstanding.isEmpty, sndNxt < writeEnd else { return }
        if windowEnd > sndNxt && !nextFits {
            // Part of a segment fits, and no ACK will open the window further.
            sendOne(upTo: windowEnd, at: now, &outgoing)
            return rearmRTO(from: .persist, at: now)
        }
        windowProbes += 1
        outgoing.append(OutgoingSegment(start: sndUna, end: sndUna, isFIN: false, isWindowProbe: true))
        armPersist()
    }
}
