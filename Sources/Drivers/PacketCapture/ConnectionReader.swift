internal import NIOCore
internal import Wire

/// A reader of the connections to one port, from captured segments in capture order.
public struct ConnectionReader: Sendable {
    private struct Key: Hashable {
        let client: TCPSegment.Endpoint
        let server: TCPSegment.Endpoint
    }

    private struct Request: Sendable {
        let method: String
        let target: String
        let start: Int64
        var bytes: Int64
    }

    private struct Connection: Sendable {
        var up = StreamReassembler()
        var down = StreamReassembler()
        var bytesUp: Int64 = 0
        var bytesDown: Int64 = 0
        var requestParser = HTTPParser(.requests)
        var responseParser = HTTPParser(.responses)
        /// Requests without a response, the oldest first.
        var pendingRequests: [Request] = []
        var requestStart: Int64?
        var requestOffset: Int64 = 0
        var responseStart: Int64?
        var responseOffset: Int64 = 0
        var status: Int?
        var isUnreadable = false
        var lastSeen: Int64
    }

    private let port: UInt16
    private let readsHTTP: Bool
    private var connections: [Key: Connection] = [:]

    /// The maximum number of connections that are tracked at once; beyond it the one idle for longest is dropped.
    public static let connectionsMax = 20_000

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - port: The server's port.
    ///   - readsHTTP: Whether to parse HTTP exchanges.
    public init(port: UInt16, readsHTTP: Bool) {
        self.port = port
        self.readsHTTP = readsHTTP
    }

    /// Processes a segment. Returns the resulting events.
    public mutating func process(_ segment: TCPSegment, at time: Int64) -> [CaptureEvent] {
        let isUp = segment.destination.port == port
        guard isUp || segment.source.port == port else { return [] }
        let key =
            isUp
            ? Key(client: segment.source, server: segment.destination)
            : Key(client: segment.destination, server: segment.source)
        var events: [CaptureEvent] = []
        if segment.isSYN && !segment.isACK && isUp {
            // A repeated SYN belongs to the same connection; a SYN after a SYN-ACK or data reuses the port for another.
            if connections[key].map({ $0.bytesUp + $0.bytesDown > 0 || $0.down.hasStarted }) ?? true {
                dropIdlestIfFull()
                connections[key] = Connection(lastSeen: time)
                events.append(.opened(client: key.client, server: key.server, at: time))
            }
            connections[key]?.up.start(afterSYN: segment.sequenceNumber)
            return events
        }
        guard var connection = connections[key] else { return events }
        connection.lastSeen = time
        if segment.isSYN { connection.down.start(afterSYN: segment.sequenceNumber) }
        if segment.isACK {
            if isUp {
                connection.down.recordAcknowledgment(segment.acknowledgmentNumber)
            } else if !segment.isSYN {
                connection.up.recordAcknowledgment(segment.acknowledgmentNumber)
            }
        }
        // Data before the SYN-ACK is not part of the stream.
        let isInStream = isUp ? connection.down.hasStarted : true
        let bytes =
            !isInStream
            ? []
            : isUp
                ? connection.up.insert(
                    segment.payload, at: segment.sequenceNumber, length: segment.payloadLength)
                : connection.down.insert(
                    segment.payload, at: segment.sequenceNumber, length: segment.payloadLength)
        if isUp { connection.bytesUp += Int64(bytes.count) } else { connection.bytesDown += Int64(bytes.count) }
        if segment.isFIN {
            let position = segment.sequenceNumber &+ UInt32(truncatingIfNeeded: segment.payloadLength)
            if isUp { connection.up.recordFIN(at: position) } else { connection.down.recordFIN(at: position) }
        }
        if readsHTTP && !connection.isUnreadable {
            parse(bytes, isUp, connection.down.isFinished, &connection, key, time, &events)
        }
        let hasGap = connection.up.isBroken || connection.down.isBroken
        if segment.isRST || (connection.up.isFinished && connection.down.isFinished) || (hasGap && segment.isFIN) {
            connections[key] = nil
            end(connection, key, isReset: segment.isRST, time, &events)
        } else {
            connections[key] = connection
        }
        return events
    }

    private func parse(
        _ bytes: [UInt8], _ isUp: Bool, _ isFinished: Bool, _ connection: inout Connection, _ key: Key, _ time: Int64,
        _ events: inout [CaptureEvent]
    ) {
        func stopParsing(_ reason: String) {
            connection.isUnreadable = true
            events.append(.unreadable(client: key.client, server: key.server, reason: reason, at: time))
        }
        if connection.up.isBroken || connection.down.isBroken {
            return stopParsing("bytes are missing in the capture")
        }
        do throws(HTTPError) {
            if isUp {
                if !bytes.isEmpty && connection.requestStart == nil { connection.requestStart = time }
                connection.requestParser.received(ByteBuffer(bytes: bytes))
                while let part = try connection.requestParser.takePart() {
                    switch part {
                    case .requestHead(let head, let range):
                        connection.responseParser.requestSent(method: head.method)
                        connection.requestOffset = range.lowerBound
                        connection.pendingRequests.append(
                            Request(
                                method: head.method, target: head.target, start: connection.requestStart ?? time,
                                bytes: range.upperBound - range.lowerBound))
                    case .end(let offset):
                        if let last = connection.pendingRequests.indices.last {
                            connection.pendingRequests[last].bytes = offset - connection.requestOffset
                        }
                        connection.requestStart = connection.requestParser.isInsideMessage ? time : nil
                    case .opaque: return stopParsing("the connection has switched from HTTP to another protocol")
                    default: break
                    }
                }
            } else {
                if !bytes.isEmpty && connection.responseStart == nil { connection.responseStart = time }
                connection.responseParser.received(ByteBuffer(bytes: bytes))
                if isFinished { connection.responseParser.streamEnded() }
                while let part = try connection.responseParser.takePart() {
                    switch part {
                    case .responseHead(let head, let range, let isInterim):
                        if isInterim { continue }
                        connection.status = head.status
                        connection.responseOffset = range.lowerBound
                    case .end(let offset):
                        guard !connection.pendingRequests.isEmpty else { continue }
                        let request = connection.pendingRequests.removeFirst()
                        events.append(
                            .exchange(
                                CapturedExchange(
                                    client: key.client, server: key.server, method: request.method,
                                    target: request.target, status: connection.status, requestBytes: request.bytes,
                                    responseBytes: offset - connection.responseOffset, start: request.start,
                                    firstByte: connection.responseStart, end: time)))
                        connection.status = nil
                        connection.responseStart = connection.responseParser.isInsideMessage ? time : nil
                    case .opaque: return stopParsing("the connection has switched from HTTP to another protocol")
                    default: break
                    }
                }
            }
        } catch {
            stopParsing(error == .endedEarly ? "the response ended early" : "not HTTP/1.1: \(error)")
        }
    }

    private func end(
        _ connection: Connection, _ key: Key, isReset: Bool, _ time: Int64, _ events: inout [CaptureEvent]
    ) {
        for request in connection.pendingRequests {
            events.append(
                .exchange(
                    CapturedExchange(
                        client: key.client, server: key.server, method: request.method, target: request.target,
                        status: nil, requestBytes: request.bytes, responseBytes: 0, start: request.start,
                        firstByte: connection.responseStart, end: time)))
        }
        events.append(
            .closed(
                client: key.client, server: key.server, up: connection.bytesUp, down: connection.bytesDown,
                isReset: isReset, at: time))
    }

    private mutating func dropIdlestIfFull() {
        guard connections.count >= Self.connectionsMax,
            let idlest = connections.min(by: { $0.value.lastSeen < $1.value.lastSeen })
        else { return }
        connections[idlest.key] = nil
    }
}
