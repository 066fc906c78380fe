internal import NIOCore
internal import Wire

extension RequestForwarder {
    /// Forwards what an origin has sent of the response to the current request.
    mutating func takeResponse(_ origin: Origin) {
        while let exchange, exchange.origin == origin, let index = index(of: origin) {
            do throws(HTTPError) {
                guard let (part, bytes) = try connections[index].responses.next() else { return }
                forward(part, bytes, of: exchange, framing: connections[index].responses.framing)
            } catch {
                // The driver of the end, `finished(_:)`, closes the client's connection.
                if error == .endedEarly { return }
                return responseFailed(error, exchange)
            }
        }
    }

    private mutating func forward(
        _ part: HTTPPart, _ bytes: ByteBuffer, of exchange: Exchange, framing: HTTPBodyFraming
    ) {
        switch part {
        case .responseHead(let head, _, isInterim: true):
            // HTTP/1.0 has no interim responses (RFC 9110, 15.2).
            guard exchange.version >= .http11 else { return }
            perform(.reply(HopByHop.response(head, keepsAlive: nil, to: exchange.version)))
        case .responseHead(let head, _, isInterim: false) where head.status == 101:
            guard exchange.asksUpgrade, exchange.requestHasEnded else {
                return responseFailed(.unexpectedResponse, exchange)
            }
            perform(.reply(HopByHop.response(head, keepsAlive: nil, to: exchange.version)))
            let rest = index(of: exchange.origin).map { connections[$0].responses.takeRemainder() } ?? ByteBuffer()
            if rest.readableBytes > 0 { perform(.reply(rest)) }
            beginTunnel(exchange.origin)
        case .responseHead(let head, _, isInterim: false):
            // After an early response the rest of the request may never come; the connection ends with the response.
            let keepsAlive = exchange.keepsAlive && exchange.requestHasEnded && framing != .untilClose
            self.exchange?.keepsAlive = keepsAlive
            self.exchange?.originKeepsAlive = head.keepsAlive && framing != .untilClose
            self.exchange?.responseHasBegun = true
            perform(.reply(HopByHop.response(head, keepsAlive: keepsAlive, to: exchange.version)))
        case .body, .trailers, .opaque: perform(.reply(bytes))
        case .end:
            if bytes.readableBytes > 0 { perform(.reply(bytes)) }
            endExchange()
        case .requestHead: break
        }
    }

    /// Ends an exchange whose response is not HTTP/1.x.
    private mutating func responseFailed(_ error: HTTPError, _ exchange: Exchange) {
        guard self.exchange?.responseHasBegun != true else { return abort() }
        refuse(
            ProxyResponse(
                status: 502, fields: [("Proxy-Status", "slowlane; error=http_protocol_error")],
                text: "the response of \(exchange.destination) is not HTTP/1.x: \(error)\n"
                    + "check that an HTTP server listens on this port\n",
                omitsBody: exchange.method == "HEAD"))
    }
}
