internal import DequeModule
internal import Determinism
internal import LinkModel

/// The exits of the streams: what may be written, and what has been written.
extension ExchangeTracker {
    /// Returns the number of bytes that may be written to the receiver now.
    mutating func allowance(_ direction: Direction, at time: Instant) -> Int {
        now = max(now, time)
        if hold != nil || isEnding { return 0 }
        var limit = Int64.max
        if !streams.isEmpty { limit = streams[0].allowance(direction) }
        if let offset = discardsFrom[direction] { limit = max(0, offset - written[direction]) }
        if faultCount > 0 {
            for exchange in exchanges {
                guard let fault = exchange.fault, let trigger = exchange.trigger(of: fault),
                    trigger.direction == direction
                else { continue }
                limit = min(limit, max(0, trigger.offset - written[direction]))
                break
            }
        }
        if handshake != nil { limit = min(limit, handshakeAllowance(direction)) }
        if !text.pending.isEmpty { limit = min(limit, textAllowance(direction)) }
        return Int(clamping: min(limit, trickleAllowance(direction)))
    }

    /// Whether bytes that have arrived at an exit are discarded.
    func discardsArrived(_ direction: Direction) -> Bool {
        guard hold == nil, !isEnding, let offset = discardsFrom[direction] else { return false }
        return written[direction] >= offset
    }

    /// Whether the sender's FIN or RST may be delivered now.
    func mayEnd(_ direction: Direction) -> Bool { hold == nil && !isEnding && !withholdsEnd[direction] }

    /// Reports bytes written to the receiver.
    mutating func wrote(
        _ count: Int, _ direction: Direction, _ registry: inout ExchangeRegistry, at time: Instant
    ) {
        now = max(now, time)
        let before = written[direction]
        written[direction] += Int64(count)
        if !streams.isEmpty {
            let total = written[direction]
            streams[0].wrote(direction, total: total)
            return takeStreamActions()
        }
        if let throttle = throttles[direction].first, let start = throttle.start, written[direction] > start {
            throttles[direction][0].nextWrite = now + throttle.time(of: written[direction] - max(before, start))
        }
        if direction == .up { reportDeliveredRequests() } else { reportDeliveredResponses() }
        if faultCount > 0 { fireReached(&registry) }
        if handshake != nil { fireHandshake(&registry) }
        if !text.pending.isEmpty { fireText(&registry) }
        removeDelivered()
    }

    private mutating func reportDeliveredRequests() {
        while requestCursor < exchanges.count {
            let exchange = exchanges[requestCursor]
            if !exchange.requestIsDropped {
                guard let end = exchange.requestEnd, end <= written.up else { return }
                if !exchange.isDelivered { report(.requestDelivered(exchange.id)) }
            }
            requestCursor += 1
        }
    }

    mutating func reportDeliveredResponses() {
        while deliveryCursor < exchanges.count, let end = exchanges[deliveryCursor].responseEnd, end <= written.down {
            exchanges[deliveryCursor].isDelivered = true
            let exchange = exchanges[deliveryCursor]
            report(
                .responseDelivered(exchange.id, status: exchange.status, end: exchange.endsWithStream ? end + 1 : end))
            deliveryCursor += 1
        }
    }

    /// Removes exchanges whose response has been delivered and read.
    mutating func removeDelivered() {
        while deliveryCursor > 0, hold == nil, let first = exchanges.first, first.isDelivered,
            responseCursor > 0 || first.requestIsDropped
        {
            if first.fault != nil { miss(0) }
            exchanges.removeFirst()
            (requestCursor, responseCursor) = (max(0, requestCursor - 1), max(0, responseCursor - 1))
            (entryCursor, deliveryCursor) = (max(0, entryCursor - 1), deliveryCursor - 1)
        }
    }

    // MARK: Trickles

    /// Lets the throttle of an exchange begin whose response may enter the link now.
    mutating func startTrickle(of id: ExchangeID) {
        for index in throttles.down.indices where throttles.down[index].start == nil {
            if throttles.down[index].exchange == id { throttles.down[index].start = entered.down }
        }
    }

    private mutating func trickleAllowance(_ direction: Direction) -> Int64 {
        while let throttle = throttles[direction].first {
            guard let start = throttle.start else { return .max }
            if written[direction] < start { return start - written[direction] }
            let exchange = exchanges.first { $0.id == throttle.exchange }
            let end = direction == .up ? exchange?.requestEnd : exchange?.responseEnd
            if exchange == nil || end.map({ $0 <= written[direction] }) == true {
                throttles[direction].removeFirst()
                continue
            }
            guard throttle.nextWrite <= now else {
                throttles[direction][0].isWaiting = true
                return 0
            }
            return min(throttle.pieceBytes, end.map { $0 - written[direction] } ?? .max)
        }
        return .max
    }
}
