internal import DequeModule
internal import HTTPWire
internal import NIOCore

/// Follows the exchanges of one connection by the offsets of their bytes, at the entries and exits of both lanes.
///
///     client -> [ entry: where requests end   ... exit: how far the server has got  ] -> server
///     client <- [ exit: how far the client has got ... entry: where answers end     ] <- server
struct ExchangeTracker {
    private struct Exchange {
        let id: ExchangeID
        let method: String
        /// Where the request ends in the bytes of the uplink; `nil` while it is being read and its response came before.
        var requestEnd: Int64?
        let fault: (rule: Int, action: FaultAction)?
        var hasArrived = false
        /// Where the answer ends in the bytes of the downlink, once it has been read whole.
        var answerEnd: Int64?
        var status = 0
    }

    private var requests = HTTPParser(.requests)
    private var answers = HTTPParser(.responses)
    /// The request being read.
    private var head: HTTPRequestHead?
    private var sample: [UInt8] = []
    /// The exchange of the request being read, if its response has come before its end.
    private var earlyExchange: ExchangeID?
    /// Exchanges whose answer has not reached the client, in order.
    private var exchanges = Deque<Exchange>()
    private var isBlind = false
    private var answerStatus = 0
    /// Bytes read from the server, and where the last whole answer ended among them.
    private var answerBytes: Int64 = 0
    private var lastAnswerEnd: Int64 = 0
    /// Nothing goes to the client from here on.
    private var withheldFrom: Int64?
    private var exited = (up: Int64(0), down: Int64(0))

    /// So many requests may wait for their responses; who sends more ahead is not followed.
    private static let exchangesMax = 1024

    /// Bytes that are kept: what the parsers have not understood yet, and the sample of the request being read.
    var bytesKept: Int { requests.bytesKept + answers.bytesKept + sample.count }

    /// What came of bytes from the server.
    struct Answered {
        /// What may travel.
        var passes: ByteBuffer
        var events: [ExchangeEvent] = []
        /// The connection is to be reset.
        var isCut = false
    }

    /// Takes bytes from the client.
    mutating func takeRequestBytes(
        _ bytes: ByteBuffer, _ watch: ExchangeWatch, _ plan: inout FaultPlan, nextID: inout Int
    ) -> [ExchangeEvent] {
        if isBlind { return [] }
        var events: [ExchangeEvent] = []
        do {
            requests.append(bytes)
            while let part = try requests.next() {
                switch part {
                case .requestHead(let head, _):
                    self.head = head
                    sample = []
                    earlyExchange = nil
                    // Already now: who waits for `100 Continue` gets it in the middle of the request.
                    answers.expect(method: head.method)
                case .body(let piece, _):
                    let room = ExchangeWatch.bodySampleMax - sample.count
                    sample.append(contentsOf: piece.readableBytesView.prefix(max(0, room)))
                case .end(let end):
                    guard let head else { continue }
                    if let early = earlyExchange {
                        // It may be over.
                        if let index = exchanges.firstIndex(where: { $0.id == early }) {
                            exchanges[index].requestEnd = end
                        }
                    } else {
                        events.append(begin(head, requestEnd: end, watch, &plan, nextID: &nextID))
                    }
                    self.head = nil
                    sample = []
                    earlyExchange = nil
                    if exchanges.count > Self.exchangesMax {
                        events.append(blind("more than \(Self.exchangesMax) requests without a response"))
                        return events
                    }
                case .responseHead, .trailers, .opaque: break
                }
            }
        } catch {
            events.append(blind("\(error)"))
        }
        return events
    }

    /// A request is known, whole or as far as it has been read when its response comes.
    private mutating func begin(
        _ head: HTTPRequestHead, requestEnd: Int64?, _ watch: ExchangeWatch, _ plan: inout FaultPlan, nextID: inout Int
    ) -> ExchangeEvent {
        let id = ExchangeID(number: nextID)
        nextID += 1
        let subject = watch.subject(head, sample)
        exchanges.append(
            Exchange(
                id: id, method: head.method, requestEnd: requestEnd,
                fault: plan.match(method: head.method, subject: subject)))
        return .requested(id, head, body: sample, subject: subject)
    }

    /// Takes bytes from the server; says which of them may travel.
    mutating func takeAnswerBytes(
        _ bytes: ByteBuffer, _ watch: ExchangeWatch, _ plan: inout FaultPlan, nextID: inout Int
    ) -> Answered {
        var result = Answered(passes: bytes)
        let start = answerBytes
        answerBytes += Int64(bytes.readableBytes)
        // What nobody looks at any more is not kept.
        if !isBlind && !isMuted { answers.append(bytes) }
        takeAnswers(&result, watch, &plan, nextID: &nextID)
        // A faulted answer is withheld from its first byte, before anybody knows where it ends.
        var limit = withheldFrom ?? answerBytes
        if let next = exchanges.first(where: { $0.answerEnd == nil }), next.fault != nil, !isBlind {
            limit = min(limit, lastAnswerEnd)
        }
        let passing = Int(max(0, min(Int64(bytes.readableBytes), limit - start)))
        result.passes = bytes.getSlice(at: bytes.readerIndex, length: passing) ?? ByteBuffer()
        return result
    }

    /// The server has closed its sending side: that may be the end of an answer.
    mutating func takeAnswerStreamEnd(
        _ watch: ExchangeWatch, _ plan: inout FaultPlan, nextID: inout Int
    ) -> Answered {
        var result = Answered(passes: ByteBuffer())
        answers.finish()
        takeAnswers(&result, watch, &plan, nextID: &nextID)
        return result
    }

    /// Whether nothing goes to the client any more, though the connection lasts.
    var isMuted: Bool { withheldFrom != nil }

    private mutating func takeAnswers(
        _ result: inout Answered, _ watch: ExchangeWatch, _ plan: inout FaultPlan, nextID: inout Int
    ) {
        if isBlind || isMuted { return }
        do {
            while !isMuted, let part = try answers.next() {
                switch part {
                case .responseHead(let head, _, let isInterim):
                    if isInterim { continue }
                    if !exchanges.contains(where: { $0.answerEnd == nil }) {
                        // A final response in the middle of a request, as `413 Content Too Large`: it is that one's.
                        guard let request = self.head, earlyExchange == nil else { throw HTTPError.unexpectedAnswer }
                        result.events.append(begin(request, requestEnd: nil, watch, &plan, nextID: &nextID))
                        earlyExchange = exchanges.last?.id
                    }
                    answerStatus = head.status
                case .end(let end): takeAnswerEnd(end, &result)
                default: break
                }
            }
        } catch HTTPError.endedEarly {
            // Half an answer: there will be no other half.
        } catch {
            result.events.append(blind("\(error)"))
        }
    }

    private mutating func takeAnswerEnd(_ end: Int64, _ result: inout Answered) {
        guard let index = exchanges.firstIndex(where: { $0.answerEnd == nil }) else { return }
        exchanges[index].status = answerStatus
        result.events.append(.committed(exchanges[index].id, status: answerStatus))
        if let fault = exchanges[index].fault {
            withheldFrom = lastAnswerEnd
            answers = HTTPParser(.responses)
            result.events.append(.faulted(exchanges[index].id, rule: fault.rule))
            result.isCut = fault.action == .cut
        } else {
            exchanges[index].answerEnd = end
            lastAnswerEnd = end
        }
    }

    /// Bytes have been handed to the server.
    mutating func noteUpExit(_ bytes: Int) -> [ExchangeEvent] {
        exited.up += Int64(bytes)
        var events: [ExchangeEvent] = []
        for index in exchanges.indices where !exchanges[index].hasArrived {
            guard let end = exchanges[index].requestEnd, end <= exited.up else { continue }
            exchanges[index].hasArrived = true
            events.append(.arrived(exchanges[index].id))
        }
        return events
    }

    /// Bytes have been handed to the client.
    mutating func noteDownExit(_ bytes: Int) -> [ExchangeEvent] {
        exited.down += Int64(bytes)
        var events: [ExchangeEvent] = []
        while let first = exchanges.first, let end = first.answerEnd, end <= exited.down {
            exchanges.removeFirst()
            events.append(.answered(first.id, status: first.status))
        }
        return events
    }

    /// The connection is over.
    func finish() -> [ExchangeEvent] { isBlind ? [] : exchanges.map { .lost($0.id) } }

    private mutating func blind(_ reason: String) -> ExchangeEvent {
        isBlind = true
        exchanges = []
        head = nil
        sample = []
        earlyExchange = nil
        requests = HTTPParser(.requests)
        answers = HTTPParser(.responses)
        return .notHTTP(reason)
    }
}
