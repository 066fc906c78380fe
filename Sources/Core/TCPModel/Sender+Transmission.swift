internal import DequeModule

/// Transmission of new and lost segments, and the restart after an idle time.
extension Sender {
    /// Retransmits lost segments as far as the congestion window permits (`tcp_xmit_retransmit_queue`).
    mutating func retransmitLost(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        guard lostOut > retransOut else { return }
        var includesFirst = false
        for index in outstanding.indices {
            if Int64(packetsInFlight) >= cubic.cwnd || retransOut >= lostOut { break }
            guard outstanding[index].isLost, !outstanding[index].isSacked, !outstanding[index].isRetransmitted else {
                continue
            }
            retransmit(index, at: now, &outgoing)
            if state == .recovery { prrOut += 1 }
            if index == 0 { includesFirst = true }
        }
        if includesFirst && timer != .reordering { arm(.retransmission, estimator.rto) }
    }

    /// Retransmits one segment (`tcp_retransmit_skb`).
    mutating func retransmit(_ index: Int, at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        if !outstanding[index].isRetransmitted {
            outstanding[index].isRetransmitted = true
            retransOut += 1
        }
        outstanding[index].everRetransmitted = true
        outstanding[index].sentAt = now
        if retransStamp == 0 { retransStamp = now }
        if undoRetrans < 0 { undoRetrans = 0 }
        undoRetrans += 1
        lastSentAt = now
        let segment = outstanding[index]
        outgoing.append(OutgoingSegment(start: segment.start, end: segment.end, isFIN: segment.isFIN))
    }

    /// Sends new segments as far as the windows permit (`tcp_write_xmit`).
    mutating func sendNew(at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        var sent = 0
        if outstanding.isEmpty && sndNxt < writeEnd { restartAfterIdle(at: now) }
        let wasEmpty = outstanding.isEmpty
        while nextFits && Int64(packetsInFlight) < cubic.cwnd {
            sendOne(at: now, &outgoing)
            sent += 1
        }
        if sent == 0 {
            if outstanding.isEmpty && sndNxt < writeEnd && timer == .none { armPersist() }
            return
        }
        windowProbes = 0
        if state == .recovery { prrOut += Int64(sent) }
        // tcp_cwnd_validate
        let isLimited = Int64(packetsInFlight) >= cubic.cwnd
        if sndUna >= cwndUsageSequence || isLimited || (!isCwndLimited && outstanding.count > maxPacketsOut) {
            isCwndLimited = isLimited
            maxPacketsOut = outstanding.count
            cwndUsageSequence = sndNxt
        }
        if wasEmpty || timer == .lossProbe { rearmRTO(from: timer, at: now) }
        _ = scheduleLossProbe(isAdvancing: false, at: now)
    }

    /// The end of the payload, without the FIN, which a full segment may carry as well.
    var payloadEnd: Int64 { isFinished ? writeEnd - 1 : writeEnd }

    /// Whether there is a new segment that fits entirely into the send window (`tcp_snd_wnd_test`).
    var nextFits: Bool {
        sndNxt < writeEnd && min(sndNxt + Self.segmentMax, payloadEnd) <= windowEnd
    }

    mutating func sendOne(upTo limit: Int64 = .max, at now: Int64, _ outgoing: inout [OutgoingSegment]) {
        var end = min(sndNxt + Self.segmentMax, min(payloadEnd, limit))
        let isFIN = isFinished && end == payloadEnd
        if isFIN { end = writeEnd }
        let segment = OutgoingSegment(start: sndNxt, end: end, isFIN: isFIN)
        outstanding.append(SentSegment(start: sndNxt, end: end, isFIN: isFIN, sentAt: now))
        sndNxt = end
        lastSentAt = now
        outgoing.append(segment)
    }

    /// Halves the window for each RTO of an idle time (`tcp_cwnd_restart`).
    mutating func restartAfterIdle(at now: Int64) {
        let idle = now - lastSentAt
        cubic.shiftEpoch(by: idle)
        guard idle > estimator.rto else { return }
        let restartWindow = min(Int64(stack.initialWindow), cubic.cwnd)
        cubic.ssthresh = currentSsthresh
        var left = idle - estimator.rto
        while left > 0 && cubic.cwnd > restartWindow {
            cubic.cwnd /= 2
            left -= estimator.rto
        }
        cubic.cwnd = max(cubic.cwnd, restartWindow)
    }

    /// Whether the window limits transmission and may therefore increase (`tcp_is_cwnd_limited`).
    var mayIncreaseWindow: Bool {
        isCwndLimited || (cubic.isInSlowStart && cubic.cwnd < 2 * Int64(maxPacketsOut))
    }
}
