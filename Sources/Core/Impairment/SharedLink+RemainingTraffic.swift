public import LinkModel
internal import TCPModel
internal import Wire

/// The traffic that a connection may still carry.
public enum RemainingTraffic: Hashable, Sendable {
    /// No byte is in flight, and every request has its response.
    case none
    /// No byte is in flight. Whether a peer will send more is unknown, because the exchanges are not tracked.
    case unknown
    /// Bytes or the end of a stream are in flight, or a response is outstanding.
    case pending
    /// The traffic that is pending cannot arrive: no packet passes, or a fault discards it.
    case blocked
}

extension SharedLink {
    /// Returns the traffic that a connection may still carry.
    public func remainingTraffic(of id: FlowID) -> RemainingTraffic {
        guard conduits.contains(id), !conduits[id].awaitsClientsFIN else { return .none }
        var isBlocked = false
        for direction in Direction.allCases where !conduits[id].isGone(direction.receiver) {
            guard conduits[id].isCarrying(direction) else { continue }
            if !hasLastingOutage(direction) { return .pending }
            isBlocked = true
        }
        if isBlocked { return .blocked }
        if conduits[id].awaitsTraffic {
            let isDiscarded = conduits[id].withholdsEnd(.up) || conduits[id].withholdsEnd(.down)
            return isDiscarded || hasLastingOutage(.up) || hasLastingOutage(.down) ? .blocked : .pending
        }
        return conduits[id].tracker?.isBetweenExchanges == true ? .none : .unknown
    }

    /// Returns whether an outage lasts until a call ends it. A timeline may end it by itself.
    private func hasLastingOutage(_ direction: Direction) -> Bool { timeline == nil && hasOutage(direction) }
}

extension Conduit {
    /// Returns whether a stream holds bytes or a FIN that will still arrive.
    fileprivate func isCarrying(_ direction: Direction) -> Bool {
        if self[direction].toxics?.isHolding == true || self[direction].bytes.count > 0 { return true }
        if self[direction].faultBytes > 0 || tracker?.hold != nil { return true }
        return self[direction].inputIsClosed && !self[direction].isFinished && !withholdsEnd(direction)
            && !isGone(direction.sender)
    }

    /// Whether a peer has not sent or read everything, although no byte is in flight. A client that has sent its FIN
    /// awaits a response.
    fileprivate var awaitsTraffic: Bool {
        tracker?.hasOpenExchange == true || up.isPaused || down.isPaused || (up.inputIsClosed && !down.inputIsClosed)
            || isGone(.client) != isGone(.server)
    }
}

extension ExchangeTracker {
    /// Whether a request is being read, or a response has not been delivered.
    fileprivate var hasOpenExchange: Bool {
        request != nil || exchanges.contains { !$0.isDelivered } || (!streams.isEmpty && streams[0].hasOpenStream)
    }

    /// Whether an exchange has been completed, and the last byte in each direction was the end of a message. Before the
    /// first message, bytes may wait in the socket of a peer that does not speak HTTP.
    fileprivate var isBetweenExchanges: Bool {
        if !streams.isEmpty {
            return isTracking && streams[0].lastClientStream > 0 && !hasOpenExchange && streams[0].bytesKept == 0
        }
        return isTracking && messageEnd.up > 0 && !hasOpenExchange && requests.bytesKept == 0
            && responses.bytesKept == 0
    }
}
