import ConfigFiles
import Foundation
import Impairment
import LinkModel
import Proxy
import SlowlaneTesting
import Synchronization
import TestSupport
import Testing

/// Returns the status of a request on a connection of its own.
private func status(of path: String, through network: Network) async throws -> Int {
    let port = network.port
    return try await blocking { try HTTPPeer(port: port).ask("GET", path).status }
}

/// Checks the conditions of a network.
private func expect(
    _ profile: String, of network: Network? = nil, sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let conditions = try await (network ?? Network.current).conditions
    #expect(try conditions == ProfileCatalogue.profile(profile).conditions, sourceLocation: sourceLocation)
}

@Suite(.tags(.services), .network(.wifi, upstream: { try await Upstream.address }, seed: 7)) struct NetworkTraitTests {
    @Test func aTestHasTheNetworkOfItsSuite() async throws {
        let network = try Network.current
        try await expect("wifi", of: network)
        #expect(network.seed == 7)
        #expect(network.url == URL(string: "http://127.0.0.1:\(network.port)"))
        #expect(try await network.upstream?.description == Upstream.address)
        #expect(throws: NetworkError.self) { try network.proxyURL }
    }

    @Test(.network(.edge)) func theProfileOfTheTestWins() async throws {
        try await expect("edge")
        #expect(try Network.current.seed == 7)
    }

    @Test(.network(.edge), .network(.dsl, seed: 8)) func theLastTraitOfATestWins() async throws {
        try await expect("dsl")
        #expect(try Network.current.seed == 8)
    }

    @Test(.network(.passThrough), arguments: 0..<4) func eachCaseHasAProxyOfItsOwn(_: Int) async throws {
        let network = try Network.current
        #expect(try await status(of: "/", through: network) > 0)
        #expect(await network.status.connectionsAccepted == 1)
    }

    @Test(.network(.offline)) func aRefusingNetworkRefuses() async throws {
        let port = try Network.current.port
        await #expect(throws: TestSocket.Failure.self) {
            try await blocking { _ = try TestSocket.connect(port: port) }
        }
    }

    @Test(.network(.wifi, at: [.milliseconds(1): .dsl, .zero + .milliseconds(2): .edge]))
    func changesTakeEffectAtTheirTimes() async throws {
        let network = try Network.current
        let last = try ProfileCatalogue.profile("edge").conditions
        let deadline = ContinuousClock.now + .seconds(60)
        while await network.conditions != last, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(await network.conditions == last)
    }

    @Test(.network(.wifi, at: [.seconds(3600): .loss100])) func changesDoNotTakeEffectEarly() async throws {
        try await expect("wifi")
    }

    @Suite(.network("chrome-slow-3g")) struct InnerSuite {
        @Test func theProfileOfTheInnerSuiteWins() async throws {
            try await expect("chrome-slow-3g")
        }

        @Test(.network(.timeline("0s: 3g, 20s: 100-loss"))) func aTestMayHaveATimeline() async throws {
            try await expect("3g")
        }

        @Test func aChildTaskHasTheNetworkOfItsTest() async throws {
            let port = try Network.current.port
            async let child = try Network.current.port
            #expect(try await child == port)
        }
    }

    @Test func aDetachedTaskHasNoNetwork() async throws {
        let task = Task.detached { _ = try Network.current }
        await #expect(throws: NetworkError.self) { try await task.value }
    }
}

/// What a test does to its network.
@Suite(.tags(.services), .network(upstream: { try await Upstream.address })) struct NetworkTests {
    @Test func aRequestPassesAfterAnOutageAndNotDuringIt() async throws {
        let network = try Network.current
        let port = network.port
        let socket = try await blocking { try TestSocket.connect(port: port) }
        try await network.outage {
            #expect(await network.status.link.hasOutage == PerDirection(up: true, down: true))
            let isReadable = try await blocking {
                try socket.send(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                return socket.isReadable(within: 50)
            }
            #expect(!isReadable)
        }
        #expect(await !network.status.link.hasAnyOutage)
        #expect(try await blocking { try socket.receive() }.starts(with: Array("HTTP/1.1 ".utf8)))
    }

    @Test(.network(.wifi)) func anOutageEndsWithAnError() async throws {
        struct Cancelled: Error {}
        let network = try Network.current
        await #expect(throws: Cancelled.self) {
            try await network.outage {
                try await expect("wifi", of: network)
                throw Cancelled()
            }
        }
        #expect(await !network.status.link.hasAnyOutage)
    }

    @Test func nestedOutagesEndWithTheOuterOne() async throws {
        let network = try Network.current
        await network.outage {
            await network.outage {}
            #expect(await network.status.link.hasAnyOutage)
        }
        #expect(await !network.status.link.hasAnyOutage)
    }

    @Test(.network(.wifi)) func offlineConnectionsFailAtOnceUntilTheBlockEnds() async throws {
        let network = try Network.current
        let port = network.port
        try await network.offline {
            _ = await #expect(throws: TestSocket.Failure.self) {
                try await blocking { _ = try TestSocket.connect(port: port) }
            }
        }
        try await expect("wifi", of: network)
        #expect(try await status(of: "/", through: network) > 0)
    }

    @Test(.network(.wifi)) func aBlockOfOtherConditionsRestoresTheEarlierOnes() async throws {
        let network = try Network.current
        try await network.link(.threeG) {
            try await expect("3g", of: network)
            try await network.link(.edge) { try await expect("edge", of: network) }
            try await expect("3g", of: network)
        }
        try await expect("wifi", of: network)
        try await network.link(.dsl)
        try await expect("dsl", of: network)
    }

    @Test(.network(.wifi, at: [.milliseconds(1): .dsl])) func aTimelineAdvancesDuringABlock() async throws {
        let network = try Network.current
        try await network.link(.edge) { try await Task.sleep(for: .milliseconds(5)) }
        try await expect("dsl", of: network)
    }

    @Test func disconnectAbortsOpenConnections() async throws {
        let network = try Network.current
        let port = network.port
        let socket = try await blocking { try TestSocket.connect(port: port) }
        while await network.status.connectionsOpen == 0 { try await Task.sleep(for: .milliseconds(1)) }
        await network.disconnect()
        #expect(try await blocking { socket.receiveToFailure().code } == ECONNRESET)
        #expect(try await status(of: "/", through: network) > 0)
    }

    // MARK: Errors

    @Test func anUnknownProfileIsAnError() async throws {
        let network = try Network.current
        await #expect {
            try await network.link("egde")
        } throws: { error in
            "\(error)".contains("no profile is called 'egde'; did you mean 'edge'")
        }
    }

    @Test func twoChangesAtOneTimeAreAnError() async throws {
        await #expect(throws: NetworkError.self) {
            try await withNetwork(.wifi, at: [.seconds(1): .edge, .seconds(1): .dsl]) { _ in }
        }
    }

    @Test func aTimelineWithinAChangeIsAnError() async throws {
        await #expect(throws: NetworkError.self) {
            try await withNetwork(.wifi, at: [.seconds(1): "subway"]) { _ in }
        }
    }

    @Test func anUpstreamWithoutAPortIsAnError() async throws {
        await #expect {
            try await withNetwork(upstream: "http://localhost") { _ in }
        } throws: { error in
            "\(error)" == "the upstream 'http://localhost' is not HOST:PORT"
        }
    }
}

/// `withNetwork`, which does not depend on traits.
@Suite(.tags(.services)) struct WithNetworkTests {
    @Test func theNetworkEndsWithTheClosure() async throws {
        let port = try await withNetwork(.edge, upstream: Upstream.address, seed: 9) { network in
            try await expect("edge", of: network)
            #expect(network.seed == 9)
            let current = try Network.current
            #expect(current === network)
            return network.port
        }
        await #expect(throws: TestSocket.Failure.self) {
            try await blocking { _ = try TestSocket.connect(port: port) }
        }
    }

    @Test func aNetworkWithoutAnUpstreamIsAnError() async throws {
        await #expect {
            try await withNetwork(.edge) { _ in }
        } throws: { error in
            "\(error)".contains(".network(upstream:")
        }
    }

    @Test(.network(.dsl, upstream: { try await Upstream.address })) func itInheritsTheUpstreamOfTheTest() async throws {
        let outer = try Network.current
        try await withNetwork(.wifi) { inner in
            #expect(inner.port != outer.port)
            try await expect("wifi", of: inner)
            let code = try await status(of: "/", through: inner)
            #expect(code > 0)
        }
        #expect(await outer.status.connectionsAccepted == 0)
    }

    @Test func everyNamedProfileExists() async throws {
        let profiles: [NetworkProfile] = [
            .passThrough, .loss100, .veryBadNetwork, .edge, .edgeGood, .edgeLossy, .twoGRural, .twoGUrban, .threeG,
            .threeGGood, .threeGLossy, .lte, .wifi, .wifiGood, .wifi80211ac, .cable, .dsl, .highLatencyDNS, .dns,
            .offline, .portal, .uplinkLoss, .downlinkLoss,
        ]
        try await withNetwork(upstream: Upstream.address) { network in
            for profile in profiles { try await network.link(profile) }
            try await expect("downlink-loss", of: network)
        }
    }
}

/// Faults of HTTP exchanges that a test declares.
@Suite(.tags(.services), .network(upstream: { try await Upstream.address })) struct FaultTests {
    @Test(.fault(.respond(FaultResponse(status: 503)), method: "GET", path: "/no*"))
    func aFaultAppliesToMatchingRequests() async throws {
        let network = try Network.current
        #expect(try await status(of: "/", through: network) != 503)
        #expect(try await status(of: "/notes", through: network) == 503)
        #expect(try await status(of: "/notes", through: network) != 503)
    }

    @Test(.fault(.reset, at: .beforeRequest, path: "/"), .fault(.respond(FaultResponse(status: 418)), nth: 2))
    func theFaultsOfAllTraitsApply() async throws {
        let network = try Network.current
        await #expect(throws: (any Error).self) { try await status(of: "/", through: network) }
        #expect(try await status(of: "/", through: network) == 418)
    }

    @Test(.fault("GET /notes before-request respond 503")) func aFaultMayBeGivenOnOneLine() async throws {
        #expect(try await status(of: "/notes", through: Network.current) == 503)
    }

    @Test func aFaultMayBeAddedDuringATest() async throws {
        let network = try Network.current
        try await network.fault("any before-request respond 503")
        #expect(try await status(of: "/notes", through: network) == 503)
        await #expect(throws: (any Error).self) { try await network.fault("any queued replay 503") }
    }

    @Test func aFaultThatHitsNothingIsAnIssueOfTheTrait() async throws {
        let test = try #require(Test.current)
        let trait = NetworkTrait.fault(.reset, method: "POST", path: "/notes")
        try await withKnownIssue {
            try await trait.provideScope(for: test, testCase: .current) {
                let network = try Network.current
                #expect(try await status(of: "/notes", through: network) > 0)
            }
        } matching: { issue in
            issue.comments.contains {
                "\($0)".contains("the fault 'POST /notes before-response reset' fired 0 of 1 time, 0 requests matched")
            }
        }
    }

    @Test func aFaultThatHitsNothingIsAnErrorOfWithNetwork() async throws {
        let rule = FaultRule(times: 2...2, action: .respond(FaultResponse(status: 503)))
        await #expect {
            try await withNetwork(faults: [rule]) { network in
                let code = try await status(of: "/", through: network)
                #expect(code == 503)
            }
        } throws: { error in
            "\(error)".contains("fired 1 of 2 times")
        }
    }

    @Test func anErrorOfTheTestHidesUnusedFaults() async throws {
        struct Failure: Error {}
        await #expect(throws: Failure.self) {
            try await withNetwork(faults: [FaultRule(action: .reset)]) { _ in throw Failure() }
        }
    }

    @Test func aFaultThatCannotApplyIsAnError() async throws {
        await #expect(throws: NetworkError.self) {
            try await withNetwork(faults: [FaultRule(nth: 0, action: .reset)]) { _ in }
        }
    }
}

/// Only one test uses this upstream, which is asked once for each proxy.
private enum CountedUpstream {
    static let count = Atomic<Int>(0)

    static var address: String {
        get async throws {
            count.add(1, ordering: .relaxed)
            return try await Upstream.address
        }
    }
}

/// The number of proxies of a test.
@Suite(.tags(.services), .network(upstream: { try await CountedUpstream.address })) struct ProxyCountTests {
    @Test(.network(.edge), .network(seed: 3)) func allTraitsOfATestHaveOneProxy() async throws {
        try await expect("edge")
        #expect(CountedUpstream.count.load(ordering: .relaxed) == 1)
    }
}
