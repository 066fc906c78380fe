import Foundation
import Logging
import NIOPosix
import Proxy
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// Proxies when a change fails or a name lookup hangs.
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct ProxyRegistryTests {
    // MARK: Populate

    private func expectEcho(_ client: TestSocket) async throws {
        try await blocking {
            try client.send([1])
            #expect(try client.receive(exactly: 1) == [1])
        }
    }

    @Test(arguments: ["taken", "unresolvable", "malformed"])
    func aFailedPopulateKeepsTheProxyAndItsConnections(_ way: String) async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let taken = try await call.proxy("taken", to: 1)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"noop"}"#)
            let client = try await blocking { try TestSocket.connect(port: port) }
            try await expectEcho(client)
            let listen =
                switch way {
                case "taken": "127.0.0.1:\(taken)"
                case "unresolvable": "no.such.host.invalid:0"
                default: "nonsense"
                }
            let response = try await call(
                "POST", "/populate", #"[{"name":"p","listen":"\#(listen)","upstream":"127.0.0.1:1"}]"#)
            #expect(response.status == 500 && response.json?.object?["proxies"] == .array([]))
            let after = try await call("GET", "/proxies/p").json?.object
            #expect(after?["enabled"] == .bool(true) && after?["listen"] == .text("127.0.0.1:\(port)"))
            #expect(after?["upstream"] == .text("127.0.0.1:\(upstream.port)") && after?["toxics"] != .array([]))
            try await expectEcho(client)
        }
    }

    /// A proxy with the port of the old one can only start after the old one has stopped.
    @Test func aFailedPopulateOnTheSamePortRestoresTheProxy() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port, listen: try TestSocket.unusedPort())
            // No machine has this address.
            let response = try await call(
                "POST", "/populate", #"[{"name":"p","listen":"192.0.2.1:\#(port)","upstream":"127.0.0.1:1"}]"#)
            #expect(response.status == 500, "\(response.body)")
            let after = try await call("GET", "/proxies/p").json?.object
            #expect(after?["enabled"] == .bool(true) && after?["listen"] == .text("127.0.0.1:\(port)"))
            try await expectEcho(try await blocking { try TestSocket.connect(port: port) })
        }
    }

    @Test func aPopulateWithAnotherUpstreamReusesThePort() async throws {
        let (first, second) = (
            try Upstream { try $0.send(Array("one".utf8)) }, try Upstream { try $0.send(Array("two".utf8)) }
        )
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: first.port)
            let body = #"[{"name":"p","listen":"127.0.0.1:\#(port)","upstream":"127.0.0.1:\#(second.port)"}]"#
            #expect(try await call("POST", "/populate", body).status == 201)
            let bytes = try await blocking { try TestSocket.connect(port: port).receiveToEnd() }
            #expect(bytes == Array("two".utf8))
        }
    }

    // MARK: The port

    /// A link that refuses connections closes the port, which another process may bind then.
    @Test func aPortTakenDuringARefusalIsReportedAndRetried() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port, listen: try TestSocket.unusedPort())
            let link = "/slowlane/v1/proxies/p/link"
            #expect(try await call("PUT", link, #"{"profile":"offline"}"#).status == 200)
            #expect(try await call("GET", "/proxies/p").json?.object?["enabled"] == .bool(true))
            var squatter: TestSocket? = try TestSocket.listen(on: port).socket
            let healed = try await call("DELETE", link)
            #expect(healed.status == 500)
            let words = "listen tcp 127.0.0.1:\(port): bind: address already in use"
            #expect(healed.error?.hasPrefix(words) == true, "\(healed.body)")
            for path in ["/proxies/p", "/slowlane/v1/proxies/p"] {
                #expect(try await call("GET", path).json?.object?["enabled"] == .bool(false), "\(path)")
            }
            #expect(try await call("PATCH", "/proxies/p", #"{"enabled":true}"#).status == 500)
            #expect(squatter != nil)
            squatter = nil
            let deadline = ContinuousClock.now + .seconds(60)
            while try await call("GET", "/proxies/p").json?.object?["enabled"] != .bool(true) {
                try #require(ContinuousClock.now < deadline, "not enabled within a minute")
                try await Task.sleep(for: .milliseconds(50))
            }
            try await expectEcho(try await blocking { try TestSocket.connect(port: port) })
        }
    }

    @Test(arguments: [
        ("*:7310", "lookup *: no such host"), ("a b:1", "lookup a b: no such host"),
        ("nonsense", "address nonsense: missing port in address"),
        ("1:2:3", "address 1:2:3: too many colons in address"),
        ("[::1", "address [::1: missing ']' in address"), ("127.0.0.1:99999", "address 99999: invalid port"),
        ("127.0.0.1:nosuchservice", "address tcp/nosuchservice: unknown port"),
        ("no.such.host.invalid:1", "lookup no.such.host.invalid: no such host"),
    ]) func invalidListenAddressesGetTheErrorsOfTheOriginal(_ listen: String, _ words: String) async throws {
        try await withServer { (call, _) async throws in
            let created = try await call("POST", "/proxies", #"{"name":"q","listen":"\#(listen)","upstream":"x:1"}"#)
            #expect(created.status == 500 && created.error == "listen tcp: \(words)", "\(created.body)")
            #expect(try await call("GET", "/proxies/q").status == 404)
            _ = try await call.proxy(to: 1)
            let updated = try await call("PATCH", "/proxies/p", #"{"listen":"\#(listen)"}"#)
            #expect(updated.status == 500 && updated.error == words, "\(updated.body)")
            #expect(try await call("GET", "/proxies/p").json?.object?["enabled"] == .bool(true))
        }
    }

    // MARK: Lookups

    /// A resolver whose lookups of `hangs` wait for ``release()``.
    private actor HangingResolver {
        private var waiting: [CheckedContinuation<Void, Never>] = []
        private var isReleased = false

        var count: Int { waiting.count }

        func wait() async {
            if !isReleased { await withCheckedContinuation { waiting.append($0) } }
        }

        func release() {
            isReleased = true
            for continuation in waiting { continuation.resume() }
            waiting = []
        }

        nonisolated var resolve: ProxyRegistry.Resolver {
            { (text) async throws(ProxyError) in
                if !text.hasPrefix("hangs:") { return try await ListenAddress.resolve(text) }
                await self.wait()
                return try await ListenAddress.resolve("127.0.0.1:0")
            }
        }
    }

    /// Runs `body` with a server whose lookups of `hangs` hang, and returns how long closing it took.
    private func withHangingResolver(
        _ body: (HTTPCall, HangingResolver) async throws -> Void
    ) async throws -> Duration {
        let resolver = HangingResolver()
        let registry = ProxyRegistry(
            seed: 1, limits: ServerLimits(), on: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, resolver: resolver.resolve)
        let api = API(registry, limits: ServerLimits(), version: "test")
        let server = try await APIServer.start(
            api, host: "127.0.0.1", port: 0,
            requestGuard: RequestGuard(boundTo: "127.0.0.1", token: nil, allowedHosts: []))
        do {
            try await body(HTTPCall(port: server.port), resolver)
        } catch {
            await resolver.release()
            await server.stop()
            await api.close()
            throw error
        }
        let begin = ContinuousClock.now
        await api.close()
        let duration = ContinuousClock.now - begin
        await server.stop()
        await resolver.release()
        return duration
    }

    /// Waits for a number of hanging lookups.
    private func eventually(_ resolver: HangingResolver, _ count: Int) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while await resolver.count < count {
            try #require(ContinuousClock.now < deadline, "no lookup within a minute")
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Returns the shortest of five durations, which a busy machine does not affect. A call that waits for a lookup never ends.
    private func shortestDuration(_ body: () async throws -> Void) async throws -> Duration {
        var best = Duration.seconds(60)
        for _ in 0..<5 {
            let begin = ContinuousClock.now
            try await body()
            best = min(best, ContinuousClock.now - begin)
        }
        return best
    }

    @Test func hangingLookupsDoNotDelayCallsAboutOtherProxies() async throws {
        let closing = try await withHangingResolver { call, resolver in
            _ = try await call.proxy("other", to: 1)
            // Lookups hang in a creation, an update, a start, and a populate.
            _ = try await call.proxy("changed", to: 1)
            let disabled = #"{"name":"enabled","listen":"hangs:1","upstream":"x:1","enabled":false}"#
            #expect(try await call("POST", "/proxies", disabled).status == 201)
            let calls = [
                ("POST", "/proxies", #"{"name":"made","listen":"hangs:1","upstream":"x:1"}"#),
                ("PATCH", "/proxies/changed", #"{"listen":"hangs:1"}"#),
                ("PATCH", "/proxies/enabled", #"{"enabled":true}"#),
                ("POST", "/populate", #"[{"name":"populated","listen":"hangs:1","upstream":"x:1"}]"#),
            ]
            try await withThrowingTaskGroup(of: Int.self) { group in
                for (method, path, body) in calls {
                    group.addTask { try await call(method, path, body).status }
                }
                try await eventually(resolver, calls.count)
                for (method, path, body, status) in [
                    ("GET", "/proxies", nil, 200), ("GET", "/proxies/other", nil, 200),
                    ("PATCH", "/proxies/other", #"{"enabled":false}"#, 200),
                    ("PATCH", "/proxies/other", #"{"enabled":true}"#, 200),
                    ("PUT", "/slowlane/v1/proxies/other/link", #"{"profile":"edge"}"#, 200),
                    ("GET", "/slowlane/v1/proxies/enabled", nil, 200), ("GET", "/proxies/made", nil, 404),
                ] as [(String, String, String?, Int)] {
                    let time = try await shortestDuration {
                        let response = try await call(method, path, body)
                        #expect(response.status == status, "\(method) \(path)")
                    }
                    #expect(time < .milliseconds(100), "\(method) \(path) took \(time)")
                }
                let time = try await shortestDuration {
                    _ = try await call.proxy("new", to: 1)
                    #expect(try await call("POST", "/proxies/new/toxics", #"{"type":"latency"}"#).status == 200)
                    #expect(try await call("DELETE", "/proxies/new").status == 204)
                }
                #expect(time < .milliseconds(300))
                await resolver.release()
                for try await status in group { #expect(status == 200 || status == 201) }
            }
            #expect(try await call("GET", "/proxies/made").json?.object?["enabled"] == .bool(true))
        }
        #expect(closing < .seconds(10))
    }

    @Test func waitingChangesOfAProxyAreLimited() async throws {
        let resolver = HangingResolver()
        let registry = ProxyRegistry(
            seed: 1, limits: ServerLimits(), on: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, resolver: resolver.resolve)
        let body = #"{"name":"p","listen":"hangs:1","upstream":"x:1","enabled":false}"#
        _ = try await registry.create(ProxyRequest(JSONFields(body: Array(body.utf8))))
        try await withThrowingTaskGroup(of: String.self) { group in
            let enable = { @Sendable () async -> String in
                do throws(APIError) {
                    _ = try await registry.update("p", listen: nil, upstream: nil, enabled: true)
                    return "enabled"
                } catch {
                    return error.text
                }
            }
            group.addTask { await enable() }
            try await eventually(resolver, 1)
            for _ in 0..<ProxyRegistry.waitingChangesMax + 6 { group.addTask { await enable() } }
            for _ in 0..<6 {
                #expect(try await group.next()?.hasPrefix("64 changes of this proxy are waiting") == true)
            }
            await resolver.release()
            for try await outcome in group { #expect(outcome == "enabled") }
        }
        await registry.closeAll()
    }

    /// Without a pause between two proxies, a call waited for the whole populate of each caller before it.
    @Test func otherCallsContinueBetweenTwoProxiesOfAPopulate() async throws {
        let registry = ProxyRegistry(
            seed: 1, limits: ServerLimits(), on: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let count = 900
        let populate = Task {
            let requests = try (0..<count).map {
                try ProxyRequest(
                    JSONFields(
                        body: Array(#"{"name":"p\#($0)","listen":"127.0.0.1:0","upstream":"x:1","enabled":false}"#.utf8)
                    ))
            }
            return await registry.populate(requests).created.count
        }
        // Each length of the list that another caller sees was read between two proxies. How many it sees is a matter of the
        // scheduler; without a pause it sees the first and the last one.
        var lengths: Set<Int> = []
        var length = 0
        while length < count {
            length = await registry.all.count
            lengths.insert(length)
        }
        #expect(try await populate.value == count)
        #expect(!lengths.subtracting([0, count]).isEmpty, "\(lengths)")
        await registry.closeAll()
    }

    @Test func proxiesBeingCreatedCountTowardsTheLimit() async throws {
        var limits = ServerLimits()
        limits.proxiesMax = 3
        try await withServer(limits: limits) { (call, _) async throws in
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<12 {
                    group.addTask {
                        let body = #"{"name":"p\#(number)","listen":"127.0.0.1:0","upstream":"x:1"}"#
                        return try await call("POST", "/proxies", body).status
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0 == 201 } == 3 && statuses.count { $0 == 400 } == 9, "\(statuses)")
        }
    }

    @Test func closingDoesNotWaitForLookups() async throws {
        let outcome = Flag()
        let closing = try await withHangingResolver { call, resolver in
            Task {
                // The response, if there is one, is an error: a registry that is closing creates no proxies.
                let status = try? await call("POST", "/proxies", #"{"name":"m","listen":"hangs:1","upstream":"x:1"}"#)
                    .status
                if status == 201 { outcome.set() }
            }
            try await eventually(resolver, 1)
        }
        #expect(closing < .seconds(10) && !outcome.isSet)
    }

    @Test func resetRestoresTheOtherProxiesIfThePortOfOneIsTaken() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy("a", to: upstream.port)
            _ = try await call.proxy("b", to: upstream.port)
            _ = try await call("PATCH", "/proxies/a", #"{"enabled":false}"#)
            let taken = try await blocking { try TestSocket.listen(on: port) }
            _ = try await call("POST", "/proxies/b/toxics", #"{"type":"latency","attributes":{"latency":1}}"#)
            let response = try await call("POST", "/reset")
            #expect(response.status == 500 && response.body.contains("bind"))
            #expect(try await call("GET", "/proxies/b/toxics").body == "[]")
            _ = taken
        }
    }
}
