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
