import ForwardProxy
import NIOCore
import Testing

@Suite struct NegotiationTests {
    /// A client's bytes with the steps and the bytes after the negotiation.
    struct Case: Sendable, CustomStringConvertible {
        var name: String
        var bytes: [UInt8]
        var steps: [String]
        var remainder = ""
        var user: String?

        var description: String { name }

        init(_ name: String, _ bytes: [UInt8], _ steps: [String], remainder: String = "", user: String? = nil) {
            (self.name, self.bytes, self.steps, self.remainder, self.user) = (name, bytes, steps, remainder, user)
        }

        init(_ name: String, _ text: String, _ steps: [String], remainder: String = "", user: String? = nil) {
            self.init(name, Array(text.utf8), steps, remainder: remainder, user: user)
        }
    }

    private static func name(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }
    private static let address6 = [UInt8](repeating: 0, count: 15) + [1]
    private static let challenge = "HTTP/1.1 407 Proxy Authentication Required"
    private static let bad = "refuse HTTP/1.1 400 Bad Request"
    /// Base64 of `ann:secret`.
    private static let authorization = "Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n"

    static let cases: [Case] =
        [
            Case(
                "CONNECT", "CONNECT Api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\nhello", ["open api.test:443"],
                remainder: "hello"),
            Case("CONNECT 1.0 without Host", "CONNECT api.test:443 HTTP/1.0\r\n\r\n", ["open api.test:443"]),
            Case("CONNECT IPv6", "CONNECT [::1]:8080 HTTP/1.1\r\n\r\n\r\n", ["open [::1]:8080"], remainder: "\r\n"),
            Case(
                "CONNECT length 0", "CONNECT a:1 HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET", ["open a:1"],
                remainder: "GET"),
            Case("CONNECT body", "CONNECT a:1 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", [bad]),
            Case("CONNECT chunked", "CONNECT a:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [bad]),
            Case("CONNECT without port", "CONNECT api.test HTTP/1.1\r\n\r\n", [bad]),
            Case("CONNECT port 0", "CONNECT api.test:0 HTTP/1.1\r\n\r\n", [bad]),
            Case("CONNECT user", "CONNECT user@api.test:1 HTTP/1.1\r\n\r\n", [bad]),
            Case("CONNECT zone", "CONNECT [fe80::1%25lo]:1 HTTP/1.1\r\n\r\n", [bad]),
            Case("CONNECT not ASCII", "CONNECT bücher.test:1 HTTP/1.1\r\n\r\n", [bad]),
            Case("two hosts", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [bad]),
            Case("chunked 1.0", "POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [bad]),
            Case(
                "absolute form", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\nGET http://b/", ["forward"],
                remainder: "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\nGET http://b/"),
            Case(
                "empty lines first", "\r\n\r\nGET HTTP://a HTTP/1.1\r\n\r\n", ["forward"],
                remainder: "\r\n\r\nGET HTTP://a HTTP/1.1\r\n\r\n"),
            Case("page", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 200 OK"]),
            Case(
                "own page in absolute form", "GET http://127.0.0.1:9000/ HTTP/1.1\r\n\r\n", ["refuse HTTP/1.1 200 OK"]),
            Case("PAC", "GET /proxy.pac HTTP/1.0\r\n\r\n", ["refuse HTTP/1.1 200 OK"]),
            Case("path", "GET /notes HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 404 Not Found"]),
            Case("asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 404 Not Found"]),
            Case("method", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 405 Method Not Allowed"]),
            Case("https", "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", [bad]),
            Case("ftp", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 501 Not Implemented"]),
            Case("authority form", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", [bad]),
            Case("no host", "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n", [bad]),
            Case("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["refuse HTTP/1.1 505 HTTP Version Not Supported"]),
            Case("TLS", [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0], [bad]),
            Case(
                "both lengths", "POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                [bad]),
            Case("407", "CONNECT a:1 HTTP/1.0\r\n\r\n", ["refuse " + challenge], user: "ann"),
            Case("page needs no user", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ["refuse HTTP/1.1 200 OK"], user: "ann"),
            Case(
                "407 then right", "CONNECT a:1 HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\(authorization)\r\nx",
                ["reply " + challenge, "open a:1"], remainder: "x", user: "ann"),
            Case(
                "407 with a body", "POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", ["refuse " + challenge],
                user: "ann"),
            Case(
                "407 three times", String(repeating: "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", count: 4),
                ["reply " + challenge, "reply " + challenge, "refuse " + challenge], user: "ann"),
            Case(
                "two credentials", "CONNECT a:1 HTTP/1.1\r\n\(authorization)\(authorization)\r\n",
                ["reply " + challenge],
                user: "ann"),
            Case(
                "absolute form with credentials", "GET http://a/ HTTP/1.1\r\n\(authorization)\r\n", ["forward"],
                remainder: "GET http://a/ HTTP/1.1\r\n\(authorization)\r\n", user: "ann"),
            Case(
                "SOCKS 5 name", [5, 1, 0, 5, 1, 0, 3] + name("Api.test") + [1, 187] + Array("hello".utf8),
                ["reply 05 00", "open api.test:443"], remainder: "hello"),
            Case(
                "SOCKS 5 IPv4", [5, 2, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 31, 64], ["reply 05 00", "open 127.0.0.1:8000"]),
            Case("SOCKS 5 IPv6", [5, 1, 0, 5, 1, 0, 4] + address6 + [0, 80], ["reply 05 00", "open [::1]:80"]),
            Case(
                "SOCKS 5 IPv6 as a name", [5, 1, 0, 5, 1, 0, 3] + name("0::1") + [0, 80],
                ["reply 05 00", "open [::1]:80"]),
            Case("SOCKS 5 no method", [5, 1, 1], ["refuse 05 ff"]),
            Case("SOCKS 5 zero methods", [5, 0], ["refuse 05 ff"]),
            Case(
                "SOCKS 5 BIND", [5, 1, 0, 5, 2, 0, 1, 1, 1, 1, 1, 0, 80],
                ["reply 05 00", "refuse 05 07 00 01 00 00 00 00 00 00"]),
            Case(
                "SOCKS 5 UDP ASSOCIATE", [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0], ["reply 05 00", "associate 0"]),
            Case(
                "SOCKS 5 UDP ASSOCIATE from a port", [5, 1, 0, 5, 3, 0, 3] + name("me") + [4, 1],
                ["reply 05 00", "associate 1025"]),
            Case("SOCKS 5 type 2", [5, 1, 0, 5, 1, 0, 2], ["reply 05 00", "refuse 05 08 00 01 00 00 00 00 00 00"]),
            Case(
                "SOCKS 5 bad version", [5, 1, 0, 4, 1, 0, 1], ["reply 05 00", "refuse 05 01 00 01 00 00 00 00 00 00"]),
            Case(
                "SOCKS 5 port 0", [5, 1, 0, 5, 1, 0, 1, 1, 1, 1, 1, 0, 0],
                ["reply 05 00", "refuse 05 01 00 01 00 00 00 00 00 00"]),
            Case(
                "SOCKS 5 bad name", [5, 1, 0, 5, 1, 0, 3] + name("a b") + [0, 80],
                ["reply 05 00", "refuse 05 04 00 01 00 00 00 00 00 00"]),
            Case(
                "SOCKS 5 empty name", [5, 1, 0, 5, 1, 0, 3, 0, 0, 80],
                ["reply 05 00", "refuse 05 04 00 01 00 00 00 00 00 00"]),
            Case("SOCKS 5 without the user", [5, 1, 0], ["refuse 05 ff"], user: "ann"),
            Case(
                "SOCKS 5 user", [5, 2, 0, 2, 1] + name("ann") + name("secret") + [5, 1, 0, 1, 1, 1, 1, 1, 0, 80, 9],
                ["reply 05 02", "reply 01 00", "open 1.1.1.1:80"], remainder: "\t", user: "ann"),
            Case(
                "SOCKS 5 wrong password", [5, 1, 2, 1] + name("ann") + name("secreT"), ["reply 05 02", "refuse 01 01"],
                user: "ann"),
            Case(
                "SOCKS 5 wrong user", [5, 1, 2, 1] + name("bob") + name("secret"), ["reply 05 02", "refuse 01 01"],
                user: "ann"),
            Case(
                "SOCKS 5 longer password", [5, 1, 2, 1] + name("ann") + name("secretsecret"),
                ["reply 05 02", "refuse 01 01"], user: "ann"),
            Case(
                "SOCKS 5 any user", [5, 1, 2, 1] + name("x") + name("") + [5, 1, 0, 1, 1, 1, 1, 1, 0, 80],
                ["reply 05 02", "reply 01 00", "open 1.1.1.1:80"]),
            Case("SOCKS 5 bad subnegotiation", [5, 1, 2, 5], ["reply 05 02", "refuse 01 01"], user: "ann"),
            Case("SOCKS 4", [4, 1, 0, 80, 10, 0, 0, 1, 0, 65], ["open 10.0.0.1:80"], remainder: "A"),
            Case("SOCKS 4 user", [4, 1, 0, 80, 10, 0, 0, 1] + Array("ann".utf8) + [0], ["open 10.0.0.1:80"]),
            Case(
                "SOCKS 4a", [4, 1, 1, 187, 0, 0, 0, 7, 0] + Array("Api.test".utf8) + [0, 65], ["open api.test:443"],
                remainder: "A"),
            Case("SOCKS 4a empty name", [4, 1, 1, 187, 0, 0, 0, 7, 0, 0], ["refuse 00 5b 00 00 00 00 00 00"]),
            Case("SOCKS 4 BIND", [4, 2, 0, 80, 10, 0, 0, 1, 0], ["refuse 00 5b 00 00 00 00 00 00"]),
            Case("SOCKS 4 port 0", [4, 1, 0, 0, 10, 0, 0, 1, 0], ["refuse 00 5b 00 00 00 00 00 00"]),
            Case(
                "SOCKS 4 with credentials", [4, 1, 0, 80, 10, 0, 0, 1, 0], ["refuse 00 5b 00 00 00 00 00 00"],
                user: "ann"),
            Case(
                "SOCKS 4 long user", [4, 1, 0, 80, 10, 0, 0, 1] + [UInt8](repeating: 65, count: 256),
                ["refuse 00 5b 00 00 00 00 00 00"]),
            Case(
                "SOCKS 4a long name", [4, 1, 0, 80, 0, 0, 0, 1, 0] + [UInt8](repeating: 65, count: 255),
                ["refuse 00 5b 00 00 00 00 00 00"]),
        ]

    @Test(arguments: cases) func theStepsAreThoseOfTheBytes(_ example: Case) {
        let whole = Transcript([example.bytes], settings(user: example.user))
        #expect(whole.steps == example.steps)
        #expect(String(decoding: whole.remainder, as: UTF8.self) == example.remainder)
    }

    @Test(arguments: cases) func theStepsDoNotDependOnThePieces(_ example: Case) {
        let settings = settings(user: example.user)
        let whole = Transcript([example.bytes], settings)
        for cut in 1..<example.bytes.count {
            let cutOnce = Transcript([example.bytes[..<cut], example.bytes[cut...]], settings)
            #expect(cutOnce == whole, "cut at \(cut)")
        }
        #expect(Transcript(example.bytes.map { [$0] }, settings) == whole)
    }

    /// Every beginning of a negotiation waits for more bytes.
    @Test(arguments: cases.filter { $0.steps.last?.hasPrefix("open") == true && $0.remainder.isEmpty })
    func aNegotiationIsNotCompleteBeforeItsLastByte(_ example: Case) {
        for count in 0..<example.bytes.count {
            #expect(!Transcript([example.bytes[..<count]], settings(user: example.user)).isComplete)
        }
    }

    @Test(arguments: [
        ("CONNECT a:1 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 Connection established\r\n\r\n"),
        ("\u{4}\u{1}\u{0}\u{50}\u{1}\u{1}\u{1}\u{1}\u{0}", "\u{0}\u{5A}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"),
        (
            "\u{5}\u{1}\u{0}\u{5}\u{1}\u{0}\u{1}\u{1}\u{1}\u{1}\u{1}\u{0}\u{50}",
            "\u{5}\u{0}\u{0}\u{1}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"
        ),
    ])
    func theReplyTellsThatTheDestinationIsConnected(_ request: String, _ reply: String) {
        let transcript = Transcript([request.utf8])
        #expect(String(decoding: transcript.established, as: UTF8.self) == reply)
    }

    /// Failures with the status, the error of `Proxy-Status` and the codes of SOCKS.
    @Test(arguments: [
        (ConnectFailure.nameNotFound, 502, #"dns_error; rcode="NXDOMAIN""#, UInt8(4)),
        (.nameServerFailure, 502, #"dns_error; rcode="SERVFAIL""#, 4), (.lookupTimeout, 504, "dns_timeout", 4),
        (.connectionRefused, 502, "connection_refused", 5), (.connectionTimeout, 504, "connection_timeout", 6),
        (.unreachable, 502, "destination_ip_unroutable", 3), (.refusedByRule, 502, "connection_refused; details=", 5),
        (.notAllowed, 403, "http_request_denied", 2), (.loop, 502, "proxy_loop_detected", 1),
    ])
    func repliesTellWhyADestinationIsNotConnected(
        _ failure: ConnectFailure, _ status: Int, _ error: String, _ code: UInt8
    ) {
        func reply(_ bytes: [UInt8]) -> ByteBuffer {
            var negotiation = Negotiation(settings())
            negotiation.received(ByteBuffer(bytes: bytes))
            while negotiation.next() != nil {}
            return negotiation.failed(failure)
        }
        let text = String(buffer: reply(Array("CONNECT api.test:81 HTTP/1.1\r\n\r\n".utf8)))
        #expect(text.hasPrefix("HTTP/1.1 \(status) "))
        #expect(text.contains("\r\nProxy-Status: slowlane; error=\(error)"))
        #expect(text.contains("\r\nConnection: close\r\n") && text.contains("cannot connect api.test:81: "))
        #expect(
            reply([5, 1, 0, 5, 1, 0, 1, 1, 1, 1, 1, 0, 80]) == ByteBuffer(bytes: [5, code, 0, 1, 0, 0, 0, 0, 0, 0]))
        #expect(reply([4, 1, 0, 80, 1, 1, 1, 1, 0]) == ByteBuffer(bytes: [0, 91, 0, 0, 0, 0, 0, 0]))
    }

    @Test func credentialsAreNotInTexts() {
        let credentials = ProxyCredentials(user: "ann", password: "secret")
        var dumped = ""
        dump(credentials, to: &dumped)
        for text in [dumped, "\(credentials as Any)", String(reflecting: settings(user: "ann"))] {
            #expect(!text.contains("secret") && !text.contains("ann"))
        }
        #expect(ProxyCredentials(user: "a:b", password: "c") == nil)
        #expect(ProxyCredentials(user: "", password: "c") == nil)
        #expect(ProxyCredentials(user: "a", password: String(repeating: "x", count: 256)) == nil)
    }
}
