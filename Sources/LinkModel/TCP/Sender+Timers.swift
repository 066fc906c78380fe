internal import DequeModule

/// What happens when nothing comes: the time-out, the tail loss probe, and probes of a closed window.
extension Sender {
    mutating func timeOut(at now: Int64, _ orders: inout [Order]) {
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
    mutating func probe(at now: Int64, _ orders: inout [Order]) {
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
    mutating func setTimer(isAdvancing: Bool, at now: Int64) {
        if !setProbe(isAdvancing: isAdvancing, at: now) { rearmTimeout(from: timer, at: now) }
    }

    /// `tcp_schedule_loss_probe`.
    mutating func setProbe(isAdvancing: Bool, at now: Int64) -> Bool {
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

    func timeoutLeft(at now: Int64) -> Int64 {
        (outstanding.first?.sentAt ?? now) + estimator.timeout - now
    }

    /// `tcp_rearm_rto`: after a probe or a reordering timer the time-out still counts from when the first was sent.
    mutating func rearmTimeout(from previous: Timer, at now: Int64) {
        if outstanding.isEmpty { return stopTimer() }
        let isCounting = previous == .probe || previous == .reorder
        arm(.retransmit, isCounting ? max(timeoutLeft(at: now), 1000) : estimator.timeout)
    }

    mutating func arm(_ kind: Timer, _ span: Int64) {
        timer = kind
        timerSpan = kind == .reorder ? min(span, estimator.timeout) : min(span, stack.rtoMax.count)
        timerGeneration &+= 1
    }

    mutating func stopTimer() {
        timer = .none
        timerGeneration &+= 1
    }

    // MARK: A closed window (`tcp_probe_timer`)

    mutating func armPersist() {
        // No more than an hour (``StackPreset/spanMax``), 2^42 ns: shifted by 20 it fits.
        let base = max(estimator.timeout, stack.rtoMin.count)
        arm(.persist, min(base << min(persistTries, 20), stack.rtoMax.count))
    }

    mutating func persist(at now: Int64, _ orders: inout [Order]) {
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
}
