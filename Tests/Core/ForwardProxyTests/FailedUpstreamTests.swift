import ForwardProxy
import NIOCore
import Testing

/// URLs of upstreams with TLS, and the responses to requests for one that could not be connected.
@Suite struct FailedUpstreamTests {
    @Test(arguments: [
        ("https://api.test", "api.test", 443), ("HTTPS://API.Test:443/", "api.test", 443),
        ("https://api.test:8443", "api.test:8443", 8443), ("https://[::1]:443", "[::1]", 443),
        ("https://127.0.0.1:1/", "127.0.0.1:1", 1),
    ]) func anAuthorityHasAPortUnlessItIsTheStandardOne(_ url: String, text: String, port: Int) throws {
        let authority = try OriginAuthority(url: url)
        #expect(authority.description == text && authority.destination.port == port)
    }

    @Test(arguments: [
        ("https://", "the host is missing"), ("https://api.test/v1", "has no path"),
        ("https://api.test?x", "has no path"),
        ("https://u:p@api.test", "a user name"), ("https://api.test:0", "from 1 to 65535"),
        ("https://api.test:99999", "from 1 to 65535"), ("http://api.test", "begins with https://"),
        ("", "begins with https://"),
        ("https://a..b", "not a name"), ("https://ä.test", "not ASCII"), ("https://api.test//", "has no path"),
    ]) func aURLThatIsNoUpstreamHasAProblem(_ url: String, problem: String) {
        let error = #expect(throws: UpstreamURLError.self) { try OriginAuthority(url: url) }
        #expect(error?.problem.contains(problem) == true, "\(error?.problem ?? "")")
    }

    private static func response(_ failure: TLSFailure, to request: String) -> String? {
        var upstream = FailedUpstream(failure, upstream: "api.test")
        guard case .respond(let bytes) = upstream.received(ByteBuffer(string: request)) else { return nil }
        return String(buffer: bytes)
    }

    @Test(arguments: [
        (TLSFailure.unknownAuthority, "tls_certificate_error", "no trusted authority"),
        (.expired(1_769_817_600), "tls_certificate_error", "valid until Sat, 31 Jan 2026 00:00:00 GMT"),
        (.notYetValid(1_769_817_600), "tls_certificate_error", "valid from Sat, 31 Jan 2026"),
        (.wrongName("api.test"), "tls_certificate_error", "not for 'api.test'"),
        (.alert(48), #"tls_alert_received; alert-id=48; alert-message="unknown_ca""#, "alert unknown_ca"),
        (.alert(116), #"tls_alert_received; alert-id=116; alert-message="certificate_required""#, "--upstream-cert"),
        (.alert(255), #"tls_alert_received; alert-id=255; alert-message="255""#, "alert 255"),
        (.notTLS, "tls_protocol_error", "does not speak TLS"), (.closed, "tls_protocol_error", "closed the connection"),
        (.protocolError("WRONG_CURVE"), "tls_protocol_error", "WRONG_CURVE"),
    ]) func theResponseHasTheReason(_ failure: TLSFailure, status: String, reason: String) throws {
        let response = try #require(Self.response(failure, to: "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
        #expect(response.hasPrefix("HTTP/1.1 502 Bad Gateway\r\nProxy-Status: slowlane; error=\(status)\r\n"))
        #expect(response.contains("\r\nConnection: close\r\n") && response.contains(reason))
    }

    @Test func aResponseToHEADHasNoBody() throws {
        let response = try #require(Self.response(.closed, to: "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"))
        #expect(response.hasSuffix("\r\n\r\n"))
    }

    @Test func aRequestInPiecesGetsOneResponse() {
        var upstream = FailedUpstream(.closed, upstream: "api.test")
        let request = Array("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n".utf8)
        for (index, byte) in request.enumerated() {
            let outcome = upstream.received(ByteBuffer(bytes: [byte]))
            if index < request.count - 1 {
                guard case .undecided = outcome else { return _ = Issue.record("decided after \(index) bytes") }
            } else {
                guard case .respond = outcome else { return _ = Issue.record("no response") }
            }
        }
    }

    @Test func otherProtocolsAreReset() {
        for text in ["\u{16}\u{3}\u{1}", " GET", "SSH-2.0-x\r\n"] {
            var upstream = FailedUpstream(.closed, upstream: "api.test")
            guard case .reset = upstream.received(ByteBuffer(string: text)) else {
                Issue.record("\(text) was not reset")
                continue
            }
        }
    }
}
