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
            streams = StreamTracker(entered: entered, written: written, at: now)
        }
        for direction in Direction.allCases where first[direction].readableBytes > 0 {
            process(first[direction], direction, &registry)
        }
    }

    /// Processes bytes of HTTP/2.
    mutating func processStreams(_ bytes: ByteBuffer, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        let now = now
        streams?.received(bytes, direction, &registry, at: now)
        takeStreamActions()
        if let reason = streams?.failure { stopTrackingStreams(reason) }
    }

    /// Executes what the streams require.
    mutating func takeStreamActions() {
        while let action = streams?.actions.popFirst() {
            if case .pass(let bytes, let direction) = action { entered[direction] += Int64(bytes.readableBytes) }
            actions.append(action)
        }
        if !isEnded, let end = streams?.takeEnd() { self.end(end.action, at: end.point) }
    }

    /// Passes on the part of a frame that will not be complete.
    mutating func passIncompleteFrame(_ direction: Direction) {
        guard !isEnded, let rest = streams?.takeRest(direction), rest.readableBytes > 0 else { return }
        if direction == .down { streams?.emitServersFirst(rest) } else { streams?.emit(rest, direction) }
        takeStreamActions()
    }

    /// Stops tracking: later bytes pass unchanged. If a fault has changed the streams, they cannot, and the connection
    /// is aborted.
    private mutating func stopTrackingStreams(_ reason: String) {
        report(.notHTTP(reason))
        if streams?.hasFired == true { return end(.abort(.beforeResponse, nil), at: .beforeResponse) }
        for direction in Direction.allCases { passIncompleteFrame(direction) }
        isTracking = false
        streams = nil
    }
}
