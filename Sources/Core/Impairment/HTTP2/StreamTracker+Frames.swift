internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The frames that are read.
extension StreamTracker {
    /// Processes a frame of the client.
    mutating func processUp(_ frame: HTTP2Frame, _ registry: inout ExchangeRegistry) throws(HTTP2Error) {
        switch frame.kind {
        case .settings where frame.isAcknowledgement: acknowledgeSettings(frame)
        case .settings:
            for (id, value) in frame.settings {
                switch id {
                case HTTP2Frame.Setting.headerTableSize: decoders.down.permitTable(bytes: value)
                case HTTP2Frame.Setting.initialWindowSize: initialWindow = Int64(value)
                case HTTP2Frame.Setting.maxFrameSize: readers.down.permitPayload(bytes: value)
                default: break
                }
            }
            emit(frame.bytes, .up)
        case .windowUpdate where frame.stream == 0: takeConnectionCredit(frame)
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
        if withheld == 0 {
            emit(frame.bytes, .up)
        } else if credit > withheld {
            emit(HTTP2Frame.number(.windowUpdate, 0, UInt32(credit - withheld)), .up)
        }
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
            begin(frame, fields, &registry)
        }
        take(.block(frame, fields, isNew ? .head : .trailers), frame.stream, .up, &registry)
    }

    private mutating func begin(_ frame: HTTP2Frame, _ fields: [HTTP2Field], _ registry: inout ExchangeRegistry) {
        lastClientStream = frame.stream
        if let goAwayLast, frame.stream > goAwayLast {
            // The peer of a GOAWAY ignores later streams.
            var stream = TrackedStream(id: frame.stream, exchange: nil, head: nil)
            (stream.up.gate, stream.down.gate, stream.isTouched) = (.discard, .discard, true)
            stream.down.hasEnded = true
            return streams[frame.stream] = stream
        }
        guard let head = HTTPRequestHead(http2: fields) else {
            return streams[frame.stream] = TrackedStream(id: frame.stream, exchange: nil, head: nil)
        }
        let id = registry.number(stream: frame.stream)
        actions.append(.report(.requestStarted(id, head)))
        var stream = TrackedStream(id: frame.stream, exchange: id, head: head)
        stream.up.length = fields.length
        let subject = registry.needs(of: head).subject ? registry.subject(head, []) : nil
        stream.fault = registry.match(head, subject: subject)
        streams[frame.stream] = stream
        guard frame.endsStream, let fault = stream.fault else { return }
        // HEADERS with END_STREAM has no middle, and no end without the head.
        let isAtEnd = fault.point == .beforeRequestEnd && fault.action.holdsLastByte(at: .beforeRequestEnd)
        guard fault.point == .midRequest || isAtEnd else { return }
        if fault.isDrawn { streams[frame.stream]?.fault?.point = .beforeResponse } else { miss(frame.stream) }
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
        take(.other(frame), id, direction, &registry)
    }

    /// Takes a frame of a stream: records what has been read, and lets it pass through the gate.
    private mutating func take(
        _ item: StreamItem, _ id: UInt32, _ direction: Direction, _ registry: inout ExchangeRegistry
    ) {
        guard streams[id] != nil else { return pass(item, nil, direction) }
        if case .data(let content, _, _, _) = item {
            streams[id]?[direction].bodyRead += Int64(content.readableBytes)
        }
        if item.endsStream, streams[id]?[direction].hasEnded == false {
            streams[id]?[direction].hasEnded = true
            if let exchange = streams[id]?.exchange, let bytes = streams[id]?[direction].bodyRead {
                if direction == .up {
                    reportRequested(id, registry)
                    actions.append(.report(.requestRead(exchange, bodyBytes: bytes)))
                } else if let status = streams[id]?.status {
                    actions.append(.report(.responseRead(exchange, status: status, bodyBytes: bytes)))
                }
            }
        }
        admit(item, id, direction, &registry)
        removeIfEnded(id)
    }

    private mutating func reportRequested(_ id: UInt32, _ registry: ExchangeRegistry) {
        guard let stream = streams[id], let exchange = stream.exchange, let head = stream.head, !stream.isRequested
        else { return }
        streams[id]?.isRequested = true
        actions.append(.report(.requested(exchange, head, body: [], subject: registry.subject(head, []))))
    }
}

extension [HTTP2Field] {
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
        guard let head = try? HTTPRequestHead(method: method, target: target, version: .http2, fields: lines) else {
            return nil
        }
        self = head
    }
}
