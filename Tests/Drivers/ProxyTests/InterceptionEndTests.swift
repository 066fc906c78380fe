import Determinism
import ForwardProxy
import Foundation
import Impairment
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Proxy

/// The ends and the failures of intercepted connections, and what passes as it is.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct InterceptionEndTests {
    // MARK: What passes as it is

    @Test func connectionsToOtherHostsAreNotTouched() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        for isForward in [false, true] {
            try await withInterception(to: server.port, isForward: isForward, hosts: "other.test") { context in
                // The client trusts the authority of the server, and not that of the proxy.
                let reply = try await context.curl(
                    isForward ? ["-x", "http://127.0.0.1:\(context.port)"] : [],
                    "https://localhost:\(isForward ? server.port : context.port)/a", trusting: .upstream)
                #expect(reply.output == "GET /a 2.0 sni=localhost")
                let status = await context.proxy.status()
                #expect(status.interception?.connections == 0)
            }
        }
    }

    @Test func aServerMaySpeakFirst() async throws {
        let (listener, port) = try TestSocket.listen()
        try await withInterception(to: port, endsInOrder: false) { context in
            try await blocking {
                let client = try TestSocket.connect(port: context.port)
                let server = try listener.accept()
                try server.send(Array("220 ready\r\n".utf8))
                #expect(try client.receive(exactly: 11) == Array("220 ready\r\n".utf8))
                // What looks like TLS now passes, too.
                try client.send([22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
                #expect(try server.receive(exactly: 10) == [22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
            }
        }
    }

    private static func vector16(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
    }

    /// A ClientHello with a name, and a number of bytes of padding.
    private static func hello(_ name: [UInt8], padding: Int = 0) -> [UInt8] {
        let sni: [UInt8] = [0, 0] + vector16(vector16([0] + vector16(name)))
        let rest: [UInt8] = padding > 0 ? [0, 21] + vector16([UInt8](repeating: 0, count: padding)) : []
        let extensions = sni + rest
        let start: [UInt8] = [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + vector16([0x13, 1]) + [1, 0]
        let body = start + vector16(extensions)
        let message = [1, 0] + vector16(body)
        return stride(from: 0, to: message.count, by: 16_000).flatMap { start in
            [22, 3, 1] + vector16(Array(message[start..<min(start + 16_000, message.count)]))
        }
    }

    /// The first bytes of clients that the proxy does not understand, or that it may not intercept.
    private static let foreign: [(name: String, bytes: [UInt8])] = [
        ("plain HTTP", Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)),
        ("a cut record", [22, 3, 1, 0x40]), ("a cut message", Array(hello(Array("localhost".utf8)).prefix(60))),
        ("an old version of records", [22, 2, 0, 0, 5, 1, 0, 0, 1, 0]),
        ("a message beyond the limit", hello(Array("localhost".utf8), padding: 40_000)),
        ("hostile characters", hello(Array("local\r\nhost".utf8))), ("a wildcard", hello(Array("*.localhost".utf8))),
        ("a quote", hello(Array(#"localhost";"#.utf8))), ("a long name", hello([UInt8](repeating: 97, count: 300))),
        ("long labels", hello([UInt8](repeating: 97, count: 200))), ("an address", hello(Array("127.0.0.1".utf8))),
        ("an empty name", hello([])), ("zero bytes", hello(Array("localhost\0.evil".utf8))),
    ]

    @Test func foreignBytesReachTheServerAsTheyAre() async throws {
        let (listener, port) = try TestSocket.listen()
        try await withInterception(to: port, endsInOrder: false) { context in
            for (name, bytes) in Self.foreign {
                try await blocking {
                    let client = try TestSocket.connect(port: context.port)
                    let server = try listener.accept()
                    try client.send(bytes)
                    client.finish()
                    #expect(try server.receiveToEnd() == bytes, "\(name)")
                    try server.send([1, 2, 3])
                    server.finish()
                    #expect(try client.receiveToEnd() == [1, 2, 3], "\(name)")
                }
            }
            let status = await context.proxy.status()
            #expect(status.interception?.connections == 0 && status.connectionsAccepted == Self.foreign.count)
        }
    }

    @Test func onlyProtocolsThatTheProxyUnderstandsAreIntercepted() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let text1 = try await context.client("alpn", "h2", "foo")
            #expect(text1 == "h2\n")
            let text2 = try await context.client("alpn", "http/1.1")
            #expect(text2 == "http/1.1\n")
            // The server has no such protocol: its alert arrives.
            let text3 = try await context.client("alpn", "foo", trusting: .upstream)
            #expect(text3 == "SSLError\n")
            let status = await context.proxy.status()
            #expect(status.interception?.connections == 2)
        }
    }

    // MARK: Clients that do not end their handshake

    /// A client that sends its first message, and reads what follows.
    private static let silent = """
        import socket, ssl, sys
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        try: tls.do_handshake()
        except ssl.SSLWantReadError: pass
        sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
        sock.sendall(outgoing.read())
        try:
            while sock.recv(65536): pass
            print("closed")
        except OSError as error: print(type(error).__name__)
        """

    /// Half of a ClientHello, and a whole one that nothing follows.
    @Test func aClientThatDoesNotEndItsHandshakeIsClosedOrPassesAfterTheLimit() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        let log = Messages()
        let start = ContinuousClock.now
        try await withInterception(
            to: server.port, logger: log.logger, { $0.interception?.handshakeTimeMax = .milliseconds(1200) }
        ) { context in
            let observation = await context.proxy.observe([.connections, .exchanges])
            let port = context.port
            let (_, output, errors) = try await blocking { try runProgram("python3", ["-c", Self.silent, "\(port)"]) }
            #expect(output == "ConnectionResetError\n", "\(output) \(errors)")
            #expect(ContinuousClock.now - start >= .milliseconds(1200))
            var found: [String] = []
            for await event in observation.events {
                if case .exchange(.notHTTP(let reason), _, _) = event { found.append(reason) }
                if case .connection(let event) = event, let end = event.end {
                    #expect(end.reason == .handshakeTimeout)
                    break
                }
            }
            #expect(
                found.contains { $0.contains("has not completed its handshake for localhost within 1 s") }, "\(found)")
            #expect(log.text.contains { $0.contains("has not completed its handshake for localhost") }, "\(log.text)")
        }
        let (listener, port) = try TestSocket.listen()
        try await withInterception(
            to: port, { $0.interception?.handshakeTimeMax = .milliseconds(300) }, endsInOrder: false
        ) { context in
            try await blocking {
                let client = try TestSocket.connect(port: context.port)
                let server = try listener.accept()
                let half = Array(Self.hello(Array("localhost".utf8)).prefix(60))
                try client.send(half)
                #expect(!server.isReadable(within: 200))
                #expect(try server.receive(exactly: half.count) == half)
            }
        }
    }

    /// The time limit counts from the end of the handshake with the server, and not while the link has the client's bytes.
    @Test func aSlowLinkDoesNotExceedTheLimit() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        var slow = Conditions.clear
        slow.up.delay = .milliseconds(1100)
        slow.down.delay = .milliseconds(1100)
        let log = Messages()
        try await withInterception(
            to: server.port, logger: log.logger,
            {
                $0.conditions = slow
                $0.interception?.handshakeTimeMax = .seconds(2)
            }
        ) { context in
            let reply = try await context.curl(["-v", "--stderr", "-"], "https://localhost:\(context.port)/a")
            #expect(reply.output.contains("GET /a 2.0 sni=localhost"), "\(reply) \(log.text)")
        }
    }

    // MARK: Clients that do not trust the authority

    @Test func theHostOfAClientThatRefusesTheCertificatePasses() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        let log = Messages()
        try await withInterception(to: server.port, logger: log.logger) { context in
            let observation = await context.proxy.observe([.exchanges, .connections])
            let url = "https://localhost:\(context.port)/a"
            // 60: the certificate is not trusted.
            for number in 1...PinnedHosts.refusalsMax {
                let refused = try await context.curl([], url, trusting: .upstream)
                #expect(refused.status == 60, "\(number): \(refused)")
            }
            for _ in 1...2 {
                let passed = try await context.curl([], url, trusting: .upstream)
                #expect(passed.status == 0 && passed.output == "GET /a 2.0 sni=localhost", "\(passed)")
            }
            let status = await context.proxy.status()
            #expect(status.interception?.pinnedHosts == ["localhost"] && status.interception?.connections == 0)
            let messages = log.text.filter { $0.contains("pass as they are") }
            #expect(messages.count == 1 && messages.first?.contains("unknown_ca") == true, "\(messages)")
            // The first refusal has a warning, too: a command may have one connection only.
            #expect(log.text.count { $0.contains("unknown_ca") } == 2, "\(log.text)")
            for await case .exchange(.notHTTP(let reason), let connection, _) in observation.events
            where reason.contains("pass as they are") {
                #expect(reason.contains("connections to localhost pass as they are") && connection == 2)
                break
            }
        }
    }

    /// A browser whose user accepts any certificate refuses it, and connects again.
    @Test func aHostWhoseClientsConnectAgainAfterRefusalsIsIntercepted() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let url = "https://localhost:\(context.port)/a"
            for _ in 1...3 {
                for _ in 1..<PinnedHosts.refusalsMax {
                    let refused = try await context.curl([], url, trusting: .upstream)
                    #expect(refused.status == 60)
                }
                let accepted = try await context.curl(["--insecure"], url, trusting: .upstream)
                #expect(accepted.status == 0)
            }
            let interception = await context.proxy.status().interception
            #expect(interception?.connections == 3 && interception?.pinnedHosts == [])
        }
    }

    @Test func theHostOfClientsThatCloseTheirHandshakesPasses() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            for number in 1...PinnedHosts.refusalsMax {
                let status = await context.proxy.status()
                #expect(status.interception?.pinnedHosts == [])
                let text4 = try await context.client("close_after_flight")
                #expect(text4 == "closed\n", "\(number)")
            }
            try await eventually("the host passes") {
                await context.proxy.status().interception?.pinnedHosts == ["localhost"]
            }
            let reply = try await context.curl([], "https://localhost:\(context.port)/a", trusting: .upstream)
            #expect(reply.status == 0)
        }
    }

    @Test func aHostWithACompleteHandshakeIsNotPinnedByClosings() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let reply5 = try await context.curl([], "https://localhost:\(context.port)/a")
            #expect(reply5.status == 0)
            for _ in 0...PinnedHosts.refusalsMax { _ = try await context.client("close_after_flight") }
            try await eventually("all connections have ended") { await context.proxy.status().connectionsOpen == 0 }
            let status = await context.proxy.status()
            #expect(status.interception?.pinnedHosts == [])
        }
    }

    // MARK: Upstreams that are not trusted

    @Test(arguments: [
        ("expired", "ca", "the certificate has expired", "tls_certificate_error"),
        ("other", "ca", "the certificate is not for 'localhost'", "tls_certificate_error"),
        ("right", "stranger", "no trusted authority has signed", "tls_certificate_error"),
    ]) func aCertificateThatIsNotAcceptedIsA502(
        _ certificate: String, authority: String, reason: String, status: String
    ) async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared(), certificate)
        try await withInterception(to: server.port, authorities: authority) { context in
            for version in ["--http1.1", "--http2"] {
                let reply = try await context.curl([version, "-i"], "https://localhost:\(context.port)/a")
                #expect(reply.output.hasPrefix("HTTP/1.1 502 ") && reply.output.contains(reason), "\(reply.output)")
                #expect(reply.output.contains("Proxy-Status: slowlane; error=\(status)"))
            }
            // A client without HTTP/1.1 cannot get the reason.
            let text6 = try await context.client("alpn", "h2")
            #expect(text6 == "ConnectionResetError\n")
            let dialsFailed = await context.proxy.status().dialsFailed
            #expect(dialsFailed == 3)
        }
    }

    @Test func anUpstreamThatDemandsACertificateIsA502() async throws {
        let server = try TLSServer(try TestCertificates.shared(), clientsNeed: "ca")
        try await withInterception(to: server.port) { context in
            let reply = try await context.curl(["--http1.1", "-i"], "https://localhost:\(context.port)/a")
            #expect(reply.output.hasPrefix("HTTP/1.1 502 "), "\(reply.output)")
            #expect(reply.output.contains("tls_alert_received"), "\(reply.output)")
        }
    }

    @Test func anUpstreamThatResetsTheHandshakeIsA502() async throws {
        let (listener, port) = try TestSocket.listen()
        try await withInterception(to: port) { context in
            let server = Task {
                try await blocking {
                    let socket = try listener.accept()
                    // The ClientHello is the proxy's.
                    #expect(try socket.receive(exactly: 1) == [22])
                    socket.reset()
                }
            }
            let reply = try await context.curl(["-i"], "https://localhost:\(context.port)/a")
            #expect(reply.output.hasPrefix("HTTP/1.1 502 "), "\(reply)")
            #expect(reply.output.contains("closed the connection during the TLS handshake"))
            try await server.value
        }
    }

    // MARK: Ends

    @Test func aHelloMayArriveInSingleBytes() async throws {
        let server = try TLSServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let text = try await context.client("single_bytes")
            #expect(text.hasPrefix("GET /a host=localhost sni=localhost"), "\(text)")
        }
    }

    @Test func halfClosedStreamsPass() async throws {
        let server = try TLSServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let text7 = try await context.client("half_close")
            #expect(text7 == "closed\n")
            // close_notify of the server, and a FIN without it.
            let text8 = try await context.client("get", "/shutdown")
            #expect(text8.hasSuffix("sni=localhost alpn=None closed\n"))
            let text9 = try await context.client("get", "/truncated")
            #expect(text9.hasSuffix("SSLEOFError\n"))
            let text10 = try await context.client("cut_short")
            #expect(text10 == "closed\n")
        }
    }

    @Test func bytesAfterAnUpgradePass() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port) { context in
            let text11 = try await context.client("upgrade")
            #expect(text11 == "HTTP/1.1 101 Switching Protocols True\n")
        }
    }

    @Test func clientsMayResumeSessions() async throws {
        let server = try TLSServer(try TestCertificates.shared(), version: "TLSv1_2")
        try await withInterception(to: server.port) { context in
            let text12 = try await context.client("resume")
            #expect(text12 == "True\n")
        }
    }

    @Test func aClientCannotRenegotiate() async throws {
        let server = try TLSServer(try TestCertificates.shared(), version: "TLSv1_2")
        try await withInterception(to: server.port, endsInOrder: false) { context in
            let output = try await blocking {
                try runProgram(
                    "openssl",
                    ["s_client", "-connect", "127.0.0.1:\(context.port)", "-servername", "localhost"],
                    input: "R\n", standardError: .withOutput
                ).output
            }
            #expect(output.contains("RENEGOTIATING") && output.contains("no renegotiation"), "\(output)")
        }
    }

    /// Connections that end before and after the server's messages leave nothing behind.
    @Test(arguments: ["hello", "message", "flight"]) func droppedHandshakesLeaveNothing(_ stage: String) async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port, { $0.connectionsMax = 2000 }) { context in
            _ = try await context.curl([], "https://localhost:\(context.port)/a")
            try await eventually("the connection has ended") { await context.proxy.status().connectionsOpen == 0 }
            let count = TestSettings.isSoak ? 1000 : 200
            let text13 = try await context.client("drop", "\(count)", stage)
            #expect(text13 == "dropped\n")
            try await eventually("all connections have ended") {
                let status = await context.proxy.status()
                return status.connectionsOpen == 0 && status.link.bytesHeld == 0
            }
            let status = await context.proxy.status()
            #expect(status.connectionsAccepted == count + 1 && status.interception?.pinnedHosts == [])
            let left = await context.proxy.query {
                $0.eventLoop.makeSucceededFuture($0.linkDriver.insideLink?.link.connections.count ?? -1)
            }
            #expect(left == 0)
            // The proxy goes on.
            let reply14 = try await context.curl([], "https://localhost:\(context.port)/a")
            #expect(reply14.status == 0)
        }
    }

    @Test func changedHandshakesDoNotStopTheProxy() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        try await withInterception(to: server.port, endsInOrder: false) { context in
            let text15 = try await context.client("fuzz", "1", "300")
            #expect(text15 == "done\n")
            try await eventually("all connections have ended") { await context.proxy.status().connectionsOpen == 0 }
            let reply16 = try await context.curl([], "https://localhost:\(context.port)/a", trusting: .either)
            #expect(reply16.status == 0)
        }
    }

    // MARK: The link

    /// The handshake takes as long as that of a connection that passes: its messages have the same sizes.
    @Test func theHandshakeOnTheLinkTakesTheTimeOfTheServersOwn() async throws {
        let server = try SecureHTTPServer(try TestCertificates.shared())
        let conditions = Conditions(
            up: DirectionConditions(rate: .kilobits(100), delay: .milliseconds(100)),
            down: DirectionConditions(rate: .kilobits(100), delay: .milliseconds(100)))
        // The shortest of some times, because a busy machine makes them longer, never shorter.
        var times: [Double] = []
        for hosts in ["localhost", "other.test"] {
            try await withInterception(to: server.port, hosts: hosts, { $0.conditions = conditions }) { context in
                var shortest = Double.infinity
                for _ in 0..<5 {
                    let reply = try await context.curl(
                        ["-o", "/dev/null", "-w", "%{time_appconnect}"], "https://localhost:\(context.port)/a",
                        trusting: .either)
                    shortest = min(shortest, Double(reply.output) ?? .infinity)
                }
                times.append(shortest)
            }
        }
        #expect(times.count == 2 && times[1] > 0.4 && abs(times[0] / times[1] - 1) < 0.05, "\(times)")
    }
}
