internal import DequeModule
internal import LinkModel
internal import NIOCore
internal import Wire

/// The responses at the entry.
extension ExchangeTracker {
    /// The index of the exchange whose response the server sends next.
    var nextResponse: Int? {
        var index = responseCursor
        while index < exchanges.count, exchanges[index].requestIsDropped { index += 1 }
        return index < exchanges.count ? index : nil
    }

    /// The index of the exchange whose response may not enter the link before its end has been read.
    var withheldResponse: Int? {
        guard faultCount > 0, isTracking, let index = nextResponse, !exchanges[index].isReplied,
            exchanges[index].fault?.point == .beforeResponse
        else { return nil }
        return index
    }

    /// Returns whether a byte of an exchange's final response has been read.
    func responseHasBegun(_ index: Int) -> Bool {
        if exchanges[index].responseHasBegun || index < responseCursor { return true }
        guard index == nextResponse else { return false }
        return consumed.down + Int64(withheld.down.count) > messageEnd.down || unparsed.down.count > 0
    }

    mutating func parseResponses(_ registry: inout ExchangeRegistry) {
        do throws(HTTPError) {
            while canParse(.down), let part = try responses.takePart() {
                switch part {
                case .responseHead(let head, let range, let isInterim):
                    if isInterim {
                        takeInterim(range)
                    } else {
                        try begin(head, range, &registry)
                    }
                case .body(let piece, let range):
                    if responseBodyBytes == 0, let index = nextResponse {
                        exchanges[index].responseBodyStart = exitOffset(range.lowerBound, .down)
                    }
                    responseBodyBytes += Int64(piece.readableBytes)
                    sampleResponse(piece)
                case .end(let end): endResponse(end, &registry)
                case .requestHead, .trailers, .opaque: break
                }
            }
        } catch {
            // If the stream has ended, the response remains incomplete.
            if error != .endedEarly { stopTracking("\(error)", &registry) }
        }
    }

    private mutating func takeInterim(_ range: Range<Int64>) {
        if let index = nextResponse, exchanges[index].isReplied {
            pass(.down, to: messageEnd.down)
            drop(.down, to: range.upperBound)
        }
        messageEnd.down = range.upperBound
    }

    private mutating func begin(
        _ head: HTTPResponseHead, _ range: Range<Int64>, _ registry: inout ExchangeRegistry
    ) throws(HTTPError) {
        guard let index = nextResponse else { throw .unexpectedResponse }
        if exchanges[index].id == request?.id {
            // A final response in the middle of a request, such as `413 Content Too Large`.
            reportRequested(registry)
            match(&registry)
        }
        if head.upgradesToHTTP2, upgradeToStreams(index, at: range.upperBound, &registry) { return }
        if exchanges[index].fault?.action.isForHTTP2 == true { miss(index) }
        exchanges[index].responseHasBegun = true
        responseBodyBytes = 0
        responseSample =
            registry.samplesResponses && !Self.readMethods.contains(exchanges[index].method) ? [] : nil
        responseStatus = head.status
        report(.responseStarted(exchanges[index].id, head))
        let isSwitch =
            head.status == 101 || (exchanges[index].method == "CONNECT" && (200...299).contains(head.status))
        if !exchanges[index].isReplied {
            exchanges[index].responseStart = exitOffset(range.lowerBound, .down)
            exchanges[index].responseHeadEnd = exitOffset(range.upperBound, .down)
            exchanges[index].responseFraming = responses.framing
            if exchanges[index].fault?.point == .beforeRequestEnd { miss(index) }
            if responses.framing == .none, exchanges[index].fault?.point == .midResponse {
                if exchanges[index].fault?.isDrawn == true {
                    exchanges[index].fault?.point = .afterResponseHead
                } else {
                    miss(index)
                }
            }
        }
        if isSwitch {
            switchProtocol(index, at: range.upperBound, &registry)
        } else if isAwaitingSwitch, index == exchanges.count - 1 {
            // The connection remains HTTP. The next response may follow in the same read.
            isAwaitingSwitch = false
            parseRequests(&registry)
        }
    }

    /// The methods whose responses are not sampled: the safe ones (RFC 9110, section 9.2.1).
    static let readMethods: Set<String> = ["GET", "HEAD", "OPTIONS", "TRACE"]

    private mutating func sampleResponse(_ piece: ByteBuffer) {
        guard let count = responseSample?.count, count < ExchangeTracking.bodySampleMax else { return }
        responseSample?.append(contentsOf: piece.readableBytesView.prefix(ExchangeTracking.bodySampleMax - count))
    }

    private mutating func switchProtocol(_ index: Int, at end: Int64, _ registry: inout ExchangeRegistry) {
        let id = exchanges[index].id
        let isReplied = exchanges[index].isReplied
        endResponse(end, &registry)
        if isReplied || isEnded || discardsFrom.down != nil {
            // The client has not switched.
            if !isEnded && !hasClosed { stall(.down, from: entered.down) }
            return
        }
        report(.protocolSwitched(id))
        isTracking = false
        request = nil
        requests = ExchangeTracker.requestParser
        responses = ExchangeTracker.responseParser
    }

    private mutating func endResponse(_ end: Int64, _ registry: inout ExchangeRegistry) {
        guard let index = nextResponse else { return }
        if let body = responseSample.take() { report(.responseSampled(exchanges[index].id, body: body)) }
        report(.responseRead(exchanges[index].id, status: responseStatus, bodyBytes: responseBodyBytes))
        let start = messageEnd.down
        messageEnd.down = end
        responseCursor = index + 1
        if exchanges[index].isReplied {
            pass(.down, to: start)
            return drop(.down, to: end)
        }
        exchanges[index].responseEnd = exitOffset(end, .down)
        exchanges[index].status = responseStatus
        if exchanges[index].fault?.point == .beforeResponse {
            pass(.down, to: start)
            fire(index, &registry)
            if isEnded || discardsFrom.down != nil { return }
            if exchanges[index].isReplied {
                exchanges[index].responseEnd = nil
                drop(.down, to: end)
                return takeTurns()
            }
        }
        entryCursor = index + 1
        if faultCount > 0 || turnCount > 0 || !throttles.down.isEmpty, hold == nil { pass(.down, to: end) }
        takeTurns()
    }

    /// Sends the replies of faults whose turn has come, and starts the muting of a response.
    mutating func takeTurns() {
        while hold == nil, !isEnded, discardsFrom.down == nil, !hasClosed, entryCursor < exchanges.count {
            let index = entryCursor
            startTrickle(of: exchanges[index].id)
            guard let turn = exchanges[index].turn else { return }
            exchanges[index].turn = nil
            turnCount -= 1
            switch turn {
            case .stall: stall(.down, from: entered.down)
            case .respond(let reply):
                let (bytes, keepsAlive) = reply.response(to: exchanges[index].recipient)
                exchanges[index].responseStart = entered.down
                entered.down += Int64(bytes.readableBytes)
                exchanges[index].responseEnd = entered.down
                exchanges[index].status = reply.status
                actions.append(.pass(bytes, .down))
                entryCursor += 1
                if !keepsAlive {
                    hasClosed = true
                    actions.append(.end(.down, .finished))
                }
            }
        }
    }
}
