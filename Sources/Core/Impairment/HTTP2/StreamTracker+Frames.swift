internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The frames that are read.
extension StreamTracker {
    /// Begins stream 1, whose request the server has received by an upgrade of HTTP/1.1 (RFC 7540, section 3.2).
    ///
    /// - Parameter settings: The payload of SETTINGS in the request.
    mutating func beginUpgraded(_ stream: TrackedStream, _ settings: [UInt8], _ registry: ExchangeRegistry) {
        preface = ByteBuffer()
        (stream.serverID, stream.isRequested) = (1, true)
        (stream.up.hasEnded, stream.up.endHasPassed) = (true, true)
        if registry.samplesResponses, !ExchangeTracker.readMethods.contains(stream.method) { stream.down.sample = [] }
        streams[1] = stream
        (lastClientStream, lastServerStream) = (1, 1)
        var rest = ByteBuffer(bytes: settings)
        while let (id, value) = rest.readMultipleIntegers(as: (UInt16, UInt32).self) { takeClientSetting(id, value) }
    }

    private mutating func takeClientSetting(_ id: UInt16, _ value: UInt32) {
        switch id {
        case HTTP2Frame.Setting.headerTableSize: decoders.down.permitTable(bytes: value)
        case HTTP2Frame.Setting.initialWindowSize: initialWindow = Int64(value)
        case HTTP2Frame.Setting.maxFrameSize: readers.down.permitPayload(bytes: value)
        default: break
        }
    }

    /// Processes a frame of the client.
    mutating func processUp(_ frame: HTTP2Frame, _ registry: inout ExchangeRegistry) throws(HTTP2Error) {
        switch frame.kind {
        case .settings where frame.isAcknowledgement: acknowledgeSettings(frame)
        case .settings:
            for (id, value) in frame.settings { takeClientSetting(id, value) }
            emit(frame.bytes, .up)
        case .windowUpdate where frame.stream == 0: takeConnectionCredit(frame)
        case .ping where frame.isAcknowledgement && takePingAcknowledgement(frame): break
        case .ping where ignoresPings: break
        case .priority where isShifted: break
        case .headers: try takeRequestBlock(frame, &registry)
        case .data: takeData(frame, .up, &registry)
        case .resetStream, .windowUpdate: takeOther(frame, .up, &registry)
        case .pushPromise:
            throw HTTP2Error(
                code: .protocolError, reason: "PUSH_PROMISE of a client", offset: frame.range.lowerBound)
        case .priority, .ping, .goAway, .continuation, nil: emit(frame.bytes, .up)
        }
    }

    /// Processes a frame of the server.
    mutating func processDown(_ frame: HTTP2Frame, _ registry: inout ExchangeRegistry) throws(HTTP2Error) {
        // A server that does not begin with SETTINGS.
        if !serverHasBegun, frame.kind != .settings || frame.isAcknowledgement { emitServersFirst(ByteBuffer()) }
        switch frame.kind {
        case .settings where !frame.isAcknowledgement:
            for (id, value) in frame.settings {
                switch id {
                case HTTP2Frame.Setting.headerTableSize: decoders.up.permitTable(bytes: value)
                case HTTP2Frame.Setting.maxFrameSize: readers.up.permitPayload(bytes: value)
                default: break
                }
            }
            settingsSent += 1
            emitServersFirst(frame.bytes)
        case .headers: try takeResponseBlock(frame, &registry)
        case .data:
            if windowDebt > 0, Int64(frame.payloadBytes) > window { return blockedDown = frame }
            takeData(frame, .down, &registry)
        case .windowUpdate where frame.stream == 0:
            if !blocksConnectionWindow.up { emit(frame.bytes, .down) }
        case .resetStream, .windowUpdate: takeOther(frame, .down, &registry)
        case .pushPromise:
            let id = clientID(frame.stream)
            pass(.block(frame, try decoders.down.decode(frame), .interim), streams[id].map { _ in id }, .down)
        case .goAway where isShifted:
            let last = frame.number
            let known = streams.values.filter { ($0.serverID ?? .max) <= last }.map(\.id).max() ?? 0
            var payload = frame.content
            payload.setInteger(last >= lastServerStream ? max(last, lastClientStream) : known, at: payload.readerIndex)
            emit(HTTP2Frame.bytes(.goAway, flags: frame.flags, stream: 0, payload), .down)
        case .settings, .priority, .ping, .goAway, .continuation, nil: emit(frame.bytes, .down)
        }
    }

    /// Returns the client's identifier of a stream of the server's side.
    private func clientID(_ server: UInt32) -> UInt32 { isShifted ? clientIDs[server] ?? server : server }

    // MARK: Frames of the connection

    private mutating func acknowledgeSettings(_ frame: HTTP2Frame) {
        let number = settingsAcknowledged
        settingsAcknowledged += 1
        if ownSettings.first == number {
            // The server has not sent them.
            ownSettings.removeFirst()
        } else {
            emit(frame.bytes, .up)
        }
    }

    /// Takes the client's credit for the connection; the part for DATA that the server has not sent is withheld.
    private mutating func takeConnectionCredit(_ frame: HTTP2Frame) {
        let credit = Int64(frame.number)
        window = window.addingSaturating(credit)
        let withheld = min(windowDebt, credit)
        windowDebt -= withheld
        if blocksConnectionWindow.down { return }
        if withheld == 0 {
            emit(frame.bytes, .up)
        } else if credit > withheld {
            emit(HTTP2Frame.number(.windowUpdate, 0, UInt32(credit - withheld)), .up)
        }
    }

    /// Takes the acknowledgement of a PING of a fault. Returns whether it is one.
    private mutating func takePingAcknowledgement(_ frame: HTTP2Frame) -> Bool {
        var payload = frame.content
        guard let sent = pings?.sent, payload.readSlice(length: 4) == Self.pingMark,
            let number = payload.readInteger(as: UInt32.self), number > 0, number <= sent
        else { return false }
        if let last = pings?.last, number > last {
            pings?.last = number
            pings?.acknowledged += 1
        }
        return true
    }

    // MARK: Frames of streams

    private mutating func takeRequestBlock(
        _ frame: HTTP2Frame, _ registry: inout ExchangeRegistry
    ) throws(HTTP2Error) {
        let fields = try decoders.up.decode(frame)
        let isNew = streams[frame.stream] == nil && frame.stream > lastClientStream
        if isNew {
            if streams.count - retired.count >= Self.streamsMax {
                throw HTTP2Error(
                    code: .enhanceYourCalm, reason: "more than \(Self.streamsMax) open streams",
                    offset: frame.range.lowerBound)
            }
            if headBytes >= Self.headBytesMax {
                throw HTTP2Error(
                    code: .enhanceYourCalm,
                    reason: "the heads of requests without an end have more than \(Self.headBytesMax) bytes",
                    offset: frame.range.lowerBound)
            }
            begin(frame, fields, &registry)
        }
        take(.block(frame, fields, isNew ? .head : .trailers), frame.stream, .up, &registry)
    }

    private mutating func begin(_ frame: HTTP2Frame, _ fields: [HTTP2Field], _ registry: inout ExchangeRegistry) {
        lastClientStream = frame.stream
        if let goAwayLast, frame.stream > goAwayLast {
            // The peer of a GOAWAY ignores later streams.
            let stream = TrackedStream(id: frame.stream)
            (stream.up.gate, stream.down.gate, stream.isTouched) = (.discard, .discard, true)
            stream.down.hasEnded = true
            return streams[frame.stream] = stream
        }
        guard let head = HTTPRequestHead(http2: fields) else {
            return streams[frame.stream] = TrackedStream(id: frame.stream)
        }
        let id = registry.number(stream: frame.stream)
        actions.append(.report(.requestStarted(id, head)))
        let stream = TrackedStream(id: frame.stream, exchange: id, method: head.method, head: head)
        stream.headBytes = fields.tableBytes
        headBytes += stream.headBytes
        stream.up.length = fields.length
        // The body may follow the response, or a part of it.
        stream.isDecidedAtHead =
            stream.up.length == nil || head.method == "CONNECT" || fields.value(of: "expect") != nil
        if registry.awaitsDecisions {
            stream.up.gate = .undecided
            undecided.append(frame.stream)
        }
        if registry.awaitsDecisions || registry.samplesResponses { stream.up.sample = [] }
        if registry.samplesResponses, !ExchangeTracker.readMethods.contains(head.method) { stream.down.sample = [] }
        let subject = registry.needs(of: head).subject ? registry.subject(head, []) : nil
        stream.fault = registry.match(head, subject: subject)
        streams[frame.stream] = stream
        if frame.endsStream { missPointsOfBody(frame.stream) }
    }

    /// Removes the fault of a request without a body whose point is in the body: HEADERS with END_STREAM has no middle, and
    /// no end without the head. `before-response` replaces a drawn point.
    mutating func missPointsOfBody(_ id: UInt32) {
        guard let fault = streams[id]?.fault else { return }
        let isAtEnd = fault.point == .beforeRequestEnd && fault.action.holdsLastByte(at: .beforeRequestEnd)
        guard fault.point == .midRequest || isAtEnd else { return }
        if fault.isDrawn { streams[id]?.fault?.point = .beforeResponse } else { miss(id) }
    }

    private mutating func takeResponseBlock(
        _ frame: HTTP2Frame, _ registry: inout ExchangeRegistry
    ) throws(HTTP2Error) {
        let fields = try decoders.down.decode(frame)
        let id = clientID(frame.stream)
        guard let stream = streams[id] else { return pass(.block(frame, fields, .interim), nil, .down) }
        guard stream.status == nil, let status = fields.status else {
            return take(.block(frame, fields, .trailers), id, .down, &registry)
        }
        if status < 200 { return take(.block(frame, fields, .interim), id, .down, &registry) }
        streams[id]?.status = status
        streams[id]?.down.length = fields.length
        reportRequested(id, registry)
        if let exchange = stream.exchange {
            let lines = fields.lines
            let head = try? HTTPResponseHead(version: .http2, status: status, fields: lines)
            if let head { actions.append(.report(.responseStarted(exchange, head))) }
            if stream.method == "CONNECT", status < 300, !stream.isOver {
                streams[id]?.isTunnel = true
                streams[id]?.isOver = true
                actions.append(.report(.protocolSwitched(exchange)))
            }
        }
        if stream.fault?.point == .beforeRequestEnd, !stream.up.hasEnded { miss(id) }
        if frame.endsStream, let fault = streams[id]?.fault, fault.point == .midResponse {
            if fault.isDrawn { streams[id]?.fault?.point = .afterResponseHead } else { miss(id) }
        }
        take(.block(frame, fields, .head), id, .down, &registry)
    }

    /// Takes DATA. The window of the client counts what is on its way to it.
    mutating func takeData(_ frame: HTTP2Frame, _ direction: Direction, _ registry: inout ExchangeRegistry) {
        if direction == .down { window -= Int64(frame.payloadBytes) }
        let item = StreamItem.data(
            frame.content, endsStream: frame.endsStream, credit: frame.payloadBytes, original: frame)
        take(item, direction == .up ? frame.stream : clientID(frame.stream), direction, &registry)
    }

    /// Takes RST_STREAM, or WINDOW_UPDATE of a stream.
    private mutating func takeOther(
        _ frame: HTTP2Frame, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        let id = direction == .up ? frame.stream : clientID(frame.stream)
        guard let stream = streams[id] else { return pass(.other(frame), nil, direction) }
        if frame.kind == .windowUpdate {
            if direction == .up {
                streams[id]?.windowChange = stream.windowChange.addingSaturating(Int64(frame.number))
                if stream.serverID == nil { return take(.other(frame), id, .up, &registry) }
                // The credit is for the response of a fault.
                if stream.down.discards { return }
            }
            if stream[direction.opposite].blocksWindow { return }
            // Credit belongs to the other direction, and does not wait.
            return pass(.other(frame), id, direction)
        }
        streams[id]?.up.hasEnded = true
        streams[id]?.down.hasEnded = true
        if direction == .up {
            streams[id]?.reply = nil
            replying.removeAll { $0 == id }
        }
        miss(id)
        if !stream[direction].discards || direction == .up { interrupt(id) }
        if direction == .up, stream.up.isUndecided {
            // The server does not know the stream.
            undecided.removeAll { $0 == id }
            discard(id, .up)
        }
        take(.other(frame), id, direction, &registry)
    }

    /// Takes a frame of a stream: records what has been read, and lets it pass through the gate.
    private mutating func take(
        _ item: StreamItem, _ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        guard streams[id] != nil else { return pass(item, nil, direction) }
        if case .data(let content, _, _, _) = item {
            streams[id]?[direction].bodyRead += Int64(content.readableBytes)
            sample(content, id, direction)
            if direction == .down, let half = streams[id]?.down, half.bodyRead > Int64(ExchangeTracking.bodySampleMax),
                !item.endsStream
            {
                stopAwaitingResponse(id)
            }
        }
        if item.endsStream, streams[id]?[direction].hasEnded == false {
            streams[id]?[direction].hasEnded = true
            if let exchange = streams[id]?.exchange, let bytes = streams[id]?[direction].bodyRead {
                if direction == .up {
                    reportRequested(id, registry)
                    actions.append(.report(.requestRead(exchange, bodyBytes: bytes)))
                } else if let status = streams[id]?.status {
                    if let body = streams[id]?.down.sample {
                        actions.append(.report(.responseSampled(exchange, body: body)))
                        releaseSample(id, .down)
                    }
                    actions.append(.report(.responseRead(exchange, status: status, bodyBytes: bytes)))
                }
            }
        }
        admit(item, id, direction, &registry)
        if direction == .up, !undecided.isEmpty { askForDecisions(id, registry) }
        removeIfEnded(id)
    }

    private mutating func reportRequested(_ id: UInt32, _ registry: ExchangeRegistry) {
        guard let stream = streams[id], let exchange = stream.exchange, let head = stream.head, !stream.isRequested
        else { return }
        streams[id]?.isRequested = true
        let body = stream.up.sample ?? []
        actions.append(.report(.requested(exchange, head, body: body, subject: registry.subject(head, body))))
        releaseHead(id)
    }

    /// Lets go of the head of a request, and of the beginning of its body.
    mutating func releaseHead(_ id: UInt32) {
        guard streams[id]?.head != nil else { return }
        headBytes -= streams[id]?.headBytes ?? 0
        streams[id]?.head = nil
        releaseSample(id, .up)
    }

    mutating func releaseSample(_ id: UInt32, _ direction: Direction) {
        sampleBytes -= streams[id]?[direction].sample?.count ?? 0
        streams[id]?[direction].sample = nil
    }

    /// Keeps the beginning of a body, if it is to be reported.
    private mutating func sample(_ content: ByteBuffer, _ id: UInt32, _ direction: Direction) {
        guard let count = streams[id]?[direction].sample?.count else { return }
        let room = min(ExchangeTracking.bodySampleMax - count, Self.sampleBytesMax - sampleBytes)
        guard room > 0 else { return }
        let piece = content.readableBytesView.prefix(room)
        streams[id]?[direction].sample?.append(contentsOf: piece)
        sampleBytes += piece.count
    }

    // MARK: Decisions

    /// Reports a request that waits for a decision: at its end, or when as much of it has been read as may wait.
    private mutating func askForDecisions(_ id: UInt32, _ registry: ExchangeRegistry) {
        if bytesHeld.up >= Self.allUndecidedBytesMax {
            for id in undecided { reportRequested(id, registry) }
        } else if let half = streams[id]?.up, half.isUndecided,
            half.hasEnded || half.bodyRead >= Int64(Self.undecidedBytesMax) || streams[id]?.isDecidedAtHead == true
        {
            reportRequested(id, registry)
        }
    }

    /// Lets a request pass whose faults have been decided.
    mutating func decided(_ id: UInt32, _ registry: inout ExchangeRegistry, at time: Instant) {
        now = max(now, time)
        guard streams[id]?.up.isUndecided == true else { return }
        undecided.removeAll { $0 == id }
        if streams[id]?.up.hasEnded == true, streams[id]?.up.bodyRead == 0 { missPointsOfBody(id) }
        open(id, .up, &registry)
        passedHeld()
    }

    /// Injects a fault into the exchange of a stream. Returns whether the stream can still reach the fault's point.
    mutating func inject(_ fault: ExchangeFault, _ id: UInt32) -> Bool {
        guard let stream = streams[id], stream.fault == nil, !stream.isOver, stream.status == nil, stream.reply == nil,
            !stream.up.discards, !stream.down.discards
        else { return false }
        switch fault.point {
        case .beforeRequest where !stream.up.isUndecided, .midRequest where stream.up.bodyPassed > 0,
            .midRequest where stream.up.endHasPassed, .beforeRequestEnd where stream.up.endHasPassed:
            return false
        default: break
        }
        streams[id]?.fault = fault
        return true
    }
}

extension [HTTP2Field] {
    /// The size as a part of a table (RFC 7541, section 4.1).
    var tableBytes: Int { reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 } }

    func value(of name: String) -> String? { first { $0.name == name }?.value }

    /// The length of the body, if the head gives it.
    fileprivate var length: Int64? { value(of: "content-length").flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil } }

    fileprivate var status: Int? {
        value(of: ":status").flatMap { Int($0) }.flatMap { (100...999).contains($0) ? $0 : nil }
    }

    /// The header fields without the pseudo-header fields.
    fileprivate var lines: [(name: String, value: String)] {
        filter { $0.name.utf8.first != UInt8(ascii: ":") }.map { ($0.name, $0.value) }
    }
}

extension HTTPRequestHead {
    /// Creates the head of a request from its fields; `nil` if they are not a request. `:authority` becomes `Host`.
    fileprivate init?(http2 fields: [HTTP2Field]) {
        guard let method = fields.value(of: ":method") else { return nil }
        let authority = fields.value(of: ":authority")
        guard let target = fields.value(of: ":path") ?? authority else { return nil }
        var lines = fields.lines
        if let authority, fields.value(of: "host") == nil { lines.insert((name: "Host", value: authority), at: 0) }
        // The protocol of an extended CONNECT (RFC 8441), such as WebSocket, is that of Upgrade on HTTP/1.1.
        if let name = fields.value(of: ":protocol") { lines.append((name: "Upgrade", value: name)) }
        guard let head = try? HTTPRequestHead(method: method, target: target, version: .http2, fields: lines) else {
            return nil
        }
        self = head
    }
}
