internal import DequeModule
internal import HTTPWire
internal import NIOCore

/// The exchanges of one connection, tracked by the offsets of their bytes at the entries and exits of both streams.
///
///     client -> [ entry: ends of requests     ... exit: bytes written to the server ] -> server
///     client <- [ exit: bytes written to the client ...    entry: ends of responses ] <- server
///
/// A state machine without deadlines: bytes read and written are its inputs; ``takeAction()`` returns events, the
/// response bytes that may enter the link, and the abort that a fault requires.
struct ExchangeTracker {
    /// An output.
    enum Action {
        /// An event to be reported.
        case report(ExchangeEvent)
        /// Response bytes that may enter the link.
        case pass(ByteBuffer)
        /// A fault aborts the connection.
        case abort
    }

    private struct Exchange {
        let id: ExchangeID
        let method: String
        /// The offset of the end of the request in the `up` stream; `nil` if the response began before that end was
        /// read.
        var requestEnd: Int64?
        var fault: ExchangeRegistry.Fault?
        var requestIsDelivered = false
        /// The offset of the end of the response in the `down` stream, once it has been read whole.
        var responseEnd: Int64?
        var status = 0
    }

    private var actions = Deque<Action>()
    private var requests = HTTPParser(.requests)
    private var responses = HTTPParser(.responses)
    /// The head of the request whose body is being read, and the first bytes of that body.
    private var head: HTTPRequestHead?
    private var bodySample: [UInt8] = []
    /// The exchange of the request being read, if its response has begun already.
    private var earlyExchange: ExchangeID?
    /// Exchanges whose response has not been delivered, in order.
    private var exchanges = Deque<Exchange>()
    /// Whether tracking has stopped, because the bytes are not HTTP or too many requests have no response.
    private var hasStoppedTracking = false
    private var responseStatus = 0
    /// Bytes read from the server, and the end of the last whole response among them.
    private var responseBytes: Int64 = 0
    private var lastResponseEnd: Int64 = 0
    /// The offset in the `down` stream after which nothing is sent to the client.
    private var mutedFrom: Int64?
    private var written = (up: Int64(0), down: Int64(0))

    /// The maximum number of requests without a response; beyond it the connection is not tracked.
    private static let exchangesMax = 1024

    /// The number of bytes held: those not parsed yet, and the sample of the request being read.
    var bytesKept: Int { requests.bytesKept + responses.bytesKept + bodySample.count }

    /// Whether the connection must be aborted after the bytes that precede a withheld response have been passed on.
    private var mustAbortAfterPassing = false

    /// Whether a fault withholds everything from the client while the connection lasts.
    var isMuted: Bool { mutedFrom != nil }

    /// Returns the next output.
    mutating func takeAction() -> Action? { actions.popFirst() }

    // MARK: Inputs

    /// Reports bytes read from the client.
    mutating func receivedRequestBytes(_ bytes: ByteBuffer, _ registry: inout ExchangeRegistry) {
        if hasStoppedTracking { return }
        defer {
            if mustAbortAfterPassing { actions.append(.abort) }
            mustAbortAfterPassing = false
        }
        do {
            requests.received(bytes)
            while let part = try requests.takePart() {
                switch part {
                case .requestHead(let head, _):
                    self.head = head
                    bodySample = []
                    earlyExchange = nil
                    // Reported before the end of the request, because `100 Continue` arrives before it.
                    responses.requestSent(method: head.method)
                case .body(let piece, _):
                    let room = ExchangeTracking.bodySampleMax - bodySample.count
                    bodySample.append(contentsOf: piece.readableBytesView.prefix(max(0, room)))
                case .end(let end):
                    guard let head else { continue }
                    if let early = earlyExchange {
                        // The exchange may have ended.
                        if let index = exchanges.firstIndex(where: { $0.id == early }) {
                            exchanges[index].requestEnd = end
                        }
                    } else {
                        begin(head, requestEnd: end, &registry)
                    }
                    self.head = nil
                    bodySample = []
                    earlyExchange = nil
                    if exchanges.count > Self.exchangesMax {
                        return stopTracking("more than \(Self.exchangesMax) requests without a response")
                    }
                case .responseHead, .trailers, .opaque: break
                }
            }
        } catch {
            stopTracking("\(error)")
        }
    }

    /// Reports bytes read from the server. ``takeAction()`` returns those that may enter the link.
    mutating func receivedResponseBytes(_ bytes: ByteBuffer, _ registry: inout ExchangeRegistry) {
        let start = responseBytes
        responseBytes += Int64(bytes.readableBytes)
        if !hasStoppedTracking && !isMuted { responses.received(bytes) }
        var mustAbort = parseResponses(&registry)
        // A response with a fault is withheld from its first byte on, before its end has arrived.
        var limit = mutedFrom ?? responseBytes
        if let next = exchanges.first(where: { $0.responseEnd == nil }), next.fault != nil, !hasStoppedTracking {
            limit = min(limit, lastResponseEnd)
        }
        let passing = Int(max(0, min(Int64(bytes.readableBytes), limit - start)))
        if passing > 0, let piece = bytes.getSlice(at: bytes.readerIndex, length: passing) {
            actions.append(.pass(piece))
        }
        mustAbort = mustAbort || mustAbortAfterPassing
        mustAbortAfterPassing = false
        if mustAbort { actions.append(.abort) }
    }

    /// Reports that the server has closed its sending side, which may be the end of a response.
    mutating func responseStreamEnded(_ registry: inout ExchangeRegistry) {
        responses.streamEnded()
        if parseResponses(&registry) { actions.append(.abort) }
    }

    /// Reports bytes written to the server.
    mutating func wroteRequestBytes(_ count: Int) {
        written.up += Int64(count)
        for index in exchanges.indices where !exchanges[index].requestIsDelivered {
            guard let end = exchanges[index].requestEnd, end <= written.up else { continue }
            exchanges[index].requestIsDelivered = true
            report(.requestDelivered(exchanges[index].id))
        }
    }

    /// Reports bytes written to the client.
    mutating func wroteResponseBytes(_ count: Int) {
        written.down += Int64(count)
        while let first = exchanges.first, let end = first.responseEnd, end <= written.down {
            exchanges.removeFirst()
            report(.responseDelivered(first.id, status: first.status))
        }
    }

    /// Reports the end of the connection.
    mutating func connectionEnded() {
        if hasStoppedTracking { return }
        for exchange in exchanges { report(.interrupted(exchange.id)) }
        exchanges = []
    }

    // MARK: Faults

    /// Sets the fault of an exchange. Returns whether it can still apply: nothing of the response has passed.
    mutating func setFault(_ fault: ExchangeRegistry.Fault, of id: ExchangeID) -> Bool {
        guard !hasStoppedTracking, !isMuted,
            let index = exchanges.firstIndex(where: { $0.id == id && $0.responseEnd == nil }),
            exchanges[index].fault == nil
        else { return false }
        // Bytes after the last whole response belong to the first exchange without one.
        let isNext = exchanges.firstIndex { $0.responseEnd == nil } == index
        if isNext && responseBytes > lastResponseEnd { return false }
        exchanges[index].fault = fault
        return true
    }

    /// Withdraws the faults of all exchanges except one whose response has been withheld in part.
    mutating func withdrawFaults() {
        var isNext = true
        for index in exchanges.indices where exchanges[index].responseEnd == nil {
            if !(isNext && responseBytes > lastResponseEnd) { exchanges[index].fault = nil }
            isNext = false
        }
    }

    // MARK: Internals

    private mutating func report(_ event: ExchangeEvent) { actions.append(.report(event)) }

    /// Starts the exchange of a request: at the request's end, or at the start of its response if that comes first.
    private mutating func begin(_ head: HTTPRequestHead, requestEnd: Int64?, _ registry: inout ExchangeRegistry) {
        let registration = registry.register(head, bodySample: bodySample)
        exchanges.append(
            Exchange(
                id: registration.id, method: head.method, requestEnd: requestEnd, fault: registration.fault))
        report(.requested(registration.id, head, body: bodySample, subject: registration.subject))
    }

    /// Parses the responses read so far. Returns whether a fault aborts the connection.
    private mutating func parseResponses(_ registry: inout ExchangeRegistry) -> Bool {
        if hasStoppedTracking { return false }
        var mustAbort = false
        do {
            while !isMuted, let part = try responses.takePart() {
                switch part {
                case .responseHead(let head, _, let isInterim):
                    if isInterim { continue }
                    if !exchanges.contains(where: { $0.responseEnd == nil }) {
                        // A final response in the middle of a request, such as `413 Content Too Large`.
                        guard let request = self.head, earlyExchange == nil else { throw HTTPError.unexpectedResponse }
                        begin(request, requestEnd: nil, &registry)
                        earlyExchange = exchanges.last?.id
                    }
                    responseStatus = head.status
                case .end(let end): if takeResponseEnd(end) { mustAbort = true }
                default: break
                }
            }
        } catch HTTPError.endedEarly {
            // The stream has ended, so the response remains incomplete.
        } catch {
            stopTracking("\(error)")
        }
        return mustAbort
    }

    /// Returns whether a fault aborts the connection.
    private mutating func takeResponseEnd(_ end: Int64) -> Bool {
        guard let index = exchanges.firstIndex(where: { $0.responseEnd == nil }) else { return false }
        exchanges[index].status = responseStatus
        report(.committed(exchanges[index].id, status: responseStatus))
        guard let fault = exchanges[index].fault else {
            exchanges[index].responseEnd = end
            lastResponseEnd = end
            return false
        }
        mutedFrom = lastResponseEnd
        responses = HTTPParser(.responses)
        report(.faultInjected(exchanges[index].id, rule: fault.rule))
        return fault.action == .abort
    }

    private mutating func stopTracking(_ reason: String) {
        hasStoppedTracking = true
        if let next = exchanges.first(where: { $0.responseEnd == nil }), let fault = next.fault,
            responseBytes > lastResponseEnd
        {
            // Part of the response with the fault has been withheld, so no later byte may pass.
            mutedFrom = lastResponseEnd
            mustAbortAfterPassing = fault.action == .abort
        }
        exchanges = []
        head = nil
        bodySample = []
        earlyExchange = nil
        requests = HTTPParser(.requests)
        responses = HTTPParser(.responses)
        report(.notHTTP(reason))
    }
}
