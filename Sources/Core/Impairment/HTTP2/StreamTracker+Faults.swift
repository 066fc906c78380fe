internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The faults of streams.
extension StreamTracker {
    /// Removes the fault of a stream that cannot reach the fault's point.
    mutating func miss(_ id: UInt32) {
        guard let fault = streams[id]?.fault, let exchange = streams[id]?.exchange else { return }
        streams[id]?.fault = nil
        actions.append(.report(.faultMissed(exchange, rule: fault.rule, point: fault.point)))
    }

    /// Lets a frame pass through the gate of its stream.
    mutating func admit(
        _ item: StreamItem, _ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        switch streams[id]?[direction].gate {
        case .discard: discard(item, id, direction)
        case .hold, .undecided: hold(item, id, direction)
        case .throttle:
            hold(item, id, direction)
            continueThrottle(id, direction, &registry)
        case .open, nil: fireOrPass(item, id, direction, &registry)
        }
    }

    private mutating func hold(_ item: StreamItem, _ id: UInt32, _ direction: Direction) {
        // Later blocks may overtake this one.
        if case .block(let frame, _, _) = item { heldBlocks[direction].append(frame.range.lowerBound) }
        streams[id]?[direction].held.append(item)
        bytesHeld[direction] += item.bytesHeld
    }

    private mutating func takeHeld(_ id: UInt32, _ direction: Direction) -> StreamItem? {
        guard let item = streams[id]?[direction].held.popFirst() else { return nil }
        bytesHeld[direction] -= item.bytesHeld
        if case .block(let frame, _, _) = item,
            let index = heldBlocks[direction].firstIndex(of: frame.range.lowerBound)
        {
            heldBlocks[direction].remove(at: index)
        }
        return item
    }

    /// Opens a gate: the frames that wait continue, until another fault of the stream fires.
    mutating func open(_ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        streams[id]?[direction].gate = .open
        while end == nil, streams[id]?[direction].isOpen == true, let item = takeHeld(id, direction) {
            admit(item, id, direction, &registry)
        }
        removeIfEnded(id)
    }

    /// Passes the frames on whose time has come.
    mutating func continueThrottle(_ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        while end == nil, case .throttle(var throttle)? = streams[id]?[direction].gate {
            guard case .data(let content, _, _, _)? = streams[id]?[direction].held.first, content.readableBytes > 0
            else {
                guard let item = takeHeld(id, direction) else { break }
                pass(item, id, direction)
                continue
            }
            guard throttle.nextWrite <= now, let item = takeHeld(id, direction) else { break }
            let size = Int(min(Int64(content.readableBytes), throttle.pieceBytes))
            let (first, rest, padding) = size == content.readableBytes ? (item, nil, 0) : item.split(at: size)
            giveCredit(padding, id, direction)
            if let first { pass(first, id, direction) }
            throttle.nextWrite = now + throttle.time(of: Int64(size))
            schedule(throttle.nextWrite)
            streams[id]?[direction].gate = .throttle(throttle)
            guard let rest else { continue }
            streams[id]?[direction].held.prepend(rest)
            bytesHeld[direction] += rest.bytesHeld
        }
        if let half = streams[id]?[direction], half.endHasPassed, half.held.isEmpty {
            streams[id]?[direction].gate = .open
        }
        removeIfEnded(id)
    }

    // MARK: Points

    /// Passes a frame on. If it contains the point of the stream's fault, the fault fires, and the rest of the frame
    /// meets the gate that the fault has set.
    private mutating func fireOrPass(
        _ item: StreamItem, _ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        guard let stream = streams[id], let fault = stream.fault,
            let (first, rest, padding) = Self.part(of: item, before: fault, stream[direction], direction)
        else { return pass(item, id, direction) }
        giveCredit(padding, id, direction)
        if let first { pass(first, id, direction) }
        if case .respond = fault.action, stream.status != nil, fault.point < .beforeResponse {
            miss(id)
        } else {
            fire(fault, id, &registry)
        }
        guard let rest, end == nil else { return }
        if case .truncateHeaders = fault.action { return truncate(rest, id, direction) }
        admit(rest, id, direction, &registry)
    }

    /// Returns the parts of a frame before and after the point of a fault; `nil` if the point is not in the frame.
    private static func part(
        of item: StreamItem, before fault: ExchangeFault, _ half: TrackedStream.Half, _ direction: Direction
    ) -> (first: StreamItem?, rest: StreamItem?, padding: Int)? {
        guard (fault.point <= .beforeRequestEnd) == (direction == .up) else { return nil }
        var role: StreamItem.Role?
        if case .block(_, _, let part) = item { role = part }
        switch fault.point {
        case .beforeRequest, .beforeResponse: return role == .head ? (nil, item, 0) : nil
        case .afterResponseHead: return role == .head ? (item, nil, 0) : nil
        case .midRequest, .midResponse:
            if role == .trailers { return (nil, item, 0) }
            guard case .data(let content, let endsStream, _, _) = item else { return nil }
            let target = fault.bytes ?? half.length.map { $0 / 2 } ?? 1
            let left = max(0, target.subtractingSaturating(half.bodyPassed))
            let count = Int64(content.readableBytes)
            if endsStream { return item.split(at: Int(min(left, max(0, count - 1)))) }
            return left <= count ? item.split(at: Int(left)) : nil
        case .beforeRequestEnd, .afterResponse:
            guard item.endsStream else { return nil }
            if !fault.action.holdsLastByte(at: fault.point) { return (item, nil, 0) }
            guard case .data(let content, _, _, _) = item else { return (nil, item, 0) }
            return item.split(at: max(0, content.readableBytes - 1))
        }
    }

    // MARK: Actions

    private mutating func fire(_ fault: ExchangeFault, _ id: UInt32, _ registry: inout ExchangeRegistry) {
        guard let stream = streams[id], let exchange = stream.exchange else { return }
        streams[id]?.fault = nil
        streams[id]?.isTouched = true
        hasFired = true
        registry.recordFired(fault)
        let offset =
            switch fault.point {
            case .beforeRequest, .beforeResponse: Int64(0)
            case .midRequest, .beforeRequestEnd: streams[id]?.up.bodyPassed ?? 0
            case .afterResponseHead, .midResponse, .afterResponse: streams[id]?.down.bodyPassed ?? 0
            }
        actions.append(.report(.faultInjected(exchange, rule: fault.rule, point: fault.point, offset: offset)))
        switch fault.action {
        case .reset: reset(id, fault, nil)
        case .resetStream(let code): reset(id, fault, code)
        case .resetConnection: endConnection(id, .abort(fault.point, fault.side), fault.point)
        case .close: endConnection(id, .close(fault.point, fault.side), fault.point)
        case .stall:
            let isRequest = fault.point <= .beforeRequestEnd
            if fault.side == .server || fault.side == .both || (fault.side == nil && isRequest) {
                discard(id, .up)
            }
            if fault.side == .client || fault.side == .both
                || (fault.side == nil && (!isRequest || fault.point == .beforeRequestEnd))
            {
                discard(id, .down)
            }
        case .delay(let time), .report(let time):
            if time == .zero { return }
            for direction in Direction.allCases { setGate(.hold(now + time), id, direction, fault) }
        case .throttle(let rate):
            let direction: Direction = fault.point.isInRequest ? .up : .down
            let throttle = ExchangeTracker.Throttle(fault: fault, exchange: exchange, bytesPerSecond: max(1, rate))
            setGate(.throttle(throttle), id, direction, fault)
        case .respond(let response):
            if fault.point == .beforeRequest { discard(id, .up) }
            discard(id, .down)
            reply(response, id)
        case .goAway:
            let last = fault.point == .beforeRequest ? max(id, 2) - 2 : lastClientStream
            goAwayLast = min(goAwayLast ?? last, last)
            emitOwn(HTTP2Frame.goAway(last: goAwayLast ?? last, .noError), .down)
            if fault.point == .beforeRequest {
                discard(id, .up)
                discard(id, .down)
                streams[id]?.down.hasEnded = true
                interrupt(id)
            }
        case .limitStreams(let count):
            // The server's SETTINGS are the first ones.
            if ownSettings.count >= Self.ownSettingsMax {
                return fail("HTTP/2: the client does not acknowledge SETTINGS")
            }
            ownSettings.append(settingsSent + (serverHasBegun ? 0 : 1))
            settingsSent += 1
            emitOwn(
                HTTP2Frame.settings([(HTTP2Frame.Setting.maxConcurrentStreams, UInt32(clamping: count))]), .down)
        case .ignorePings: ignoresPings = true
        case .ping:
            var all = pings ?? Pings(exchange: exchange, rule: fault.rule)
            (all.exchange, all.rule) = (exchange, fault.rule)
            pings = all
            streams[id]?.pingsLeft = Self.pingsMax
            ping(id)
        case .blockWindow(let ofConnection):
            let direction: Direction = fault.point <= .beforeRequestEnd ? .up : .down
            streams[id]?[direction].blocksWindow = true
            if ofConnection { blocksConnectionWindow[direction] = true }
        case .dropTrailers: streams[id]?.dropsTrailers = true
        // The block at the point follows.
        case .truncateHeaders: break
        }
    }

    /// Sends a PING of a fault to the client.
    mutating func ping(_ id: UInt32) {
        guard let left = streams[id]?.pingsLeft, left > 0, let sent = pings?.sent, sent < .max else { return }
        streams[id]?.pingsLeft = left - 1
        pings?.sent = sent + 1
        var payload = Self.pingMark
        payload.writeInteger(sent + 1)
        emitOwn(HTTP2Frame.bytes(.ping, stream: 0, payload), .down)
    }

    /// The first bytes of the payload of each PING of a fault.
    static let pingMark = ByteBuffer(string: "slow")

    /// Sends half of a header block without END_HEADERS. Nothing may follow on the connection but its CONTINUATION.
    private mutating func truncate(_ item: StreamItem, _ id: UInt32, _ direction: Direction) {
        guard case .block(_, let fields, _) = item else { return }
        if direction == .up, streams[id]?.serverID == nil, !assignServerID(id) { return }
        let target = direction == .up ? streams[id]?.serverID ?? id : id
        emitOwn(HTTP2Frame.truncatedBlock(target, fields), direction)
        isTruncated[direction] = true
        discard(id, direction)
    }

    private mutating func setGate(
        _ gate: TrackedStream.Gate, _ id: UInt32, _ direction: Direction, _ fault: ExchangeFault
    ) {
        if streams[id]?[direction].discards == true { return }
        streams[id]?[direction].gate = gate
        streams[id]?[direction].gateRule = fault.isInjected ? nil : fault.rule
        if case .hold(let time) = gate { schedule(time) }
        // Most streams have greater identifiers than those before them.
        var index = timed.endIndex
        while index > 0, timed[index - 1] >= id { index -= 1 }
        if index == timed.endIndex || timed[index] != id { timed.insert(id, at: index) }
    }

    /// Discards the frames of a direction from now on, and those that wait.
    mutating func discard(_ id: UInt32, _ direction: Direction) {
        streams[id]?[direction].gate = .discard
        while let item = takeHeld(id, direction) { discard(item, id, direction) }
        if direction == .up, streams[id]?.serverID == nil {
            // The server will not respond.
            streams[id]?.down.hasEnded = true
        }
    }

    private mutating func discard(_ item: StreamItem, _ id: UInt32, _ direction: Direction) {
        if case .block = item { rewrites[direction] = true }
        giveCredit(item.credit, id, direction)
    }

    /// Gives the sender of discarded DATA its credit back, so that the windows of the connection and of the stream do
    /// not become smaller.
    private mutating func giveCredit(_ bytes: Int, _ id: UInt32, _ direction: Direction) {
        guard bytes > 0, let stream = streams[id] else { return }
        if direction == .down { window += Int64(bytes) }
        let increment = UInt32(clamping: bytes)
        if !blocksConnectionWindow[direction] {
            emitOwn(HTTP2Frame.number(.windowUpdate, 0, increment), direction.opposite)
        }
        if stream[direction].hasEnded || stream[direction].blocksWindow { return }
        if let id = direction == .up ? stream.id : stream.serverID {
            emitOwn(HTTP2Frame.number(.windowUpdate, id, increment), direction.opposite)
        }
    }

    /// Resets a stream: RST_STREAM to the peers, and nothing more of the stream.
    private mutating func reset(_ id: UInt32, _ fault: ExchangeFault, _ code: HTTP2ErrorCode?) {
        guard let stream = streams[id] else { return }
        if fault.side != .server {
            emitOwn(HTTP2Frame.number(.resetStream, stream.id, (code ?? .internalError).rawValue), .down)
        }
        // The response tells the effect of a write, so that the server may complete it.
        let awaitsResponse =
            fault.side == nil && code == nil && stream.status != nil && stream.down.sample != nil
            && !stream.down.hasEnded
        streams[id]?.awaitsResponse = awaitsResponse
        if !awaitsResponse {
            if fault.side != .client, let server = stream.serverID {
                emitOwn(HTTP2Frame.number(.resetStream, server, (code ?? .cancel).rawValue), .up)
            }
            // The server has responded. What follows is discarded.
            reportResponse(id)
        }
        // A peer that has been reset sends no more. The other one gets credit for what is discarded.
        if fault.side != .server { streams[id]?.up.hasEnded = true }
        if fault.side != .client, !awaitsResponse { streams[id]?.down.hasEnded = true }
        discard(id, .up)
        discard(id, .down)
        interrupt(id)
    }

    /// Reports the response of a stream whose rest is discarded. Its body is not complete.
    mutating func reportResponse(_ id: UInt32) {
        guard let stream = streams[id], let exchange = stream.exchange, let status = stream.status,
            !stream.down.hasEnded
        else { return }
        if stream.down.sample != nil {
            actions.append(.report(.responseSampled(exchange, body: [])))
            releaseSample(id, .down)
        }
        actions.append(.report(.responseRead(exchange, status: status, bodyBytes: stream.down.bodyRead)))
    }

    /// Ends the wait for the rest of a response: a stream that has been reset for the client is reset for the server, too.
    mutating func stopAwaitingResponse(_ id: UInt32) {
        guard let stream = streams[id], stream.awaitsResponse, !stream.down.hasEnded else { return }
        if let server = stream.serverID {
            emitOwn(HTTP2Frame.number(.resetStream, server, HTTP2ErrorCode.cancel.rawValue), .up)
        }
        reportResponse(id)
        streams[id]?.down.hasEnded = true
    }

    private mutating func endConnection(_ id: UInt32, _ action: Action, _ point: FaultPoint) {
        if streams[id]?.down.sample != nil { reportResponse(id) }
        let direction: Direction = point <= .beforeRequestEnd ? .up : .down
        end = End(
            action: action, point: point, direction: direction, offset: point.isAtExit ? entered[direction] : 0)
    }

    // MARK: Responses of faults

    private mutating func reply(_ response: FaultResponse, _ id: UInt32) {
        let (fields, body) = response.http2(to: streams[id]?.method ?? "")
        rewrites.down = true
        emitOwn(HTTP2Frame.block(.headers, id, fields, endsStream: body.isEmpty), .down)
        streams[id]?.status = response.status
        if body.isEmpty { return endReply(id) }
        // The bytes are those of the rule, not a copy.
        streams[id]?.reply = body[...]
        replying.append(id)
        sendReplies()
    }

    /// Sends DATA of the responses of faults, as the client's windows permit.
    mutating func sendReplies() {
        if replying.isEmpty || !serverHasBegun { return }
        for id in replying {
            while entered.down - written.down < Self.replyBytesInLinkMax, let stream = streams[id],
                let body = stream.reply
            {
                let room = min(window, initialWindow.addingSaturating(stream.windowChange))
                let count = min(Int(clamping: room), body.count, HTTP2Frame.payloadBytesDefault)
                if count <= 0 { break }
                let isLast = count == body.count
                streams[id]?.reply = isLast ? nil : body.dropFirst(count)
                window -= Int64(count)
                windowDebt += Int64(count)
                streams[id]?.windowChange -= Int64(count)
                emit(HTTP2Frame.data(id, ByteBuffer(bytes: body.prefix(count)), endsStream: isLast), .down)
                if isLast { endReply(id) }
            }
        }
        replying.removeAll { streams[$0]?.reply == nil }
    }

    private mutating func endReply(_ id: UInt32) {
        markDelivered(id)
        removeIfEnded(id)
    }
}

extension FaultResponse {
    /// The fields of a connection, which HTTP/2 does not have (RFC 9113, section 8.2.2).
    private static let connectionNames: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
    ]

    /// Returns the fields and the body of the response to a request on a stream.
    func http2(to method: String) -> (fields: [HTTP2Field], body: [UInt8]) {
        var lines = [HTTP2Field(":status", "\(status)")]
        for field in fields {
            let name = field.name.lowercased()
            if !Self.connectionNames.contains(name) { lines.append(HTTP2Field(name, field.value)) }
        }
        guard status != 204, status != 304 else { return (lines, []) }
        if lines.value(of: "content-length") == nil { lines.append(HTTP2Field("content-length", "\(body.count)")) }
        return (lines, method == "HEAD" ? [] : body)
    }
}
