import ForwardProxy
import Foundation
import Proxy
import SlowlaneTesting
import TestSupport
import Testing

/// Sends a request in absolute form through the proxy of a network, and returns its status.
private func status(of url: String, through network: Network) async throws -> Int {
    let port = try #require(network.proxyURL.port)
    return try await blocking {
        try HTTPPeer(port: port).raw("GET \(url) HTTP/1.1\r\nHost: \(url.split(separator: "/")[1])\r\n\r\n").status
    }
}

/// Networks whose clients name their servers.
@Suite(.tags(.services), .forwardNetwork(.wifi, to: ["cdn.test=refuse"], seed: 7)) struct ForwardNetworkTests {
    @Test func aTestHasTheForwardNetworkOfItsSuite() async throws {
        let network = try Network.current
        #expect(network.upstream == nil && network.seed == 7)
        #expect(try network.proxyURL == URL(string: "http://127.0.0.1:\(network.port)"))
        let address = try await Upstream.address
        #expect(try await status(of: "http://\(address)/", through: network) < 500)
        let host = try #require(await network.hosts.first)
        #expect(host.destination?.description == address && host.connections == 1)
    }

    @Test(.network(.passThrough)) func rulesAndMapsChangeDuringATest() async throws {
        let network = try Network.current
        #expect(try await status(of: "http://cdn.test/", through: network) == 502)
        let address = try await Upstream.address
        try await network.map("api.test:80=\(address)")
        #expect(try await status(of: "http://api.test/", through: network) < 500)
        try await network.to("api.test=refuse")
        #expect(try await status(of: "http://api.test/", through: network) == 502)
        try await network.to("api.test=wifi")
        #expect(try await status(of: "http://api.test/", through: network) < 500)
        await #expect(throws: (any Error).self) { try await network.to("api.test=wify") }
    }

    @Test(.network(upstream: { try await Upstream.address })) func theInnermostTraitWithServersWins() async throws {
        let network = try Network.current
        #expect(try await network.upstream?.description == Upstream.address)
        await #expect(throws: NetworkError.self) { try await network.to("api.test=refuse") }
        #expect(await network.hosts.isEmpty)
    }

    @Test func aForwardNetworkMayEnterATestWithAnUpstream() async throws {
        try await withNetwork(upstream: Upstream.address) { outer in
            #expect(throws: NetworkError.self) { try outer.proxyURL }
            try await withForwardNetwork(to: ["*=refuse"]) { network in
                let code = try await status(of: "http://api.test/", through: network)
                #expect(code == 502)
            }
        }
    }

    @Test(.fault("GET /notes before-request respond 418")) func faultsApplyInAForwardNetwork() async throws {
        let network = try Network.current
        #expect(try await status(of: "http://\(try await Upstream.address)/notes", through: network) == 418)
    }

    @Test(arguments: [["cdn.test"], ["cdn.test=wify"], ["a=wifi", "a=3g"]])
    func aRuleThatCannotBeUsedIsAnError(_ rules: [String]) async throws {
        await #expect(throws: (any Error).self) { try await withForwardNetwork(to: rules) { _ in } }
    }
}

/// Networks that intercept TLS.
@Suite(.tags(.services)) struct InterceptionTraitTests {
    private static let certificates = Result { try TestCertificates() }
    private static let server = Result { try SecureHTTPServer(certificates.get()) }
    private static let path = (try? certificates.get())?.certificate("ca")

    /// Runs curl through the network of the test, as a client that trusts the authority of the network only.
    private func curl(_ options: String..., path: String) async throws -> (status: Int32, output: String) {
        let network = try Network.current
        let folder = try TemporaryFolder()
        let authority = try #require(network.authorityCertificate)
        try authority.write(toFile: folder.path("ca.pem"), atomically: true, encoding: .utf8)
        let way = network.upstream == nil ? ["-x", network.url.absoluteString] : []
        let port = network.upstream == nil ? try Self.server.get().port : network.port
        let arguments = ["-sS", "--noproxy", "x", "-m", "30", "--cacert", folder.path("ca.pem")] + way + options
        let (status, output, _) = try await blocking {
            try runProgram("curl", arguments + ["https://localhost:\(port)\(path)"])
        }
        return (status, output)
    }

    /// curl's exit status of a connection that is reset, and of a stream of HTTP/2.
    @Test(
        .forwardNetwork(intercept: ["localhost"], upstreamCA: path),
        .fault("POST /orders nth 2 before-response reset"),
        arguments: [("--http1.1", Int32(56)), ("--http2", 92)])
    func theResponseToTheSecondPostIsLostAfterTheServerHasExecutedIt(_ version: String, status: Int32) async throws {
        let before = try #require(Int(try await curl(version, path: "/posts").output))
        #expect(try await curl(version, "-d", "milk", path: "/orders").output == "milk")
        #expect(try await curl(version, "-d", "bread", path: "/orders").status == status)
        let after = try #require(Int(try await curl(version, path: "/posts").output))
        #expect(after >= before + 2)
        #expect(await (try Network.current).status.interception?.connections == 4)
    }

    @Test(
        .network(
            upstream: { "127.0.0.1:\(try server.get().port)" }, intercept: ["localhost"], upstreamCA: path),
        .fault("GET /a before-request respond 418"))
    func aNetworkWithAnUpstreamMayIntercept() async throws {
        #expect(try await curl("-o", "/dev/null", "-w", "%{http_code}", path: "/a").output == "418")
    }

    @Test func settingsThatCannotBeUsedAreErrors() async throws {
        for (hosts, file) in [([], "x.pem"), (["a b"], nil), (["a.test"], "/nowhere.pem"), (["a.test"], #filePath)] {
            await #expect(throws: (any Error).self, "\(hosts)") {
                try await withForwardNetwork(intercept: hosts, upstreamCA: file) { _ in }
            }
        }
        try await withForwardNetwork { network in #expect(network.authorityCertificate == nil) }
    }
}
