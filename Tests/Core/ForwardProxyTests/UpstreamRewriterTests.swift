import ForwardProxy
import NIOCore
import TestSupport
import Testing

/// The names in messages between a client that speaks HTTP and an upstream that speaks HTTPS.
@Suite struct UpstreamRewriterTests {
    /// A conversation of one connection, and what both sides get.
    private struct Scene {
        var rewriter: UpstreamRewriter
        var (sent, replied) = ("", "")
        var rewritings: [String] = []
        var reasons: [String] = []

        init(_ url: String = "https://api.test", rewrites: Bool = true) throws {
            rewriter = UpstreamRewriter(try OriginAuthority(url: url), rewrites: rewrites)
        }

        mutating func client(_ text: String) {
            rewriter.receivedFromClient(ByteBuffer(string: text))
            run()
        }

        mutating func upstream(_ text: String) {
            rewriter.receivedFromUpstream(ByteBuffer(string: text))
            run()
        }

        mutating func end() {
            rewriter.clientFinished()
            rewriter.upstreamFinished()
            run()
        }

        private mutating func run() {
            while let action = rewriter.takeAction() {
                switch action {
                case .send(let bytes): sent += String(buffer: bytes)
                case .reply(let bytes): replied += String(buffer: bytes)
                case .rewrote(let rewriting): rewritings.append("\(rewriting)")
                case .passesUnchanged(let reason): reasons.append(reason)
                }
            }
        }
    }

    /// Returns a text with the lines of its head separated by `|`.
    private static func head(_ text: String) -> String {
        text.split(separator: "|").joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static let get = head("GET / HTTP/1.1|Host: 127.0.0.1:9000")

    @Test(arguments: [
        ("GET /a?b HTTP/1.1|Host: 127.0.0.1:9000|X:  1 ", "https://api.test", "GET /a?b HTTP/1.1|Host: api.test|X: 1"),
        ("GET / HTTP/1.0|hOST: localhost:1", "https://api.test:8443", "GET / HTTP/1.0|hOST: api.test:8443"),
        ("GET / HTTP/1.1|Host: x", "https://[::1]", "GET / HTTP/1.1|Host: [::1]"),
        // Without one field Host, the head passes byte for byte.
        ("GET / HTTP/1.0|X:  1", "https://api.test", "GET / HTTP/1.0|X:  1"),
        ("GET / HTTP/1.1|Host: a|Host: b", "https://api.test", "GET / HTTP/1.1|Host: a|Host: b"),
        ("GET / HTTP/1.1|Host: api.test|X:  1", "https://api.test", "GET / HTTP/1.1|Host: api.test|X:  1"),
    ]) func hostOfRequestsIsThatOfTheUpstream(_ request: String, url: String, expected: String) throws {
        var scene = try Scene(url)
        scene.client(Self.head(request))
        #expect(scene.sent == Self.head(expected))
    }

    @Test(arguments: [
        ("https://api.test/next?q#f", "http://127.0.0.1:9000/next?q#f"),
        ("HTTPS://API.test:443/", "http://127.0.0.1:9000/"),
        ("https://api.test", "http://127.0.0.1:9000"), ("//api.test/x", "http://127.0.0.1:9000/x"),
        ("https://api.test?x=1", "http://127.0.0.1:9000?x=1"),
        // Other origins, and what names none.
        ("https://api.test:8443/", nil), ("https://api.test.evil/", nil), ("https://www.api.test/", nil),
        ("http://api.test/", nil), ("/next", nil), ("next", nil), ("https://user@api.test/", nil), ("https:///", nil),
        ("", nil),
    ]) func absoluteLocationsLeadToTheProxy(_ location: String, expected: String?) throws {
        var scene = try Scene()
        scene.client(Self.get)
        let response = { (location: String) in Self.head("HTTP/1.1 302 Found|Location: \(location)|Content-Length: 0") }
        scene.upstream(response(location))
        #expect(scene.replied == response(expected ?? location))
        #expect(scene.rewritings.count == (expected == nil ? 1 : 2))
    }

    @Test func locationIsAPathIfTheClientNamesNoHost() throws {
        for (location, expected) in [
            ("https://api.test/a", "/a"), ("https://api.test", "/"), ("https://api.test?b", "/?b"),
            ("https://api.test//evil.test/", "https://api.test//evil.test/"),
        ] {
            var scene = try Scene()
            scene.client("GET / HTTP/1.0\r\n\r\n")
            scene.upstream(Self.head("HTTP/1.1 302 Found|Location: \(location)"))
            #expect(scene.replied == Self.head("HTTP/1.1 302 Found|Location: \(expected)"))
        }
    }

    @Test(arguments: [
        ("a=1; Secure; Path=/", "a=1; Path=/"), ("a=1; Domain=api.test; HttpOnly", "a=1; HttpOnly"),
        ("a=1;secure;domain=.TEST", "a=1"), ("a=1; SameSite=None; Secure", "a=1"),
        ("a=1; SameSite=Lax; Secure", "a=1; SameSite=Lax"), ("a=Secure; Max-Age=5", nil), ("a=1; SameSite=None", nil),
        ("a=1; Domain=other.test", nil), ("a=1; Domain=i.test", nil), ("a=1; Domain=", nil),
        ("__Host-a=1; Secure; Path=/", nil), ("__Secure-a=1; Secure; Domain=api.test", "__Secure-a=1; Secure"),
        ("", nil),
        (";;;", nil),
    ]) func cookiesAreThoseOfTheProxy(_ cookie: String, expected: String?) throws {
        var scene = try Scene()
        scene.client(Self.get)
        scene.upstream(Self.head("HTTP/1.1 200 OK|Set-Cookie: \(cookie)|Content-Length: 0"))
        #expect(scene.replied == Self.head("HTTP/1.1 200 OK|Set-Cookie: \(expected ?? cookie)|Content-Length: 0"))
    }

    @Test func descriptionsHaveNoPathsAndNoValues() throws {
        var scene = try Scene()
        scene.client(Self.get)
        scene.upstream(
            Self.head(
                "HTTP/1.1 302 Found|Location: https://api.test/secret|Set-Cookie: id=secret; Secure|Content-Length: 0"))
        #expect(
            scene.rewritings == [
                "Host: 127.0.0.1:9000 -> api.test", "Location: https://api.test -> http://127.0.0.1:9000",
                "Set-Cookie: id without Secure",
            ])
    }

    @Test func eachResponseGetsTheHostOfItsRequest() throws {
        var scene = try Scene()
        for host in ["a:1", "b:2"] { scene.client(Self.head("GET / HTTP/1.1|Host: \(host)")) }
        let response = { (url: String) in Self.head("HTTP/1.1 302 Found|Location: \(url)/|Content-Length: 0") }
        let interim = Self.head("HTTP/1.1 103 Early Hints|Location: https://api.test/")
        scene.upstream(interim + response("https://api.test") + response("https://api.test"))
        #expect(scene.replied == interim + response("http://a:1") + response("http://b:2"))
    }

    @Test func bytesAfterAnUpgradePass() throws {
        var scene = try Scene()
        let frames = "not HTTP at all, Host: x\r\n\r\n"
        scene.client(Self.head("GET /ws HTTP/1.1|Host: x|Connection: keep-alive, Upgrade|Upgrade: websocket") + frames)
        // What follows the request waits for the response: it may be a request.
        #expect(!scene.sent.hasSuffix(frames))
        scene.upstream(
            Self.head("HTTP/1.1 101 Switching Protocols|Upgrade: websocket|Connection: Upgrade") + "\u{1}\u{2}")
        #expect(scene.sent.hasSuffix("websocket\r\n\r\n" + frames))
        scene.client("more")
        scene.upstream("HTTP/1.1 302 Found\r\nLocation: https://api.test/\r\n\r\n")
        #expect(scene.sent.hasSuffix("more") && scene.replied.hasSuffix("Location: https://api.test/\r\n\r\n"))
        #expect(scene.replied.contains("\u{1}\u{2}") && scene.reasons.isEmpty)
    }

    @Test func aRefusedUpgradeContinuesWithRequests() throws {
        var scene = try Scene()
        scene.client(Self.head("GET /ws HTTP/1.1|Host: x|Connection: Upgrade|Upgrade: websocket") + Self.get)
        scene.upstream(Self.head("HTTP/1.1 403 Forbidden|Content-Length: 0"))
        #expect(scene.sent.hasSuffix(Self.head("GET / HTTP/1.1|Host: api.test")))
        #expect(scene.rewritings.count == 2)
    }

    @Test func bytesThatAreNotHTTPPassUnchanged() throws {
        for text in [
            "\u{16}\u{3}\u{1}\u{2}", "SSH-2.0-x\r\n", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM",
        ] {
            var scene = try Scene()
            scene.client(text)
            scene.client(Self.get)
            scene.end()
            #expect(scene.sent == text + Self.get, "\(text)")
            #expect(scene.reasons.count == 1)
        }
        var scene = try Scene()
        scene.client(Self.get)
        scene.upstream("220 mail\r\nLocation: https://api.test/\r\n\r\n")
        #expect(scene.replied == "220 mail\r\nLocation: https://api.test/\r\n\r\n")
    }

    @Test func anIncompleteHeadPassesAtTheEnd() throws {
        var scene = try Scene()
        scene.client("GET / HTTP/1.1\r\nHost: x")
        #expect(scene.sent.isEmpty)
        scene.end()
        #expect(scene.sent == "GET / HTTP/1.1\r\nHost: x")
    }

    @Test func theEndOfAResponseIsKnown() throws {
        var scene = try Scene()
        #expect(scene.rewriter.isBetweenResponses)
        scene.client(Self.get + Self.get)
        scene.upstream(Self.head("HTTP/1.1 200 OK|Content-Length: 4") + "ab")
        #expect(!scene.rewriter.isBetweenResponses)
        scene.upstream("cd")
        #expect(scene.rewriter.isBetweenResponses)
        scene.upstream(Self.head("HTTP/1.1 200 OK") + "until the end")
        #expect(!scene.rewriter.isBetweenResponses)
    }

    @Test func withoutRewritingEveryBytePasses() throws {
        var scene = try Scene(rewrites: false)
        let response = Self.head(
            "HTTP/1.1 302 Found|Location: https://api.test/|Set-Cookie: a=1; Secure|Content-Length: 2")
        scene.client(Self.get)
        scene.upstream(response + "ab")
        #expect(scene.sent == Self.get && scene.replied == response + "ab" && scene.rewritings.isEmpty)
        #expect(scene.rewriter.isBetweenResponses)
    }

    @Test func requestsWithoutResponsesHaveALimit() throws {
        var scene = try Scene()
        for _ in 0...UpstreamRewriter.exchangesMax { scene.client(Self.get) }
        #expect(scene.reasons.count == 2)
        scene.client(Self.get)
        #expect(scene.sent.hasSuffix(Self.get))
    }

    // MARK: Properties

    private static let requests: [String] = [
        get, head("HEAD /h HTTP/1.1|Host: a:1"),
        head("POST /p HTTP/1.1|Host: b|Content-Length: 24") + "GET / HTTP/1.1\r\nHost: x",
        head("PUT /c HTTP/1.1|Host: c|Transfer-Encoding: chunked")
            + "5;x=y\r\nHost:\r\n3\r\n\r\n\u{1}\r\n0\r\nT: 1\r\n\r\n",
        head("GET / HTTP/1.0"), head("OPTIONS * HTTP/1.1|Host: 127.0.0.1:9000|Connection: Upgrade|Upgrade: x"),
        "rubbish\r\n",
        head("CONNECT a:1 HTTP/1.1|Host: a:1"),
    ]

    private static let responses: [String] = [
        head("HTTP/1.1 200 OK|Content-Length: 30") + "Location: https://api.test/x\r\n",
        head("HTTP/1.1 302 Found|Location: https://api.test/a|Content-Length: 0"),
        head("HTTP/1.1 100 Continue") + head("HTTP/1.1 204 No Content|Set-Cookie: a=1; Secure; Domain=test"),
        head("HTTP/1.1 200 OK|Set-Cookie: a=1; Secure|Transfer-Encoding: chunked") + "2\r\n\r\n\r\n0\r\n\r\n",
        head("HTTP/1.1 304 Not Modified"), head("HTTP/1.1 101 Switching Protocols") + "raw", "rubbish\r\n",
        head("HTTP/1.0 200 OK|Set-Cookie: b=2; Secure") + "to the end",
    ]

    /// The pieces of a text, at random places.
    private static func pieces(_ text: String, _ random: inout SeededGenerator) -> [String] {
        var (pieces, rest) = ([String](), Array(text.utf8)[...])
        while !rest.isEmpty {
            let size = Int.random(
                in: 1...max(1, min(rest.count, Bool.random(using: &random) ? 3 : 200)), using: &random)
            pieces.append(String(decoding: rest.prefix(size), as: UTF8.self))
            rest = rest.dropFirst(size)
        }
        return pieces
    }

    @Test func anySplitGivesTheSameBytes() throws {
        for seed in randomSeeds(400, soak: 20_000) {
            var random = SeededGenerator(seed: seed)
            // Rounds of some requests and then their responses, so that the order of events is that of a connection.
            let rounds = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let count = Int.random(in: 1...3, using: &random)
                return (0..<count).map { _ in
                    (
                        Self.requests.randomElement(using: &random) ?? "",
                        Self.responses.randomElement(using: &random) ?? ""
                    )
                }
            }
            var (whole, split) = (try Scene(), try Scene())
            for round in rounds {
                let (request, response) = (round.map(\.0).joined(), round.map(\.1).joined())
                whole.client(request)
                for piece in Self.pieces(request, &random) { split.client(piece) }
                whole.upstream(response)
                for piece in Self.pieces(response, &random) { split.upstream(piece) }
            }
            whole.end()
            split.end()
            #expect(whole.sent == split.sent, "seed \(seed)")
            #expect(whole.replied == split.replied, "seed \(seed)")
            #expect(whole.rewritings == split.rewritings, "seed \(seed)")
        }
    }

    @Test func bodiesAndOtherBytesStay() throws {
        for seed in randomSeeds(400, soak: 20_000) {
            var random = SeededGenerator(seed: seed)
            var scene = try Scene()
            let texts = (0..<3).map { _ in Self.requests.randomElement(using: &random) ?? "" }
            for text in texts { scene.client(text) }
            scene.end()
            // Only values of Host differ.
            var expected = texts.joined()
            for host in ["127.0.0.1:9000", "a:1", "b", "c"] {
                expected = expected.split(separator: "\r\nHost: \(host)\r\n", omittingEmptySubsequences: false)
                    .joined(separator: "\r\nHost: api.test\r\n")
            }
            var sent = scene.sent
            for host in ["127.0.0.1:9000", "a:1", "b", "c"] {
                sent = sent.split(separator: "\r\nHost: \(host)\r\n", omittingEmptySubsequences: false)
                    .joined(separator: "\r\nHost: api.test\r\n")
            }
            #expect(sent == expected, "seed \(seed)")
        }
    }
}
