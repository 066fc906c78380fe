import Determinism
import ForwardProxy
import Foundation
import Impairment
import LinkModel
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Clients of TLS whose connections the proxy ends, in front of servers with certificates of `openssl`.
@Suite(.tags(.proxies), .timeLimit(.minutes(5))) struct InterceptionTests {
    private static let certificates = try? TestCertificates()
    private static let server = certificates.flatMap { try? SecureHTTPServer($0) }

    private static func made() throws -> TestCertificates { try #require(certificates, "openssl is missing") }

    private static func upstream() throws -> SecureHTTPServer { try #require(server, "node is missing") }

    /// A running proxy for a test.
    private struct Context: Sendable {
        let proxy: Proxy
        let folder: TemporaryFolder
        /// The certificate of the proxy's authority.
        let authority: String

        var port: Int { proxy.address.port }

        /// Runs curl. Returns the exit status and the output.
        func curl(_ arguments: String..., trusting authority: String? = nil) async throws -> (status: Int32, output: String) {
            let file = authority ?? folder.path("ca.pem")
            let (status, output, _) = try await blocking {
                try runProgram("curl", ["-sS", "--noproxy", "x", "-m", "30", "--cacert", file] + arguments)
            }
            return (status, output)
        }
    }

    /// Runs `body` with a proxy that intercepts `localhost`.
    private func withProxy(
        to port: Int, isForward: Bool = false, hosts: String = "localhost", trusting authority: String? = "ca",
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        _ configure: (inout ProxyConfiguration) -> Void = { _ in }, endsInOrder: Bool = true,
        _ body: @escaping @Sendable (Context) async throws -> Void
    ) async throws {
        let hosts = try InterceptedHosts(parsing: [hosts])
        let authority = try authority.map { try Self.made().pem($0) }
        let own = try CertificateAuthority(for: hosts, now: Int64(Date().timeIntervalSince1970))
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
            connectTimeout: .seconds(5))
        if isForward { configuration.forward = ForwardSettings() }
        configuration.interception = Interception(
            hosts: hosts, authority: own, upstream: UpstreamCertificates(authorities: authority))
        configure(&configuration)
        let folder = try TemporaryFolder()
        try own.certificatePEM.write(toFile: folder.path("ca.pem"), atomically: true, encoding: .utf8)
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        do {
            try await body(Context(proxy: proxy, folder: folder, authority: own.certificatePEM))
        } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        let isInOrder = await proxy.stop(grace: .seconds(5))
        #expect(isInOrder || !endsInOrder, "a connection did not end")
    }

    // MARK: Exchanges

    @Test(arguments: ["--http1.1", "--http2"], [false, true])
    func bytesPassInBothDirections(_ version: String, isForward: Bool) async throws {
        let server = try Self.upstream()
        try await withProxy(to: server.port, isForward: isForward) { context in
            let url = "https://localhost:\(isForward ? server.port : context.port)"
            let way = isForward ? ["-x", "http://127.0.0.1:\(context.port)"] : ["--connect-timeout", "30"]
            let text = try await context.curl(version, way[0], way[1], "\(url)/a")
            #expect(text.output == "GET /a \(version == "--http2" ? "2.0" : "1.1") sni=localhost")
            let body = String(repeating: "0123456789", count: 100_000)
            try body.write(toFile: context.folder.path("body"), atomically: true, encoding: .utf8)
            let echo = try await context.curl(
                version, way[0], way[1], "--data-binary", "@\(context.folder.path("body"))", "\(url)/echo")
            #expect(echo.output == body)
            let status = await context.proxy.status()
            #expect(status.interception?.connections == 2 && status.interception?.pinnedHosts == [])
            #expect(status.connectionsAccepted == 2 && status.dialsFailed == 0)
            // The bytes are those of TLS.
            #expect(status.link.bytesCarried.up > 1_000_000 && status.link.bytesCarried.up < 1_100_000)
        }
    }

    @Test func theThirdPostLosesItsResponse() async throws {
        let server = try Self.upstream()
        let rule = FaultRule(method: "POST", path: "*", nth: 3, point: .beforeResponse, action: .reset)
        try await withProxy(to: server.port, isForward: true, { $0.faultRules = [rule] }) { context in
            var results: [Int32] = []
            for _ in 1...4 {
                results.append(
                    try await context.curl(
                        "-x", "http://127.0.0.1:\(context.port)", "-d", "text", "https://localhost:\(server.port)/notes"
                    ).status)
            }
            // 56: the connection was reset.
            #expect(results == [0, 0, 56, 0])
            let status = await context.proxy.status()
            #expect(status.faultRules.first?.fired == 1 && status.faultRules.first?.matched == 4)
            #expect(status.opaqueTLS.connections == 0 && status.connectionsWithoutFaults == 0)
        }
    }

    /// The actions at two points each, and what a client sees: the status, all bytes of the response, and the result.
    private static let table: [(rule: String, action: FaultAction, point: FaultPoint, status: Int, result: String)] = [
        ("reset-1", .reset, .beforeResponse, 0, "error"), ("reset-2", .reset, .midResponse, 200, "error"),
        ("close-1", .close, .beforeRequest, 0, "error"), ("close-2", .close, .midResponse, 200, "error"),
        ("stall-1", .stall, .beforeRequest, 0, "timeout"), ("stall-2", .stall, .midResponse, 200, "timeout"),
        ("delay-1", .delay(.milliseconds(700)), .beforeRequest, 200, "ok"),
        ("delay-2", .delay(.milliseconds(700)), .midResponse, 200, "ok"),
        ("throttle-1", .throttle(bytesPerSecond: 200_000), .midRequest, 200, "ok"),
        ("throttle-2", .throttle(bytesPerSecond: 200_000), .midResponse, 200, "ok"),
        ("respond-1", .respond(FaultResponse(status: 503)), .beforeRequest, 503, "ok"),
        ("respond-2", .respond(FaultResponse(status: 503)), .beforeResponse, 503, "ok"),
    ]

    @Test(arguments: [false, true]) func everyActionActsInsideOfTLS(isHTTP2: Bool) async throws {
        let server = try Self.upstream()
        let rules = Self.table.map { FaultRule(path: "/\($0.rule)", point: $0.point, action: $0.action) }
        try await withProxy(to: server.port, { $0.faultRules = rules }, endsInOrder: false) { context in
            let results = try await blocking {
                try SecureHTTPServer.ask(
                    port: context.port, authority: context.authority, isHTTP2: isHTTP2,
                    Self.table.map { "/\($0.rule)" } + ["/none"])
            }
            for row in Self.table + [("none", .reset, .beforeRequest, 200, "ok")] {
                let result = try #require(results["/\(row.rule)"], "\(row.rule)")
                #expect(result.status == row.status && result.result == row.result, "\(row.rule): \(result)")
                if row.result == "ok", row.status == 200 { #expect(result.bytes == 200_000, "\(row.rule)") }
                if row.point == .midResponse, row.result != "ok" { #expect(result.bytes == 100_000, "\(row.rule)") }
                if row.rule.hasPrefix("delay") { #expect(result.milliseconds >= 700) }
                if row.rule.hasPrefix("throttle") { #expect(result.milliseconds >= 400) }
                // A FIN ends all streams; the others have their responses.
                if !row.rule.hasPrefix("close") { #expect(result.others == 300_000, "\(row.rule): \(result)") }
            }
            let fired = await context.proxy.faultRules().filter { $0.fired == 1 }.count
            #expect(fired == Self.table.count)
        }
    }
}
