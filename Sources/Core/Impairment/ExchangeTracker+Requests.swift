internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// The requests at the entry.
extension ExchangeTracker {
    mutating func parseRequests(_ registry: inout ExchangeRegistry) {
        do throws(HTTPError) {
            while canParse(.up), !isAwaitingSwitch, request?.isAwaitingDecision != true,
                let part = try requests.takePart()
            {
                switch part {
                case .requestHead(let head, let range): begin(head, range, &registry)
                case .body(let piece, let range): takeRequestBody(piece, range, &registry)
                case .end(let end): endRequest(end, &registry)
                case .responseHead, .trailers, .opaque: break
                }
            }
        } catch {
            return stopTracking("\(error)", &registry)
        }
        if isAwaitingSwitch, requests.bytesKept > Self.bytesAwaitingSwitchMax {
            stopTracking(
                "more than \(Self.bytesAwaitingSwitchMax) bytes before the response to a CONNECT or an upgrade",
                &registry)
        }
    }

    private mutating func begin(_ head: HTTPRequestHead, _ range: Range<Int64>, _ registry: inout ExchangeRegistry) {
        let id = registry.number()
        exchanges.append(
            TrackedExchange(
                id, head, start: exitOffset(range.lowerBound, .up),
                headEnd: exitOffset(range.upperBound, .up), framing: requests.framing))
        var request = Request(id: id, head: head, start: messageEnd.up)
        mayHeadPass = false
        report(.requestStarted(id, head))
        let needs = registry.needs(of: head)
        request.isWithheld = needs.withholding && consumed.up <= range.lowerBound
        // The client may wait for `100 Continue`, which needs the head.
        let isExpecting = head.value(of: "Expect").map { $0.utf8.count > 0 } ?? false
        self.request = request
        // Reported before the end of the request, because `100 Continue` arrives before it.
        if !request.isWithheld { responses.requestSent(method: head.method) }
        let needsBody = needs.subject || registry.awaitsDecisions
        self.request?.needsSample = needsBody || registry.samplesBodies
        if !needsBody || (request.isWithheld && isExpecting) { match(&registry) }
    }

    private mutating func takeRequestBody(
        _ piece: ByteBuffer, _ range: Range<Int64>, _ registry: inout ExchangeRegistry
    ) {
        guard let id = request?.id else { return }
        if request?.bodyBytes == 0, let index = exchanges.indices.last, exchanges[index].id == id {
            exchanges[index].requestBodyStart = exitOffset(range.lowerBound, .up)
        }
        request?.bodyBytes += Int64(piece.readableBytes)
        guard request?.needsSample == true, let count = request?.sample.count, count < ExchangeTracking.bodySampleMax
        else { return }
        request?.sample.append(contentsOf: piece.readableBytesView.prefix(ExchangeTracking.bodySampleMax - count))
        if request?.isWithheld == true, request?.sample.count == ExchangeTracking.bodySampleMax { match(&registry) }
    }

    private mutating func endRequest(_ end: Int64, _ registry: inout ExchangeRegistry) {
        guard let id = request?.id else { return }
        let index = exchanges.indices.last.flatMap { exchanges[$0].id == id ? $0 : nil }
        let exitEnd = exitOffset(end, .up)
        if let index { exchanges[index].requestEnd = exitEnd }
        reportRequested(registry)
        report(.requestRead(id, bodyBytes: request?.bodyBytes ?? 0))
        request?.end = end
        match(&registry)
        completeRequest(&registry)
    }

    /// Ends the request that is being read, if its end has been read and it waits for no decision.
    private mutating func completeRequest(_ registry: inout ExchangeRegistry) {
        guard let request, let end = request.end, !request.isAwaitingDecision else { return }
        let index = exchanges.indices.last.flatMap { exchanges[$0].id == request.id ? $0 : nil }
        messageEnd.up = end
        self.request = nil
        if request.isDropped { drop(.up, to: end) }
        if !request.isDropped, let index, !exchanges[index].responseHasBegun, Self.maySwitch(request.head) {
            isAwaitingSwitch = true
        }
        if exchanges.count > Self.exchangesMax {
            stopTracking("more than \(Self.exchangesMax) requests without a response", &registry)
        }
        if request.id == lastExchange {
            if !request.isDropped { pass(.up, to: end) }
            stopReadingRequests()
        }
    }

    /// Returns whether the response to a request may switch the connection to another protocol.
    private static func maySwitch(_ head: HTTPRequestHead) -> Bool {
        head.method == "CONNECT" || head.value(of: "Upgrade") != nil
    }

    /// Reports the request that is being read, at its end or at the start of its response.
    mutating func reportRequested(_ registry: ExchangeRegistry) {
        guard let request, let index = exchanges.indices.last, exchanges[index].id == request.id,
            !exchanges[index].isRequested
        else { return }
        exchanges[index].isRequested = true
        report(
            .requested(
                request.id, request.head, body: request.sample, subject: registry.subject(request.head, request.sample))
        )
    }

    /// Ends the wait of a request for the decision on its faults, and continues with what follows it.
    mutating func admit(_ id: ExchangeID, _ registry: inout ExchangeRegistry, at time: Instant) {
        now = max(now, time)
        if !streams.isEmpty {
            let now = now
            streams[0].decided(id.stream ?? 1, &registry, at: now)
            takeStreamActions()
        }
        if request?.id == id, request?.isAwaitingDecision == true {
            request?.isAwaitingDecision = false
            request?.isDecided = true
            match(&registry)
            completeRequest(&registry)
            if hold == nil, !isEnded {
                parse(&registry)
                limitWithheld(&registry)
            }
        }
        finishWaiting(&registry)
    }

    /// Applies the rules to the request that is being read, and lets it enter the link. If the driver decides on its
    /// faults, the request is reported first, and waits.
    mutating func match(_ registry: inout ExchangeRegistry) {
        guard let request, !request.isMatched, !request.isAwaitingDecision else { return }
        if registry.awaitsDecisions, !request.isDecided {
            self.request?.isAwaitingDecision = true
            return reportRequested(registry)
        }
        self.request?.isMatched = true
        let subject = registry.needs(of: request.head).subject ? registry.subject(request.head, request.sample) : nil
        let fault = registry.match(request.head, subject: subject)
        if let fault, let index = exchanges.indices.last, exchanges[index].id == request.id {
            set(fault, index)
            if exchanges[index].fault?.point == .beforeRequest {
                if request.isWithheld { fire(index, &registry) } else { miss(index) }
            }
        }
        admit()
    }

    /// Lets the request that is being read enter the link.
    private mutating func admit() {
        guard let request, request.isWithheld else { return }
        self.request?.isWithheld = false
        if !request.isDropped { responses.requestSent(method: request.head.method) }
    }
}
