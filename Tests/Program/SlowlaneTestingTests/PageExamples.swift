import Foundation
import Impairment
import SlowlaneScenarioTesting
import SlowlaneTesting
import Testing

/// The client of a reader.
private struct App: Sendable {
    enum State { case queued }

    init(server: URL) {}
    init(proxy: URL) {}

    func add(_ text: String) async -> State { .queued }
    func waitUntilSent(within duration: Duration) async throws {}
}

/// The fragments of docs/how-to/swift-testing.md, which are compiled and not run: they have no server.
@Suite(.disabled("they have no server")) struct PageExamples {
    @Suite(.network(upstream: "127.0.0.1:8000")) struct SyncTests {
        @Test(.network(.edge)) func theListLoads() async throws {
            let app = App(server: try Network.current.url)  // http://127.0.0.1:49321
            try await Network.current.outage { #expect(await app.add("Milk") == .queued) }
            try await app.waitUntilSent(within: .seconds(30))
        }
    }

    @Suite struct Forward {
        @Test(.forwardNetwork(.edge, to: ["*.cdn.test=wifi"], map: ["api.test=127.0.0.1:8000"])) func allHostsAreSlow()
            async throws
        {
            let app = App(proxy: try Network.current.proxyURL)  // http://127.0.0.1:49321
            _ = app
        }
    }

    @Suite struct Faults {
        @Test(.fault("POST /notes* before-response reset")) func anEditIsNotLostWithItsResponse() async throws {}

        @Test(.fault(.reset, at: .beforeResponse, method: "POST", path: "/notes*")) func theSameWithValues()
            async throws
        {}
    }

    @Suite struct Scenarios {
        @Test(.scenario("scenarios/tunnel.yaml")) func anEditInATunnelArrivesOnce() {}

        @Test(arguments: UInt64(0)..<20) func theTunnelWithOtherSeeds(seed: UInt64) throws {
            try runScenario("scenarios/tunnel.yaml", seed: seed)
        }
    }

    struct XCTests {
        func testTheListLoads() async throws {
            try await withNetwork(.edge, upstream: "127.0.0.1:8000") { network in
                let app = App(server: network.url)
                _ = app
            }
        }
    }
}
