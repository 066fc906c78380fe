internal import DequeModule

/// Sending: what is new, what is sent again, and the window after a pause.
extension Sender {
    mutating func repair(at now: Int64, _ orders: inout [Order]) {
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

    mutating func `repeat`(_ index: Int, at now: Int64, _ orders: inout [Order]) {
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

    mutating func sendNew(at now: Int64, _ orders: inout [Order]) {
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
    var dataEnd: Int64 { isFinished ? streamEnd - 1 : streamEnd }

    /// Whether there is a new segment, and all of it fits into the receiver's window (`tcp_snd_wnd_test`).
    var nextFits: Bool {
        next < streamEnd && min(next + Self.segmentMax, dataEnd) <= windowEnd
    }

    mutating func sendOne(upTo limit: Int64 = .max, at now: Int64, _ orders: inout [Order]) {
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
    mutating func restartAfterIdle(at now: Int64) {
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
    var isLimitedByWindow: Bool {
        isWindowLimited || (cubic.isInSlowStart && cubic.window < 2 * Int64(flightMax))
    }
}
