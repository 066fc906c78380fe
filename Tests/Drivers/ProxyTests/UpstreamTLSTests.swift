import Determinism
import ForwardProxy
import HTTPSockets
import Impairment
import LinkModel
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// A proxy whose upstream speaks TLS, in front of a server in Python.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct UpstreamTLSTests {
    private static let certificates = try? TestCertificates()

    private static func made() throws -> TestCertificates { try #require(certificates, "openssl is missing") }

    /// Runs `body` with a proxy in front of an HTTPS server that is named `host`.
    private func withProxy(
        to server: TLSServer, host: String = "localhost", authorities: String? = "ca", identity: String? = nil,
        isVerified: Bool = true, rewritesHost: Bool = true,
        _ configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (Proxy, Int) async throws -> Void
    ) async throws {
        let certificates = try Self.made()
        let tls = try UpstreamTLS(
            url: "https://\(host):\(server.port)",
            UpstreamCertificates(
                authorities: try authorities.map { try certificates.pem($0) },
                identity: try identity.map {
                    .init(certificates: try certificates.pem($0), key: try certificates.keyPEM($0))
                },
                isVerified: isVerified),
            rewritesHost: rewritesHost)
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: tls.endpoint, connectTimeout: .seconds(5))
        configuration.upstreamTLS = tls
        configure(&configuration)
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do {
            try await body(proxy, proxy.address.port)
        } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        #expect(await proxy.stop(grace: .seconds(5)), "a connection did not end")
    }

    private static func get(_ port: Int, _ path: String = "/") async throws -> HTTPReply {
        try await blocking { try HTTPPeer(port: port).ask("GET", path) }
    }

    @Test(arguments: ["TLSv1_2", "TLSv1_3"])
    func requestsReachAVerifiedUpstream(_ version: String) async throws {
        let server = try TLSServer(try Self.made(), version: version)
        try await withProxy(to: server) { proxy, port in
            let reply = try await blocking {
                let peer = HTTPPeer(port: port)
                let first = try peer.ask("GET", "/a")
                let body = String(repeating: "0123456789", count: 30_000)
                #expect(try peer.ask("POST", "/echo", body).body == body)
                return first
            }
            // The proxy offers http/1.1 only, although the server prefers h2.
            #expect(reply.body == "GET /a host=localhost:\(server.port) sni=localhost alpn=http/1.1")
            let status = await proxy.status()
            #expect(
                status.upstreamTLS == UpstreamTLSStatus(isVerified: true, rewritings: status.upstreamTLS!.rewritings))
            #expect(status.upstreamTLS?.rewritings.hosts == 2 && status.dialsFailed == 0)
        }
    }

    @Test func theCertificateMayNameAnAddress() async throws {
        let server = try TLSServer(try Self.made())
        try await withProxy(to: server, host: "127.0.0.1") { _, port in
            // An address is not sent as a name.
            let reply1 = try await Self.get(port)
            #expect(reply1.body.contains("sni=None"))
        }
    }

    @Test func namesInResponsesAreThoseOfTheProxy() async throws {
        let server = try TLSServer(try Self.made())
        try await withProxy(to: server) { proxy, port in
            let reply = try await Self.get(port, "/redirect")
            #expect(reply.header("Location") == "http://127.0.0.1:\(port)/next")
            #expect(reply.header("Set-Cookie") == "id=1; Path=/")
            let counts = await proxy.status().upstreamTLS?.rewritings
            #expect(counts?.hosts == 1 && counts?.locations == 1 && counts?.cookies == 1)
        }
    }

    @Test func withoutRewritingMessagesPassAsTheyAre() async throws {
        let server = try TLSServer(try Self.made())
        try await withProxy(to: server, rewritesHost: false) { _, port in
            let reply = try await Self.get(port, "/redirect")
            #expect(reply.header("Location") == "https://127.0.0.1:\(port)/next")
            #expect(reply.header("Set-Cookie")?.contains("Secure") == true)
            #expect(reply.body.contains("host=127.0.0.1:\(port)"))
        }
    }

    /// The certificates that the proxy does not accept, with the reason and the type of `Proxy-Status`.
    @Test(arguments: [
        ("right", "localhost", "stranger", "no trusted authority has signed", "tls_certificate_error"),
        ("stranger", "localhost", "ca", "no trusted authority has signed", "tls_certificate_error"),
        ("other", "localhost", "ca", "the certificate is not for 'localhost'", "tls_certificate_error"),
        ("other", "127.0.0.1", "ca", "the certificate is not for '127.0.0.1'", "tls_certificate_error"),
        ("expired", "localhost", "ca", "the certificate has expired (valid until ", "tls_certificate_error"),
    ]) func aCertificateThatIsNotAcceptedIsA502WithTheReason(
        _ certificate: String, host: String, authority: String, reason: String, status: String
    ) async throws {
        let server = try TLSServer(try Self.made(), certificate)
        try await withProxy(to: server, host: host, authorities: authority) { proxy, port in
            let reply = try await Self.get(port)
            #expect(reply.status == 502)
            #expect(reply.header("Proxy-Status") == "slowlane; error=\(status)")
            #expect(
                reply.body.contains("https://\(host):\(server.port): ") && reply.body.contains(reason), "\(reply.body)")
            let dialsFailed = await proxy.status().dialsFailed
            #expect(dialsFailed == 1)
        }
    }

    @Test func theSystemsAuthoritiesDoNotTrustATestCertificate() async throws {
        let server = try TLSServer(try Self.made())
        try await withProxy(to: server, authorities: nil) { _, port in
            let reply2 = try await Self.get(port)
            #expect(reply2.body.contains("no trusted authority has signed"))
        }
    }

    @Test func anUnverifiedUpstreamMayHaveAnyCertificate() async throws {
        let server = try TLSServer(try Self.made(), "expired")
        try await withProxy(to: server, authorities: nil, isVerified: false) { proxy, port in
            let reply3 = try await Self.get(port)
            #expect(reply3.status == 200)
            let status9 = await proxy.status()
            #expect(status9.upstreamTLS?.isVerified == false)
        }
    }

    @Test(arguments: ["TLSv1_2", "TLSv1_3"])
    func anUpstreamMayDemandACertificate(_ version: String) async throws {
        let server = try TLSServer(try Self.made(), clientsNeed: "ca", version: version)
        try await withProxy(to: server, identity: "client") { _, port in
            let reply4 = try await Self.get(port)
            #expect(reply4.status == 200)
        }
        // With TLS 1.3 the server refuses the connection after the handshake.
        try await withProxy(to: server) { _, port in
            let reply = try await Self.get(port)
            #expect(reply.status == 502)
            #expect(reply.header("Proxy-Status")?.contains("error=tls_alert_received; alert-id=") == true)
            #expect(reply.body.contains("--upstream-cert FILE"), "\(reply.body)")
        }
        try await withProxy(to: server, identity: "stranger") { _, port in
            let reply5 = try await Self.get(port)
            #expect(reply5.header("Proxy-Status")?.contains("unknown_ca") == true)
        }
    }

    @Test func anUpstreamWithoutTLSIsA502() async throws {
        let (listener, port) = try TestSocket.listen()
        let tls = try UpstreamTLS(url: "https://127.0.0.1:\(port)", .init(isVerified: false))
        var configuration = ProxyConfiguration(listen: Endpoint("127.0.0.1:0")!, upstream: tls.endpoint)
        configuration.upstreamTLS = tls
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        let peer = Task {
            try await blocking {
                for text in ["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", ""] {
                    let socket = try listener.accept()
                    _ = try socket.receive()
                    try socket.send(Array(text.utf8))
                }
            }
        }
        let (first, second) = (try await Self.get(proxy.address.port), try await Self.get(proxy.address.port))
        #expect(first.body.contains("does not speak TLS on this port"), "\(first.body)")
        #expect(second.body.contains("closed the connection during the TLS handshake"), "\(second.body)")
        #expect(first.header("Proxy-Status") == "slowlane; error=tls_protocol_error")
        try await peer.value
        await proxy.stop()
    }

    @Test func anUpstreamThatDoesNotRespondIsReset() async throws {
        let (listener, port) = try TestSocket.listen()
        let tls = try UpstreamTLS(url: "https://127.0.0.1:\(port)", .init(isVerified: false))
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: tls.endpoint, connectTimeout: .milliseconds(300))
        configuration.upstreamTLS = tls
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        let (bytes, code) = try await blocking {
            let client = try TestSocket.connect(port: proxy.address.port)
            try client.send(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
            return client.receiveToFailure()
        }
        #expect(bytes == 0 && code == ECONNRESET)
        let status10 = await proxy.status()
        #expect(status10.dialsFailed == 1)
        await proxy.stop()
        withExtendedLifetime(listener) {}
    }

    @Test func aStopEndsAHandshakeThatIsUnderWay() async throws {
        let (listener, port) = try TestSocket.listen()
        let tls = try UpstreamTLS(url: "https://127.0.0.1:\(port)", .init(isVerified: false))
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: tls.endpoint, connectTimeout: .seconds(60))
        configuration.upstreamTLS = tls
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        let client = try await blocking {
            let client = try TestSocket.connect(port: proxy.address.port)
            try client.send(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
            // The ClientHello has arrived.
            #expect(try listener.accept().receive(exactly: 1) == [22])
            return client
        }
        let start = ContinuousClock.now
        await proxy.stop(grace: .zero)
        #expect(ContinuousClock.now - start < .seconds(30))
        withExtendedLifetime(client) {}
    }

    @Test func aClientOfAnotherProtocolIsReset() async throws {
        let server = try TLSServer(try Self.made(), "expired")
        try await withProxy(to: server) { _, port in
            let (bytes, code) = try await blocking {
                let client = try TestSocket.connect(port: port)
                try client.send([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0])
                return client.receiveToFailure()
            }
            #expect(bytes == 0 && code == ECONNRESET)
        }
    }

    @Test func aCutStreamIsAnAbortedConnection() async throws {
        let server = try TLSServer(try Self.made())
        try await withProxy(to: server) { _, port in
            for path in ["/truncated", "/truncated-stream"] {
                let (bytes, code) = try await blocking {
                    let client = try TestSocket.connect(port: port)
                    try client.send(Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                    return client.receiveToFailure()
                }
                #expect(bytes > 0 && code == ECONNRESET, "\(path)")
            }
            for path in ["/shutdown", "/close"] {
                let text = try await blocking {
                    let client = try TestSocket.connect(port: port)
                    try client.send(Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                    return String(decoding: try client.receiveToEnd(), as: UTF8.self)
                }
                #expect(text.contains("GET \(path) host="), "\(text)")
            }
        }
    }

    @Test func faultsAndConditionsApplyToTheExchanges() async throws {
        let server = try TLSServer(try Self.made())
        let rule = FaultRule(path: "/lost", point: .beforeRequest, action: .respond(FaultResponse(status: 503)))
        try await withProxy(to: server, { $0.faultRules = [rule] }) { proxy, port in
            let reply6 = try await Self.get(port, "/lost")
            #expect(reply6.status == 503)
            await proxy.setConditions(
                Conditions(up: DirectionConditions(delay: .milliseconds(150)), down: DirectionConditions()))
            let start = ContinuousClock.now
            let reply7 = try await Self.get(port, "/b")
            #expect(reply7.status == 200)
            // The SYN and the request travel up.
            #expect(ContinuousClock.now - start >= .milliseconds(150))
            let status11 = await proxy.faultRules()
            #expect(status11.first?.fired == 1)
        }
    }

    @Test func aFailedHandshakeTravelsOverTheLink() async throws {
        let server = try TLSServer(try Self.made(), "expired")
        let conditions = Conditions(
            up: DirectionConditions(delay: .milliseconds(100)), down: DirectionConditions(delay: .milliseconds(100)))
        try await withProxy(to: server, { $0.conditions = conditions }) { _, port in
            let start = ContinuousClock.now
            let reply8 = try await Self.get(port)
            #expect(reply8.status == 502)
            #expect(ContinuousClock.now - start >= .milliseconds(400))
        }
    }

    @Test func invalidSettingsHaveAProblem() throws {
        let certificates = try Self.made()
        func error(_ make: () throws -> UpstreamTLS) -> UpstreamTLSError? {
            #expect(throws: UpstreamTLSError.self) { _ = try make() }
        }
        let url = "https://localhost"
        let rubbish = Array("rubbish".utf8)
        let (client, key) = (try certificates.pem("client"), try certificates.keyPEM("client"))
        let other = try certificates.keyPEM("right")
        let errors = [
            error { try UpstreamTLS(url: "https://a/b") },
            error { try UpstreamTLS(url: url, .init(authorities: rubbish)) },
            error { try UpstreamTLS(url: url, .init(authorities: [])) },
            error { try UpstreamTLS(url: url, .init(identity: .init(certificates: rubbish, key: key))) },
            error { try UpstreamTLS(url: url, .init(identity: .init(certificates: client, key: rubbish))) },
            error { try UpstreamTLS(url: url, .init(identity: .init(certificates: client, key: other))) },
        ]
        #expect(errors.map { $0?.part } == [.url, .authorities, .authorities, .certificate, .key, .key])
        let identity = UpstreamCertificates.Identity(certificates: client, key: key)
        #expect("\(identity)" == "certificate and key")
    }
}
