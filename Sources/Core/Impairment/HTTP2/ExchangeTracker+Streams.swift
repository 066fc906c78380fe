internal import DequeModule
internal import LinkModel
internal import NIOCore
internal import Wire

/// Connections of HTTP/2: their recognition by the client's preface, and their streams.
extension ExchangeTracker {
    /// Processes the first bytes of a connection, until the client's preface has been read or cannot follow. They wait
    /// only if streams are to be tracked.
    mutating func processOpening(
        _ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        opening?[direction].writeImmutableBuffer(bytes)
        guard let first = opening else { return }
        let preface = HTTP2Frame.preface.prefix(first.up.readableBytes)
        guard registry.tracksStreams, first.up.readableBytesView.starts(with: preface), Self.mayBeSettings(first.down)
        else {
            return endOpening(isHTTP2: false, &registry)
        }
        if preface.count == HTTP2Frame.preface.count { endOpening(isHTTP2: true, &registry) }
    }

    /// Returns whether a server's first bytes may be those of SETTINGS: a server of HTTP/2 may send them before it has
    /// read the client's preface.
    private static func mayBeSettings(_ bytes: ByteBuffer) -> Bool {
        // The length is below 64 KiB; type, flags and stream follow.
        let header: [UInt8?] = [0, nil, nil, 4, 0, 0, 0, 0, 0]
        return zip(bytes.readableBytesView, header).allSatisfy { $1 == nil || $0 == $1 }
    }

    /// Processes the first bytes as those of HTTP/2 or of another protocol.
    mutating func endOpening(isHTTP2: Bool, _ registry: inout ExchangeRegistry) {
        guard var first = opening.take() else { return }
        if isHTTP2, let preface = first.up.readSlice(length: HTTP2Frame.preface.count) {
            entered.up += Int64(preface.readableBytes)
            actions.append(.pass(preface, .up))
            streams = [StreamTracker(entered: entered, written: written, at: now)]
        }
        for direction in Direction.allCases where first[direction].readableBytes > 0 {
            process(first[direction], direction, &registry)
        }
    }

    /// Processes bytes of HTTP/2.
    mutating func processStreams(_ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        let now = now
        streams[0].received(bytes, direction, &registry, at: now)
        takeStreamActions()
    }

    /// Continues a connection whose server has responded to `Upgrade: h2c` with 101 as one of HTTP/2, whose stream 1 is the
    /// exchange. Returns whether it does.
    mutating func upgradeToStreams(
        _ index: Int, at end: Int64, _ registry: inout ExchangeRegistry
    ) -> Bool {
        guard registry.tracksStreams, isAwaitingSwitch, exchanges.count == 1,
            let settings = exchanges[index].upgradeSettings, !exchanges[index].isReplied, hold == nil,
            discardsFrom.up == nil, discardsFrom.down == nil, requests.bytesKept == 0, unparsed.up.count == 0,
            unparsed.down.count == 0
        else { return false }
        if let fault = exchanges[index].fault, fault.point <= .beforeRequestEnd { miss(index) }
        let stream = TrackedStream(id: 1, exchange: exchanges[index].id, method: exchanges[index].method)
        stream.fault = exchanges[index].fault
        exchanges[index].fault = nil
        faultCount = 0
        pass(.down, to: end)
        exchanges = []
        (requestCursor, responseCursor, entryCursor, deliveryCursor) = (0, 0, 0, 0)
        isAwaitingSwitch = false
        requests = ExchangeTracker.requestParser
        responses = ExchangeTracker.responseParser
        var tracker = StreamTracker(entered: entered, written: written, at: now)
        tracker.beginUpgraded(stream, settings, registry)
        streams = [tracker]
        while !streams.isEmpty, let piece = withheld.down.takePiece(atMost: .max) {
            consumed.down += Int64(piece.readableBytes)
            processStreams(piece, .down, &registry)
        }
        return true
    }

    /// Executes what the streams require.
    mutating func takeStreamActions() {
        if streams.isEmpty { return }
        if let reason = streams[0].failure { stopTrackingStreams(reason) }
        if streams.isEmpty { return }
        streams[0].flush()
        while !streams.isEmpty, let action = streams[0].actions.popFirst() {
            if case .pass(let bytes, let direction) = action { entered[direction] += Int64(bytes.readableBytes) }
            actions.append(action)
        }
        if !isEnded, !streams.isEmpty, let end = streams[0].takeEnd() { self.end(end.action, at: end.point) }
    }

    /// Passes on the part of a frame that will not be complete.
    mutating func passIncompleteFrame(_ direction: Direction) {
        guard !isEnded, !streams.isEmpty else { return }
        let rest = streams[0].takeRest(direction)
        if rest.readableBytes == 0 { return }
        if direction == .down { streams[0].emitServersFirst(rest) } else { streams[0].emit(rest, direction) }
        takeStreamActions()
    }

    /// Stops tracking: later bytes pass unchanged. If a fault has changed the streams, they cannot, and the connection
    /// is aborted.
    private mutating func stopTrackingStreams(_ reason: String) {
        streams[0].failure = nil
        takeStreamActions()
        report(.notHTTP(reason))
        if isEnded { return }
        if streams[0].hasFired { return end(.abort(.beforeResponse, nil), at: .beforeResponse) }
        for direction in Direction.allCases { passIncompleteFrame(direction) }
        isTracking = false
        streams = []
    }
}
