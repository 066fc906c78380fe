import ForwardProxy
import Foundation
import HTTPSockets
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// A running proxy that intercepts connections.
struct InterceptionContext: Sendable {
    /// The authorities that a client trusts.
    enum Trust: String {
        case proxy, upstream, either
    }

    let proxy: Proxy
    let folder: TemporaryFolder
    /// The certificate of the proxy's authority in PEM form.
    let authority: String

    var port: Int { proxy.address.port }

    func path(_ trust: Trust) -> String { folder.path("\(trust).pem") }

    /// Runs curl. Returns the exit status and the output.
    func curl(_ options: [String], _ url: String, trusting trust: Trust = .proxy) async throws -> (
        status: Int32, output: String
    ) {
        let file = path(trust)
        let (status, output, _) = try await blocking {
            try runProgram("curl", ["-sS", "--noproxy", "x", "-m", "30", "--cacert", file] + options + [url])
        }
        return (status, output)
    }

    /// Runs an action of the client in Python. Returns what it prints.
    func client(_ action: String..., trusting trust: Trust = .proxy) async throws -> String {
        let (file, port) = (path(trust), port)
        return try await blocking { try TLSClient.run(port: port, authority: file, action) }
    }
}

/// Runs `body` with a proxy that intercepts `localhost`.
///
/// - Parameter endsInOrder: Whether all connections have ended when `body` returns, or end in order.
func withInterception(
    to port: Int, isForward: Bool = false, hosts: String = "localhost", authorities: String = "ca",
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
    _ configure: (inout ProxyConfiguration) -> Void = { _ in }, endsInOrder: Bool = true,
    _ body: (InterceptionContext) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared()
    let hosts = try InterceptedHosts(parsing: [hosts])
    let own = try CertificateAuthority(for: hosts, now: Int64(Date().timeIntervalSince1970))
    var configuration = ProxyConfiguration(
        listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
        connectTimeout: .seconds(5))
    if isForward { configuration.forward = ForwardSettings() }
    configuration.interception = Interception(
        hosts: hosts, authority: own, upstream: UpstreamCertificates(authorities: try certificates.pem(authorities)))
    configure(&configuration)
    let folder = try TemporaryFolder()
    let upstream = String(decoding: try certificates.pem("ca"), as: UTF8.self)
    for (trust, text) in [
        (InterceptionContext.Trust.proxy, own.certificatePEM), (.upstream, upstream),
        (.either, own.certificatePEM + upstream),
    ] {
        try text.write(toFile: folder.path("\(trust).pem"), atomically: true, encoding: .utf8)
    }
    let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
    do {
        try await body(InterceptionContext(proxy: proxy, folder: folder, authority: own.certificatePEM))
    } catch {
        await proxy.stop(grace: .zero)
        throw error
    }
    let isInOrder = await proxy.stop(grace: .seconds(5))
    #expect(isInOrder || !endsInOrder, "a connection did not end")
}

extension TestCertificates {
    private static let made = Result { try TestCertificates() }

    /// The certificates that the tests of interception share.
    static func shared() throws -> TestCertificates { try made.get() }
}
