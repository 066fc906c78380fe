internal import HTTPWire
internal import NIOCore

/// An exchange of HTTP as it was seen on a wire; times are nanoseconds since 1970.
public struct CapturedExchange: Sendable {
    /// Who asked.
    public let client: TCPFrame.Endpoint
    /// Who answered.
    public let server: TCPFrame.Endpoint
    /// The request's method and target.
    public let method: String
    /// The target.
    public let target: String
    /// The answer's status; `nil` if the connection ended before it.
    public let status: Int?
    /// Bytes of the request, its head included.
    public let requestBytes: Int64
    /// Bytes of the answer, its head included.
    public let answerBytes: Int64
    /// When the request's first byte was sent.
    public let start: Int64
    /// When the answer's first byte was.
    public let firstByte: Int64?
    /// When its last was, or the connection ended.
    public let end: Int64
}

/// What a capture has to tell.
public enum CaptureEvent: Sendable {
    /// A connection's SYN.
    case opened(client: TCPFrame.Endpoint, server: TCPFrame.Endpoint, at: Int64)
    /// A connection is over; with how many bytes of payload each side sent.
    case closed(
        client: TCPFrame.Endpoint, server: TCPFrame.Endpoint, up: Int64, down: Int64, isReset: Bool, at: Int64)
    /// An exchange is over.
    case exchange(CapturedExchange)
    /// A connection cannot be read as HTTP, or no further.
    case unreadable(client: TCPFrame.Endpoint, server: TCPFrame.Endpoint, reason: String, at: Int64)
}

/// Follows the connections to one port in the order of captured segments.
public struct ConnectionReader: Sendable {
    private struct Key: Hashable {
        let client: TCPFrame.Endpoint
        let server: TCPFrame.Endpoint
    }

    private struct Request: Sendable {
        let method: String
        let target: String
        let start: Int64
        var bytes: Int64
    }

    private struct Connection: Sendable {
        var up = StreamAssembly()
        var down = StreamAssembly()
        var bytesUp: Int64 = 0
        var bytesDown: Int64 = 0
        var requests = HTTPParser(.requests)
        var answers = HTTPParser(.responses)
        /// Not answered yet, the oldest first.
        var open: [Request] = []
        var requestStart: Int64?
        var requestOffset: Int64 = 0
        var answerStart: Int64?
        var answerOffset: Int64 = 0
        var status: Int?
        var isUnreadable = false
        var lastSeen: Int64
    }

    private let port: UInt16
    private let readsHTTP: Bool
    private var connections: [Key: Connection] = [:]

    /// How many connections are followed at once; beyond that the one that was silent longest is forgotten.
    public static let connectionsMax = 20_000

    /// - Parameters:
    ///   - port: The server's.
    ///   - readsHTTP: Whether exchanges are looked for.
    public init(port: UInt16, readsHTTP: Bool) {
        self.port = port
        self.readsHTTP = readsHTTP
    }

    /// Takes a segment; gives what it made known.
    public mutating func take(_ frame: TCPFrame, at time: Int64) -> [CaptureEvent] {
        let isUp = frame.destination.port == port
        guard isUp || frame.source.port == port else { return [] }
        let key =
            isUp
            ? Key(client: frame.source, server: frame.destination)
            : Key(client: frame.destination, server: frame.source)
        var events: [CaptureEvent] = []
        if frame.isSyn && !frame.isAck && isUp {
            // A SYN sent again is the same connection's; one after an end is another's.
            if connections[key].map({ $0.bytesUp + $0.bytesDown > 0 || $0.down.hasBegun }) ?? true {
                forgetOldest()
                connections[key] = Connection(lastSeen: time)
                events.append(.opened(client: key.client, server: key.server, at: time))
            }
            connections[key]?.up.begin(frame.sequence)
            return events
        }
        guard var connection = connections[key] else { return events }
        connection.lastSeen = time
        if frame.isSyn { connection.down.begin(frame.sequence) }
        if frame.isAck {
            if isUp {
                connection.down.noteAcknowledged(frame.acknowledges)
            } else if !frame.isSyn {
                connection.up.noteAcknowledged(frame.acknowledges)
            }
        }
        // Before the server's kernel has answered there are no bytes, whatever somebody sends.
        let counts = isUp ? connection.down.hasBegun : true
        let bytes =
            !counts
            ? []
            : isUp
                ? connection.up.take(frame.payload, at: frame.sequence, length: frame.payloadLength)
                : connection.down.take(frame.payload, at: frame.sequence, length: frame.payloadLength)
        if isUp { connection.bytesUp += Int64(bytes.count) } else { connection.bytesDown += Int64(bytes.count) }
        if frame.isFin {
            let place = frame.sequence &+ UInt32(truncatingIfNeeded: frame.payloadLength)
            if isUp { connection.up.noteFin(at: place) } else { connection.down.noteFin(at: place) }
        }
        if readsHTTP && !connection.isUnreadable {
            read(bytes, isUp, connection.down.isFinished, &connection, key, time, &events)
        }
        let isCutShort = connection.up.isBroken || connection.down.isBroken
        if frame.isReset || (connection.up.isFinished && connection.down.isFinished) || (isCutShort && frame.isFin) {
            connections[key] = nil
            end(connection, key, isReset: frame.isReset, time, &events)
        } else {
            connections[key] = connection
        }
        return events
    }

    private func read(
        _ bytes: [UInt8], _ isUp: Bool, _ isFinished: Bool, _ connection: inout Connection, _ key: Key, _ time: Int64,
        _ events: inout [CaptureEvent]
    ) {
        func cannot(_ reason: String) {
            connection.isUnreadable = true
            events.append(.unreadable(client: key.client, server: key.server, reason: reason, at: time))
        }
        if connection.up.isBroken || connection.down.isBroken { return cannot("bytes are missing in the capture") }
        do throws(HTTPError) {
            if isUp {
                if !bytes.isEmpty && connection.requestStart == nil { connection.requestStart = time }
                connection.requests.received(ByteBuffer(bytes: bytes))
                while let part = try connection.requests.takePart() {
                    switch part {
                    case .requestHead(let head, let range):
                        connection.answers.requestSent(method: head.method)
                        connection.requestOffset = range.lowerBound
                        connection.open.append(
                            Request(
                                method: head.method, target: head.target, start: connection.requestStart ?? time,
                                bytes: range.upperBound - range.lowerBound))
                    case .end(let offset):
                        if let last = connection.open.indices.last {
                            connection.open[last].bytes = offset - connection.requestOffset
                        }
                        connection.requestStart = connection.requests.isInsideMessage ? time : nil
                    case .opaque: return cannot("it has become something else than HTTP")
                    default: break
                    }
                }
            } else {
                if !bytes.isEmpty && connection.answerStart == nil { connection.answerStart = time }
                connection.answers.received(ByteBuffer(bytes: bytes))
                if isFinished { connection.answers.streamEnded() }
                while let part = try connection.answers.takePart() {
                    switch part {
                    case .responseHead(let head, let range, let isInterim):
                        if isInterim { continue }
                        connection.status = head.status
                        connection.answerOffset = range.lowerBound
                    case .end(let offset):
                        guard !connection.open.isEmpty else { continue }
                        let request = connection.open.removeFirst()
                        events.append(
                            .exchange(
                                CapturedExchange(
                                    client: key.client, server: key.server, method: request.method,
                                    target: request.target, status: connection.status, requestBytes: request.bytes,
                                    answerBytes: offset - connection.answerOffset, start: request.start,
                                    firstByte: connection.answerStart, end: time)))
                        connection.status = nil
                        connection.answerStart = connection.answers.isInsideMessage ? time : nil
                    case .opaque: return cannot("it has become something else than HTTP")
                    default: break
                    }
                }
            }
        } catch {
            cannot(error == .endedEarly ? "the answer ended early" : "no HTTP/1.1: \(error)")
        }
    }

    private func end(
        _ connection: Connection, _ key: Key, isReset: Bool, _ time: Int64, _ events: inout [CaptureEvent]
    ) {
        for request in connection.open {
            events.append(
                .exchange(
                    CapturedExchange(
                        client: key.client, server: key.server, method: request.method, target: request.target,
                        status: nil, requestBytes: request.bytes, answerBytes: 0, start: request.start,
                        firstByte: connection.answerStart, end: time)))
        }
        events.append(
            .closed(
                client: key.client, server: key.server, up: connection.bytesUp, down: connection.bytesDown,
                isReset: isReset, at: time))
    }

    private mutating func forgetOldest() {
        guard connections.count >= Self.connectionsMax,
            let oldest = connections.min(by: { $0.value.lastSeen < $1.value.lastSeen })
        else { return }
        connections[oldest.key] = nil
    }
}
