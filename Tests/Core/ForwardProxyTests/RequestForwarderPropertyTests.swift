import ForwardProxy
import NIOCore
import TestSupport
import Testing

/// Random exchanges, pipelined and in random pieces, against the bytes that each origin and the client must get.
@Suite struct RequestForwarderPropertyTests {
    /// An exchange with its bytes on both sides of the forwarder.
    private struct Exchange {
        var host: String
        var fromClient = ""
        var toOrigin = ""
        var fromOrigin = ""
        var toClient = ""
        var originCloses = false
    }

    private static func body(_ generator: inout SeededGenerator) -> (field: String, bytes: String) {
        let lengths = [0, 1, 10, 1000, 100_000]
        let length = lengths[
            Int.random(in: 0..<(Int.random(in: 0..<8, using: &generator) == 0 ? 5 : 4), using: &generator)]
        let alphabet = Array("GET / HTTP/1.1\r\n0123456789abcdef:;")
        let text = String((0..<length).map { alphabet[($0 &* 7 &+ length) % alphabet.count] })
        guard Bool.random(using: &generator) else { return ("Content-Length: \(text.utf8.count)\r\n", text) }
        var chunked = ""
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(Int.random(in: 1...max(1, rest.count), using: &generator))
            rest = rest.dropFirst(chunk.count)
            let isExtended = Bool.random(using: &generator)
            chunked +=
                "\(String(chunk.count, radix: 16))\(isExtended ? ";a=b" : "")\r\n\(String(decoding: chunk, as: UTF8.self))\r\n"
        }
        let trailers = Bool.random(using: &generator) ? "T: 1\r\n" : ""
        return ("Transfer-Encoding: chunked\r\n", "\(chunked)0\r\n\(trailers)\r\n")
    }

    private static func exchange(_ number: Int, isLast: Bool, _ generator: inout SeededGenerator) -> Exchange {
        var exchange = Exchange(host: "h\(Int.random(in: 0...11, using: &generator))")
        let method = ["GET", "HEAD", "POST"][Int.random(in: 0...2, using: &generator)]
        let request = method == "POST" ? body(&generator) : ("", "")
        let closes = isLast && Bool.random(using: &generator)
        let end = closes ? "Connection: close\r\n" : ""
        exchange.fromClient =
            "\(method) http://\(exchange.host)/\(number) HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n\(end)\(request.0)\r\n\(request.1)"
        exchange.toOrigin =
            "\(method) /\(number) HTTP/1.1\r\nHost: \(exchange.host)\r\n\(request.0)\(end)\r\n\(request.1)"
        let interim = Bool.random(using: &generator) ? "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" : ""
        var response = Int.random(in: 0...3, using: &generator) == 0 ? ("", "") : body(&generator)
        let status = response.0.isEmpty ? "204 No Content" : "200 OK"
        if method == "HEAD" { response.1 = "" }
        exchange.originCloses = Int.random(in: 0...3, using: &generator) == 0
        let close = exchange.originCloses ? "Connection: close\r\n" : ""
        exchange.fromOrigin = "\(interim)HTTP/1.1 \(status)\r\n\(close)\(response.0)\r\n\(response.1)"
        exchange.toClient = "\(interim)HTTP/1.1 \(status)\r\n\(response.0)\(end)\r\n\(response.1)"
        return exchange
    }

    /// The two ends of a forwarder, which check what it does.
    private struct Ends {
        var forwarder = RequestForwarder(settings())
        var exchanges: [Exchange]
        var generator: SeededGenerator
        /// The exchange whose request an origin receives.
        var current = 0
        var received: [UInt8] = []
        /// The response under way, with its origin.
        var response: (bytes: ArraySlice<UInt8>, origin: Int)?
        var hosts: [Int: String] = [:]
        var opening: [Int] = []
        var open: Set<Int> = []
        var client: [UInt8] = []
        var isPaused = false
        var pauses = 0
        var clientIsClosed = false
        var problem: String?

        mutating func drain() {
            while let action = forwarder.takeAction() {
                switch action {
                case .open(let origin, let destination):
                    hosts[origin] = destination.host
                    opening.append(origin)
                    open.insert(origin)
                    if open.count > RequestForwarder.originsMax { problem = "\(open.count) connections" }
                case .send(let bytes, let origin): receive(bytes, origin)
                case .closeOrigin(let origin): if open.remove(origin) == nil { problem = "a second end of \(origin)" }
                case .reply(let bytes):
                    if bytes.readableBytes == 0 { problem = "an empty reply" }
                    client += bytes.readableBytesView
                case .pauseClient: (isPaused, pauses) = (true, pauses + 1)
                case .resumeClient: isPaused = false
                case .closeClient: clientIsClosed = true
                case .finishSending, .resetOrigin, .resetClient: problem = "\(action)"
                }
            }
        }

        private mutating func receive(_ bytes: ByteBuffer, _ origin: Int) {
            guard exchanges.indices.contains(current), response == nil else { return problem = "a request too early" }
            let exchange = exchanges[current]
            received += bytes.readableBytesView
            if !open.contains(origin) || opening.contains(origin) { problem = "bytes to a closed connection" }
            if hosts[origin] != exchange.host { problem = "bytes to another origin" }
            let expected = Array(exchange.toOrigin.utf8)
            if !expected.starts(with: received) { problem = "other bytes of request \(current)" }
            guard received.count >= expected.count else { return }
            response = (Array(exchange.fromOrigin.utf8)[...], origin)
        }

        mutating func respond() {
            guard let (bytes, origin) = response else { return }
            let piece = bytes.prefix(Int.random(in: 1...20_000, using: &generator))
            // The next request may be sent within the call.
            if piece.count == bytes.count {
                response = nil
                received = []
                current += 1
            } else {
                response = (bytes.dropFirst(piece.count), origin)
            }
            forwarder.received(ByteBuffer(bytes: piece), from: origin)
            drain()
        }
    }

    @Test func theBytesOfEachSideAreThoseOfTheModel() throws {
        var (opened, pauses) = (0, 0)
        for seed in randomSeeds(40, soak: 5_000) {
            var generator = SeededGenerator(seed: seed)
            let count = Int.random(in: 1...15, using: &generator)
            let exchanges = (0..<count).map { Self.exchange($0, isLast: $0 == count - 1, &generator) }
            var ends = Ends(exchanges: exchanges, generator: generator)
            var requests = Array(exchanges.map(\.fromClient).joined().utf8)[...]
            var hasClosed = false
            while ends.problem == nil {
                let isDone = ends.current == count && ends.response == nil
                if isDone && hasClosed { break }
                switch Int.random(in: 0..<4, using: &generator) {
                case 0 where !ends.isPaused && !requests.isEmpty:
                    let piece = requests.prefix(Int.random(in: 1...20_000, using: &generator))
                    requests = requests.dropFirst(piece.count)
                    ends.forwarder.receivedFromClient(ByteBuffer(bytes: piece))
                case 0 where requests.isEmpty && !hasClosed && (isDone || Bool.random(using: &generator)):
                    hasClosed = true
                    ends.forwarder.clientClosed()
                case 1:
                    if let origin = ends.opening.popLast() { ends.forwarder.established(origin) }
                case 2: ends.respond()
                default:
                    // An idle origin closes its connection.
                    let idle = ends.open.sorted().first { $0 != ends.response?.origin && !ends.opening.contains($0) }
                    if let idle, ends.received.isEmpty, ends.response == nil, ends.opening.isEmpty {
                        ends.forwarder.finished(idle)
                    }
                }
                ends.drain()
            }
            try #require(ends.problem == nil, "seed \(seed)")
            let expected = exchanges.map(\.toClient).joined()
            try #require(ends.client == Array(expected.utf8), "seed \(seed)")
            #expect(ends.clientIsClosed && ends.forwarder.isFinished && ends.open.isEmpty, "seed \(seed)")
            #expect(ends.forwarder.bytesKept == 0, "seed \(seed)")
            opened += ends.hosts.count
            pauses += ends.pauses
        }
        #expect(opened > 0 && pauses > 0)
    }

    /// Random bytes and events: the forwarder neither traps nor acts after its end.
    @Test func nothingFollowsTheEnd() {
        for seed in randomSeeds(120, soak: 20_000) {
            var generator = SeededGenerator(seed: seed)
            var forwarder = RequestForwarder(settings())
            let texts = [
                "GET http://a/ HTTP/1.1\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n\r\n",
                "POST http://b/ HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
                "GET http://a/ HTTP/1.1\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "xyz",
                "\r\n",
            ]
            let responses = [
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 S\r\n\r\n",
                "x",
                "HTTP/1.1 100 C\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
            ]
            var (opened, ended): (Set<Int>, Set<Int>) = ([], [])
            var clientHasEnded = false
            for _ in 0..<30 {
                let origin = Int.random(in: 0...4, using: &generator)
                switch Int.random(in: 0..<12, using: &generator) {
                case 0: forwarder.clientClosed()
                case 1 where seed % 4 == 0: forwarder.clientGone()
                case 2: forwarder.finished(origin)
                case 3: forwarder.reset(origin)
                case 4: forwarder.failed(origin, ConnectFailure.allCases[Int.random(in: 0..<9, using: &generator)])
                case 5...6: forwarder.established(origin)
                case 7...8:
                    forwarder.received(
                        ByteBuffer(string: responses[Int.random(in: 0..<responses.count, using: &generator)]),
                        from: origin)
                default:
                    forwarder.receivedFromClient(
                        ByteBuffer(string: texts[Int.random(in: 0..<texts.count, using: &generator)]))
                }
                while let action = forwarder.takeAction() {
                    switch action {
                    case .open(let origin, _):
                        #expect(opened.insert(origin).inserted, "seed \(seed)")
                    case .send(_, let origin), .finishSending(let origin):
                        #expect(opened.contains(origin) && !ended.contains(origin), "seed \(seed): \(action)")
                    case .closeOrigin(let origin), .resetOrigin(let origin):
                        #expect(opened.contains(origin) && ended.insert(origin).inserted, "seed \(seed): \(action)")
                    case .closeClient, .resetClient: clientHasEnded = true
                    case .reply: #expect(!clientHasEnded, "seed \(seed): \(action)")
                    case .pauseClient, .resumeClient: break
                    }
                }
            }
            #expect(opened.count - ended.count <= RequestForwarder.originsMax)
        }
    }
}
