internal import Determinism
internal import LinkModel
internal import Wire

/// An exchange of one connection whose response has not been delivered. All offsets count bytes at the exits of the
/// streams: bytes written to the server, and bytes written to the client.
struct TrackedExchange {
    /// What happens instead of a response, as soon as all earlier responses have entered the link.
    enum Turn {
        case respond(FaultResponse)
        case stall
    }

    let id: ExchangeID
    let recipient: FaultResponse.Recipient
    /// The first byte of the request, the end of its head, and the framing of its body.
    let requestStart: Int64
    let requestHeadEnd: Int64
    let requestFraming: HTTPBodyFraming
    /// The SETTINGS of a request for an upgrade to HTTP/2.
    let upgradeSettings: [UInt8]?
    /// The first byte of the request's body.
    var requestBodyStart: Int64?
    var requestEnd: Int64?
    /// Whether a fault keeps the request from the server, so that the server sends no response.
    var requestIsDropped = false
    /// Whether ``ExchangeEvent/requested(_:_:body:subject:)`` has been reported.
    var isRequested = false
    /// The fault that has not fired.
    var fault: ExchangeFault?
    /// Whether the server's final response has begun.
    var responseHasBegun = false
    /// Whether a fault discards the server's response.
    var isReplied = false
    /// Whether bytes of the server's response have been dropped before its fault at `before-response` has fired, because they
    /// exceeded the memory limit.
    var responseIsCut = false
    var turn: Turn?
    var responseStart: Int64 = 0
    var responseHeadEnd: Int64?
    var responseFraming = HTTPBodyFraming.none
    var responseBodyStart: Int64?
    /// The end of what the client receives as the response.
    var responseEnd: Int64?
    var status = 0
    var isDelivered = false
    /// Whether the end of the stream is the end of what the client receives as the response.
    var endsWithStream: Bool { responseFraming == .untilClose && !isReplied }

    init(_ id: ExchangeID, _ head: HTTPRequestHead, start: Int64, headEnd: Int64, framing: HTTPBodyFraming) {
        self.id = id
        recipient = FaultResponse.Recipient(head)
        upgradeSettings = head.upgradeSettings
        requestStart = start
        requestHeadEnd = headEnd
        requestFraming = framing
    }

    var method: String { recipient.method }

    /// Returns the write after which a fault fires, as far as known: the stream, and the offset of its end.
    func trigger(of fault: ExchangeFault) -> (direction: Direction, offset: Int64)? {
        switch fault.point {
        case .beforeRequest, .beforeResponse: nil
        case .midRequest: requestPart(fault.bytes).map { (.up, $0) }
        case .beforeRequestEnd:
            requestEnd.map { (.up, fault.action.holdsLastByte(at: .beforeRequestEnd) ? $0 - 1 : $0) }
        case .afterResponseHead: responseHeadEnd.map { (.down, $0) }
        case .midResponse:
            responseHeadEnd.flatMap {
                Self.part(of: responseFraming, from: $0, body: responseBodyStart, end: responseEnd, bytes: fault.bytes)
            }.map { (.down, $0) }
        case .afterResponse: responseEnd.map { (.down, fault.action.holdsLastByte(at: .afterResponse) ? $0 - 1 : $0) }
        }
    }

    private func requestPart(_ bytes: Int64?) -> Int64? {
        if requestFraming == .none { return requestStart + (requestHeadEnd - requestStart) / 2 }
        return Self.part(
            of: requestFraming, from: requestHeadEnd, body: requestBodyStart, end: requestEnd, bytes: bytes)
    }

    /// Returns the end of the part of a message after which a fault fires; `nil` if it is not known, or if there is no
    /// body.
    private static func part(
        of framing: HTTPBodyFraming, from headEnd: Int64, body: Int64?, end: Int64?, bytes: Int64?
    ) -> Int64? {
        switch framing {
        case .none: return nil
        case .length(let length): return headEnd + min(bytes ?? length / 2, length - 1)
        case .untilClose: return headEnd.addingSaturating(bytes ?? 1)
        case .chunked:
            let part = bytes.map(headEnd.addingSaturating) ?? body.map { $0 + 1 }
            // The last byte has not been written when the end becomes known.
            guard let end else { return part }
            return min(part ?? .max, end - 1)
        }
    }
}
