import ForwardProxy
import NIOCore
import Testing

@Suite struct LocalPagesTests {
    private static func response(_ request: String, _ settings: NegotiationSettings = settings(user: "ann")) -> String {
        var negotiation = Negotiation(settings)
        negotiation.received(ByteBuffer(string: request + "\r\n\r\n"))
        guard case .refuse(let bytes) = negotiation.next() else { return "" }
        return String(buffer: bytes)
    }

    @Test func thePageShowsTheSetupAndNoSecrets() {
        let page = Self.response("GET / HTTP/1.1\r\nHost: evil.test")
        for part in [
            "Content-Type: text/html; charset=utf-8\r\n", "Connection: close\r\n", "iOS", "Android", "macOS", "Windows",
            "Firefox", "Chromium", "<code>192.168.1.5:9000</code>", "<code>[::1]:9000</code>",
            "http://192.168.1.5:9000/proxy.pac", "asks for a user",
        ] {
            #expect(page.contains(part), "\(part)")
        }
        #expect(!page.contains("secret") && !page.contains("ann:") && !page.contains("evil.test"))
    }

    /// The page and the PAC file name only addresses of the listener.
    @Test(arguments: [
        ("127.0.0.1:9000", "127.0.0.1:9000"), ("[::1]:9000", "[::1]:9000"), ("192.168.1.5:9000", "192.168.1.5:9000"),
        ("evil.test:9000", "192.168.1.5:9000"), ("127.0.0.1", "192.168.1.5:9000"),
        ("127.0.0.1:9001", "192.168.1.5:9000"),
        ("\"; alert(1); \"", "192.168.1.5:9000"), ("127.0.0.1:9000@evil.test", "192.168.1.5:9000"),
        ("", "192.168.1.5:9000"),
    ])
    func thePACFileNamesAnAddressOfTheListener(_ host: String, _ address: String) {
        let response = Self.response("GET /proxy.pac?x=1 HTTP/1.1\r\nHost: \(host)")
        #expect(response.contains("Content-Type: application/x-ns-proxy-autoconfig\r\n"))
        #expect(
            response.hasSuffix(
                "\r\n\r\nfunction FindProxyForURL(url, host) { return \"PROXY \(address)\"; }\n"), "\(response)")
    }

    @Test func headHasTheLengthOfTheBodyAndNoBody() {
        let get = Self.response("GET / HTTP/1.1\r\nHost: a")
        let head = Self.response("HEAD / HTTP/1.1\r\nHost: a")
        #expect(head.hasSuffix("\r\n\r\n") && get.hasPrefix(head) && get.count > head.count)
        #expect(Self.response("HEAD /x HTTP/1.1\r\nHost: a").hasSuffix("\r\n\r\n"))
    }

    @Test func anotherPathIsAnsweredWithTheWayToUseTheProxy() {
        let response = Self.response("GET /notes HTTP/1.1\r\nHost: a")
        #expect(response.hasPrefix("HTTP/1.1 404 Not Found\r\n"))
        #expect(response.contains("this is a forward proxy") && response.contains("curl -x http://192.168.1.5:9000 "))
    }

    @Test func addressesThatAreNotInTheirNormalFormAreNotShown() {
        let settings = NegotiationSettings(addresses: [
            Destination(host: "<b>", port: 1), Destination(host: "a\"b", port: 1),
            Destination(host: "127.0.0.1", port: 0),
        ])
        #expect(settings.addresses.isEmpty)
        #expect(Self.response("GET / HTTP/1.1\r\nHost: <b>:1", settings).contains("HOST:PORT"))
        #expect(Self.response("GET /proxy.pac HTTP/1.1\r\nHost: a", settings).contains("return \"DIRECT\""))
    }
}
