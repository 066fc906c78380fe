import ForwardProxy
import NIOCore
import Testing

@Suite struct RequestForwarderTests {
    private static let get = "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"
    private static let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    private static let end = "\r\n\r\n"

    /// Requests with what the origin gets. The lines of a head are separated by `|`.
    @Test(arguments: [
        ("GET http://a.test/b?c HTTP/1.1|Host: a.test|Accept: */*", "GET /b?c HTTP/1.1|Host: a.test|Accept: */*"),
        ("GET http://A.Test:8080/ HTTP/1.1|X: 1|hOST: other|Y: 2", "GET / HTTP/1.1|X: 1|hOST: A.Test:8080|Y: 2"),
        ("GET http://a HTTP/1.1", "GET / HTTP/1.1|Host: a"),
        ("GET http://a?b=/c HTTP/1.1", "GET /?b=/c HTTP/1.1|Host: a"),
        ("OPTIONS http://a HTTP/1.1", "OPTIONS * HTTP/1.1|Host: a"),
        ("OPTIONS http://a/ HTTP/1.1", "OPTIONS / HTTP/1.1|Host: a"),
        ("GET http://a/#b HTTP/1.1", "GET / HTTP/1.1|Host: a"),
        ("GET http://[::1]:80/ü HTTP/1.1", "GET /ü HTTP/1.1|Host: [::1]:80"),
        (
            "GET http://a/ HTTP/1.1|Proxy-Connection: keep-alive|Keep-Alive: 5|A: 1|a: 2|A: 3",
            "GET / HTTP/1.1|Host: a|A: 1|a: 2|A: 3"
        ),
        ("GET http://a/ HTTP/1.1|Connection: x, Keep-Alive|X: 1|x: 2|Y: 3", "GET / HTTP/1.1|Host: a|Y: 3"),
        ("GET http://a/ HTTP/1.1|Connection: close", "GET / HTTP/1.1|Host: a|Connection: close"),
        ("GET http://a/ HTTP/1.1|Proxy-Connection: close", "GET / HTTP/1.1|Host: a|Connection: close"),
        ("GET http://a/ HTTP/1.0", "GET / HTTP/1.0|Host: a"),
        ("GET http://a/ HTTP/1.0|Connection: keep-alive", "GET / HTTP/1.0|Host: a|Connection: keep-alive"),
        ("GET http://a/ HTTP/1.0|Proxy-Connection: Keep-Alive", "GET / HTTP/1.0|Host: a|Connection: keep-alive"),
        (
            "GET http://a/ HTTP/1.1|TE: gzip, trailers|Connection: TE",
            "GET / HTTP/1.1|Host: a|TE: trailers|Connection: TE"
        ),
        ("GET http://a/ HTTP/1.1|TE: gzip|Connection: TE", "GET / HTTP/1.1|Host: a"),
        (
            "GET http://a/ HTTP/1.1|Upgrade: websocket|Connection: Upgrade",
            "GET / HTTP/1.1|Host: a|Upgrade: websocket|Connection: Upgrade"
        ),
        ("GET http://a/ HTTP/1.1|Upgrade: websocket", "GET / HTTP/1.1|Host: a"),
        (
            "GET http://a/ HTTP/1.1|Upgrade: h2c|HTTP2-Settings: AAMA|Connection: Upgrade, HTTP2-Settings",
            "GET / HTTP/1.1|Host: a"
        ),
        (
            "GET http://a/ HTTP/1.1|Proxy-Authorization: Basic eA==|Authorization: Basic eQ==",
            "GET / HTTP/1.1|Host: a|Authorization: Basic eQ=="
        ),
        (
            "POST http://a/ HTTP/1.1|Content-Length: 0|Content-Length: 0",
            "POST / HTTP/1.1|Host: a|Content-Length: 0"
        ),
        ("OPTIONS http://a/ HTTP/1.1|Max-Forwards: 5", "OPTIONS / HTTP/1.1|Host: a|Max-Forwards: 4"),
        ("TRACE http://a/ HTTP/1.1|max-forwards: 1", "TRACE / HTTP/1.1|Host: a|Max-Forwards: 0"),
        ("OPTIONS http://a/ HTTP/1.1|Max-Forwards: -1", "OPTIONS / HTTP/1.1|Host: a|Max-Forwards: -1"),
        ("GET http://a/ HTTP/1.1|Max-Forwards: 0", "GET / HTTP/1.1|Host: a|Max-Forwards: 0"),
        // Fields of the framing stay, whatever Connection names.
        (
            "POST http://a/ HTTP/1.1|Connection: Content-Length, Host|Content-Length: 0",
            "POST / HTTP/1.1|Host: a|Content-Length: 0"
        ),
        (
            "GET http://a/ HTTP/1.1|Expect: 100-continue|Via: 1.1 x",
            "GET / HTTP/1.1|Host: a|Expect: 100-continue|Via: 1.1 x"
        ),
    ])
    func requestsAreRewrittenToOriginForm(_ request: String, _ forwarded: String) {
        func head(_ text: String) -> String { text.split(separator: "|").joined(separator: "\r\n") + "\r\n\r\n" }
        var scene = ForwarderScene()
        scene.client(head(request))
        #expect(scene.takeSent(1) == head(forwarded))
        #expect(scene.takeReply().isEmpty)
    }

    @Test(arguments: [("OPTIONS", 200), ("TRACE", 405)])
    func theProxyIsTheLastRecipientOfARequestThatMayNotBeForwarded(_ method: String, _ status: Int) {
        var scene = ForwarderScene()
        scene.client("\(method) http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n")
        #expect(scene.takeReply().hasPrefix("HTTP/1.1 \(status) "))
        #expect(scene.takeEvents() == ["FIN client"])
    }

    @Test func bytesThatAreNotUTF8Pass() {
        var forwarder = RequestForwarder(settings())
        forwarder.receivedFromClient(
            ByteBuffer(bytes: Array("GET http://a/ HTTP/1.1\r\nX: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8)))
        _ = forwarder.takeAction()
        forwarder.established(1)
        guard case .send(let bytes, 1) = forwarder.takeAction() else { return #expect(Bool(false)) }
        #expect(bytes.readableBytesView.contains(0xE9))
    }

    /// Responses to a request with what the client gets and whether its connection stays open.
    @Test(arguments: [
        ("GET", "1.1", "HTTP/1.1 200 OK|Content-Length: 2||hi", "HTTP/1.1 200 OK|Content-Length: 2||hi", true),
        ("HEAD", "1.1", "HTTP/1.1 200 OK|Content-Length: 2||", "HTTP/1.1 200 OK|Content-Length: 2||", true),
        ("GET", "1.1", "HTTP/1.1 204 No Content|||", "HTTP/1.1 204 No Content||", true),
        (
            "GET", "1.1", "HTTP/1.1 304 Not Modified|Content-Length: 9||",
            "HTTP/1.1 304 Not Modified|Content-Length: 9||", true
        ),
        (
            "GET", "1.1", "HTTP/1.1 200 OK|Connection: close|Content-Length: 0||",
            "HTTP/1.1 200 OK|Content-Length: 0||", true
        ),
        (
            "GET", "1.1", "HTTP/1.1 200 OK|Keep-Alive: 5|Connection: X|X: 1|Content-Length: 0||",
            "HTTP/1.1 200 OK|Content-Length: 0||", true
        ),
        (
            "GET", "1.1", "HTTP/1.0 200 OK|Content-Length: 0||",
            "HTTP/1.0 200 OK|Content-Length: 0|Connection: keep-alive||", true
        ),
        ("GET", "1.1", "HTTP/1.1 200 OK|Server: x||", "HTTP/1.1 200 OK|Server: x|Connection: close||", false),
        ("GET", "1.0", "HTTP/1.1 200 OK|Content-Length: 0||", "HTTP/1.1 200 OK|Content-Length: 0||", false),
        (
            "GET", "1.0 keep", "HTTP/1.1 200 OK|Content-Length: 0||",
            "HTTP/1.1 200 OK|Content-Length: 0|Connection: keep-alive||", true
        ),
        (
            "GET", "1.1 close", "HTTP/1.1 200 OK|Content-Length: 0||",
            "HTTP/1.1 200 OK|Content-Length: 0|Connection: close||", false
        ),
        (
            "GET", "1.1", "HTTP/1.1 103 Early Hints|Link: x||HTTP/1.1 200 OK|Content-Length: 0||",
            "HTTP/1.1 103 Early Hints|Link: x||HTTP/1.1 200 OK|Content-Length: 0||", true
        ),
        (
            "GET", "1.0 keep", "HTTP/1.1 103 Early Hints|Link: x||HTTP/1.1 200 OK|Content-Length: 0||",
            "HTTP/1.1 200 OK|Content-Length: 0|Connection: keep-alive||", true
        ),
        (
            "GET", "1.1", "HTTP/1.1 200 OK|Transfer-Encoding: chunked||2;x=y|hi|0A|0123456789|0|T: 1||",
            "HTTP/1.1 200 OK|Transfer-Encoding: chunked||2;x=y|hi|0A|0123456789|0|T: 1||", true
        ),
        (
            "GET", "1.1", "HTTP/1.1 407 No|Proxy-Authenticate: Basic|Content-Length: 0||",
            "HTTP/1.1 407 No|Content-Length: 0||", true
        ),
    ])
    func responsesPassAndTheConnectionPersistsByTheirFraming(
        _ method: String, _ client: String, _ response: String, _ forwarded: String, _ persists: Bool
    ) {
        func bytes(_ text: String) -> String { text.replacing("|", with: "\r\n") }
        var scene = ForwarderScene()
        let option =
            client.hasSuffix("keep")
            ? "Connection: keep-alive\r\n" : client.hasSuffix("close") ? "Connection: close\r\n" : ""
        scene.client("\(method) http://a/ HTTP/\(client.prefix(3))\r\nHost: a\r\n\(option)\r\n")
        // The empty parts of a table's row are one empty line.
        scene.origin(1, bytes(response.replacing("|||", with: "||")))
        let isUntilClose = forwarded.contains("Server: x")
        if isUntilClose {
            scene.origin(1, "body")
            #expect(scene.takeEvents() == ["open 1 a:80"])
            scene.change { $0.finished(1) }
        }
        #expect(scene.takeReply() == bytes(forwarded) + (isUntilClose ? "body" : ""))
        #expect(scene.forwarder.isFinished == !persists)
        #expect(scene.takeEvents().contains("FIN client") == !persists)
    }

    @Test func bodiesPassWithTheirFraming() {
        let body = "3;a=\"b\"\r\nabc\r\n0005\r\n12345\r\n0\r\nTrailer: x\r\n\r\n"
        var scene = ForwarderScene()
        scene.client(
            "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body + "GET http://b/ HTTP/1.1\r\n\r\n")
        #expect(scene.takeSent(1) == "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        #expect(scene.takeEvents() == ["open 1 a:80"])
        scene.origin(1, Self.empty)
        #expect(scene.takeEvents() == ["open 2 b:80"])
    }

    // MARK: Connections

    @Test func connectionsToOriginsAreUsedAgain() {
        var scene = ForwarderScene()
        for (host, number) in [("a", 1), ("b", 2), ("a", 1), ("b", 2)] {
            scene.client("GET http://\(host)/ HTTP/1.1\r\n\r\n")
            #expect(scene.takeSent(number).hasPrefix("GET / HTTP/1.1\r\nHost: \(host)\r\n"))
            scene.origin(number, Self.empty)
            #expect(scene.takeReply() == Self.empty)
        }
        #expect(scene.takeEvents() == ["open 1 a:80", "open 2 b:80"])
        // Another port is another origin.
        scene.client("GET http://a:81/ HTTP/1.1\r\n\r\n")
        #expect(scene.takeEvents() == ["open 3 a:81"])
    }

    @Test func theConnectionThatIsIdleForTheLongestTimeIsClosed() {
        var scene = ForwarderScene()
        let numbers = Array(1...RequestForwarder.originsMax)
        for number in numbers + [1] {
            scene.client("GET http://h\(number)/ HTTP/1.1\r\n\r\n")
            scene.origin(number, Self.empty)
        }
        _ = scene.takeEvents()
        scene.client("GET http://other/ HTTP/1.1\r\n\r\n")
        #expect(scene.takeEvents() == ["close 2", "open 9 other:80"])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    ])
    func anOriginThatClosesIsNotUsedAgain(_ response: String) {
        var scene = ForwarderScene()
        scene.client(Self.get)
        scene.origin(1, response)
        scene.client(Self.get)
        #expect(scene.takeEvents() == ["open 1 a:80", "close 1", "open 2 a:80"])
    }

    @Test func anIdleOriginThatEndsIsForgotten() {
        for end in ["FIN", "RST", "bytes"] {
            var scene = ForwarderScene()
            scene.client(Self.get)
            scene.origin(1, Self.empty)
            switch end {
            case "FIN": scene.change { $0.finished(1) }
            case "RST": scene.change { $0.reset(1) }
            default: scene.origin(1, Self.empty)
            }
            scene.client(Self.get)
            #expect(scene.takeEvents() == ["open 1 a:80"] + (end == "RST" ? [] : ["close 1"]) + ["open 2 a:80"])
            #expect(scene.takeReply() == Self.empty)
        }
    }

    @Test func bytesAfterAResponseAreNotTheNextResponse() {
        var scene = ForwarderScene()
        scene.client(Self.get + Self.get)
        scene.origin(1, Self.empty + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        #expect(scene.takeReply() == Self.empty)
        #expect(scene.takeEvents() == ["open 1 a:80", "close 1", "open 2 a:80"])
        #expect(scene.takeSent(2) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    @Test func pipelinedRequestsWaitForTheResponse() {
        var scene = ForwarderScene()
        scene.client(Self.get + "GET http://a/2 HTTP/1.1\r\n\r\nGET http://b/3 HTTP/1.1\r\n\r\n")
        #expect(scene.takeSent(1) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        scene.origin(1, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
        #expect(scene.takeSent(1).isEmpty)
        scene.origin(1, "x")
        #expect(scene.takeSent(1) == "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
        scene.origin(1, Self.empty)
        #expect(scene.takeSent(2) == "GET /3 HTTP/1.1\r\nHost: b\r\n\r\n")
    }

    @Test func aClientThatSendsTooMuchAheadIsPaused() {
        var scene = ForwarderScene()
        scene.client(Self.get)
        _ = scene.takeEvents()
        let other = "POST http://b/ HTTP/1.1\r\nContent-Length: \(2 * RequestForwarder.pipelinedBytesMax)\r\n\r\n"
        scene.client(other + String(repeating: "x", count: RequestForwarder.pipelinedBytesMax - other.utf8.count))
        #expect(scene.takeEvents().isEmpty)
        scene.client(String(repeating: "x", count: 1000))
        #expect(scene.takeEvents() == ["pause"])
        scene.connects = false
        scene.origin(1, Self.empty)
        // The body waits for the connection.
        #expect(scene.takeEvents() == ["open 2 b:80"])
        scene.change { $0.established(2) }
        #expect(scene.takeEvents() == ["resume"])
        #expect(scene.forwarder.bytesKept == 0)
    }

    @Test func aHeadOfTheMaximumSizeDoesNotPauseTheClient() {
        var scene = ForwarderScene()
        scene.client("GET http://a/ HTTP/1.1\r\nX: " + String(repeating: "x", count: 70_000))
        scene.client("x" + Self.end)
        #expect(scene.takeEvents() == ["open 1 a:80"])
    }

    // MARK: Failures

    @Test func aFailureOfARequestWithoutABodyKeepsTheConnection() {
        var scene = ForwarderScene()
        scene.connects = false
        scene.client(Self.get + "HEAD http://b/ HTTP/1.1\r\n\r\n")
        scene.change { $0.failed(1, .connectionRefused) }
        let reply = scene.takeReply()
        #expect(reply.hasPrefix("HTTP/1.1 502 Bad Gateway\r\nProxy-Status: slowlane; error=connection_refused\r\n"))
        #expect(
            reply.contains("\r\nConnection: keep-alive\r\n")
                && reply.contains("cannot connect a:80: connection refused\n"))
        scene.change { $0.failed(2, .lookupTimeout) }
        let head = scene.takeReply()
        #expect(head.hasPrefix("HTTP/1.1 504 Gateway Timeout\r\n") && head.hasSuffix(Self.end))
        #expect(scene.takeEvents() == ["open 1 a:80", "open 2 b:80"])
    }

    @Test func aFailureOfARequestWithABodyClosesTheConnection() {
        var scene = ForwarderScene()
        scene.connects = false
        scene.client("POST http://a/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET h")
        scene.change { $0.failed(1, .notAllowed) }
        #expect(scene.takeReply().contains("HTTP/1.1 403 Forbidden\r\n"))
        #expect(scene.takeEvents() == ["open 1 a:80", "FIN client"])
        #expect(scene.forwarder.isFinished && scene.forwarder.bytesKept == 0)
    }

    /// Requests that parsers could understand in different ways: nothing of them reaches an origin.
    @Test(arguments: [
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", "400"),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", "400"),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n", "400"),
        ("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nX: 1\r\n y\r\n\r\n", "400"), ("GET http://a/ HTTP/1.1\nHost: a\n\n", "400"),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"), ("GET http://a@b/ HTTP/1.1\r\n\r\n", "400"),
        ("GET https://a/ HTTP/1.1\r\n\r\n", "400"), ("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
    ])
    func anAmbiguousRequestIsRefused(_ request: String, _ status: String) {
        var scene = ForwarderScene()
        scene.client(Self.get)
        scene.origin(1, Self.empty)
        _ = (scene.takeEvents(), scene.takeReply(), scene.takeSent(1))
        scene.client(request + Self.get)
        #expect(scene.takeSent(1).isEmpty)
        #expect(scene.takeReply().hasPrefix("HTTP/1.1 \(status) "))
        #expect(scene.takeEvents() == ["FIN client", "close 1"])
    }

    @Test func aBadChunkEndsTheRequest() {
        var scene = ForwarderScene()
        scene.client("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n-1\r\nGET")
        #expect(scene.takeSent(1) == "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na")
        #expect(scene.takeReply().hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
        #expect(scene.takeEvents() == ["open 1 a:80", "FIN client", "close 1"])
    }

    /// What an origin does with its connection reaches the client.
    @Test(arguments: [
        ("", "FIN", "", "FIN client"), ("", "RST", "", "RST client"),
        ("HTTP/1.1 200 OK\r\nCon", "FIN", "", "FIN client"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "FIN", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            "FIN client"
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "RST", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            "RST client"
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "FIN",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "FIN client"
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na", "RST client"
        ),
    ])
    func theEndOfAnOriginReachesTheClient(_ response: String, _ end: String, _ reply: String, _ event: String) {
        for isReused in [false, true] {
            var scene = ForwarderScene()
            if isReused {
                scene.client(Self.get)
                scene.origin(1, Self.empty)
                _ = scene.takeReply()
            }
            scene.client(Self.get + Self.get)
            scene.origin(1, response)
            if end == "FIN" { scene.change { $0.finished(1) } }
            if end == "RST" { scene.change { $0.reset(1) } }
            #expect(scene.takeReply() == reply)
            #expect(scene.takeEvents() == ["open 1 a:80", event] + (end == "RST" ? [] : ["close 1"]))
        }
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/2.0 200\r\n\r\n",
    ])
    func aResponseThatIsNotHTTPIsABadGateway(_ response: String) {
        var scene = ForwarderScene()
        scene.client(Self.get)
        scene.origin(1, response)
        let reply = scene.takeReply()
        #expect(reply.hasPrefix("HTTP/1.1 502 Bad Gateway\r\nProxy-Status: slowlane; error=http_protocol_error\r\n"))
        #expect(reply.contains("the response of a:80 is not HTTP/1.x"))
        #expect(scene.takeEvents() == ["open 1 a:80", "FIN client", "close 1"])
    }

    @Test func eachRequestNeedsTheCredentials() {
        var scene = ForwarderScene(settings(user: "ann"))
        scene.client("GET http://a/ HTTP/1.1\r\nProxy-Authorization: basic  YW5uOnNlY3JldA==\r\n\r\n")
        #expect(scene.takeSent(1) == "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        scene.origin(1, Self.empty)
        _ = scene.takeReply()
        scene.client("GET http://a/ HTTP/1.1\r\nProxy-Authorization: Basic YW5uOnNlY3JldB==\r\n\r\n")
        let reply = scene.takeReply()
        #expect(
            reply.hasPrefix("HTTP/1.1 407 ") && reply.contains("\r\nProxy-Authenticate: Basic realm=\"slowlane\"\r\n"))
        #expect(scene.takeSent(1).isEmpty && scene.forwarder.isFinished)
    }
}
