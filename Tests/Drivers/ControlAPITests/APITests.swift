import ControlAPI
import Foundation
import TestSupport
import Testing
import Wire

/// Toxiproxy's contract over HTTP, and with proxies that have sockets. `APIResponseTests` has the rest.
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct APITests {
    // MARK: The HTTP layer

    @Test func bodiesOfAnyTypeAndFramingAreRead() async throws {
        try await withServer { (call, _) async throws in
            let body = #"{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}"#
            for (index, type) in ["text/plain", "application/x-www-form-urlencoded", "application/json"].enumerated() {
                let named = body.replacing("\"a\"", with: "\"a\(index)\"")
                let response = try await call("POST", "/proxies", named, headers: ["Content-Type: \(type)"])
                #expect(response.status == 201)
                #expect(response.header("Content-Type") == "application/json")
            }
            let chunked = "\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
            #expect(
                try await call("POST", "/proxies", chunked, headers: ["Transfer-Encoding: chunked"]).status == 201)
        }
    }

    @Test func everyRoutedResponseHasItsOwnRequestID() async throws {
        try await withServer { (call, _) async throws in
            var seen: Set<String> = []
            for (method, path) in [
                ("GET", "/version"), ("GET", "/proxies"), ("GET", "/proxies/none"), ("POST", "/reset"),
                ("POST", "/proxies"),
            ] {
                let id = try #require(try await call(method, path).header("X-Toxiproxy-Request-Id"))
                #expect(id.count == 20 && id.allSatisfy { $0.isASCII && ($0.isNumber || $0.isLowercase) })
                seen.insert(id)
            }
            #expect(seen.count == 5)
            #expect(try await call("GET", "/nothing").header("X-Toxiproxy-Request-Id") == nil)
        }
    }

    @Test func warningsAreAHeader() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            let response = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"bandwidth","attributes":{"rates":5}}"#)
            #expect(response.status == 200)
            #expect(
                response.header("Warning")
                    == #"299 - "unknown attribute 'rates' of toxic 'bandwidth'; did you mean 'rate'?""#)
        }
    }

    // MARK: Errors

    @Test func aTakenPortIsReportedWithItsAddress() async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy("p", to: 1)
            for listen in ["127.0.0.1:\(port)", "localhost:\(port)"] {
                let response = try await call(
                    "POST", "/proxies", #"{"name":"q","listen":"\#(listen)","upstream":"127.0.0.1:1"}"#)
                #expect(response.status == 500)
                #expect(response.error == "listen tcp 127.0.0.1:\(port): bind: address already in use")
            }
            #expect(try await call("GET", "/proxies/q").status == 404)
        }
    }

    // MARK: Proxies

    @Test func aNewProxyIsEnabledAndShowsItsAddress() async throws {
        try await withServer { (call, _) async throws in
            let response = try await call(
                "POST", "/proxies", #"{"name":"p","listen":"localhost:0","upstream":"x y z","toxics":null}"#)
            #expect(response.status == 201)
            let object = try #require(response.json?.object)
            #expect(object["enabled"] == .bool(true) && object["toxics"] == .array([]))
            #expect(object["upstream"] == .text("x y z"))
            let listen = try #require(object["listen"]?.text)
            #expect(listen.hasPrefix("127.0.0.1:") && listen != "127.0.0.1:0")
            let everywhere = try await call("POST", "/proxies", #"{"name":"e","upstream":"127.0.0.1:1"}"#)
            let shown = try #require(everywhere.json?.object?["listen"]?.text)
            #expect(shown.hasPrefix("[::]:") || shown.hasPrefix("0.0.0.0:"))
            let disabled = try await call(
                "POST", "/proxies", #"{"name":"d","listen":"localhost:1","upstream":"a:1","enabled":false}"#)
            #expect(disabled.json?.object?["listen"] == .text("localhost:1"))
        }
    }

    @Test(arguments: ["PATCH", "POST"]) func anUpdateWithoutChangesKeepsConnections(
        _ method: String
    ) async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let client = try await blocking { try TestSocket.connect(port: port) }
            for body in [
                "{}", #"{"enabled":true}"#, #"{"listen":"localhost:\#(port)"}"#, #"{"name":"other","toxics":[1]}"#,
                #"{"upstream":"127.0.0.1:\#(upstream.port)"}"#,
            ] {
                #expect(try await call(method, "/proxies/p", body).status == 200)
            }
            try await blocking {
                try client.send([1, 2, 3])
                #expect(try client.receive(exactly: 3) == [1, 2, 3])
            }
        }
    }

    @Test func anotherUpstreamClosesConnectionsAndKeepsToxics() async throws {
        let (first, second) = (
            try Upstream { try $0.send(Array("one".utf8)) }, try Upstream { try $0.send(Array("two".utf8)) }
        )
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: first.port)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"noop"}"#)
            let response = try await call("PATCH", "/proxies/p", #"{"upstream":"127.0.0.1:\#(second.port)"}"#)
            #expect(response.json?.object?["listen"] == .text("127.0.0.1:\(port)"))
            try await blocking {
                let bytes = try TestSocket.connect(port: port).receiveToEnd()
                #expect(bytes == Array("two".utf8))
            }
            let toxics = try await call("GET", "/proxies/p/toxics").json
            #expect(toxics != .array([]))
        }
    }

    @Test func disablingClosesAndEnablingListensOnTheSamePort() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            // The system assigns this port to no other socket while the proxy is disabled.
            let port = try await call.proxy(to: upstream.port, listen: try TestSocket.unusedPort())
            let client = try await blocking { () -> TestSocket in
                let client = try TestSocket.connect(port: port)
                try client.send([1])
                #expect(try client.receive(exactly: 1) == [1])
                return client
            }
            let off = try await call("PATCH", "/proxies/p", #"{"enabled":false}"#)
            #expect(off.json?.object?["listen"] == .text("127.0.0.1:\(port)"))
            try await blocking {
                // A FIN, not a RST.
                #expect(client.receiveToFailure().code == 0)
                #expect(throws: TestSocket.Failure.self) { () throws -> Void in _ = try TestSocket.connect(port: port) }
            }
            for _ in 0..<5 {
                #expect(try await call("PATCH", "/proxies/p", #"{"enabled":true}"#).status == 200)
                #expect(try await call("PATCH", "/proxies/p", #"{"enabled":false}"#).status == 200)
            }
            #expect(try await call("POST", "/reset").status == 204)
            _ = try await blocking { try TestSocket.connect(port: port) }
        }
    }

    @Test func aRestartThatCannotBindLeavesTheProxyDisabled() async throws {
        try await withServer { (call, _) async throws in
            let taken = try await call.proxy("taken", to: 1)
            _ = try await call.proxy("p", to: 1)
            let response = try await call("PATCH", "/proxies/p", #"{"listen":"127.0.0.1:\#(taken)"}"#)
            #expect(response.status == 500)
            let after = try await call("GET", "/proxies/p").json?.object
            #expect(after?["enabled"] == .bool(false) && after?["listen"] == .text("127.0.0.1:\(taken)"))
            // An address that cannot be resolved changes nothing.
            #expect(
                try await call("PATCH", "/proxies/taken", #"{"listen":"no.such.host.invalid:1"}"#).status == 500)
            #expect(try await call("GET", "/proxies/taken").json?.object?["enabled"] == .bool(true))
        }
    }

    @Test func deletionClosesEverythingBeforeItsResponse() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let client = try await blocking { try TestSocket.connect(port: port) }
            let response = try await call("DELETE", "/proxies/p")
            #expect(response.status == 204 && response.body.isEmpty)
            #expect(client.isReadable(within: 0))
            #expect(throws: TestSocket.Failure.self) { () throws -> Void in _ = try TestSocket.connect(port: port) }
        }
    }

    @Test func aRefusedUpstreamClosesTheClientAtOnce() async throws {
        try await withServer { (call, _) async throws in
            let free = try TestSocket.unusedPort()
            for upstream in ["127.0.0.1:\(free)", "nowhere.invalid:80", "no address at all"] {
                let response = try await call(
                    "POST", "/proxies", #"{"name":"\#(upstream)","listen":"127.0.0.1:0","upstream":"\#(upstream)"}"#)
                let listen = try #require(response.json?.object?["listen"]?.text)
                let port = try #require(listen.split(separator: ":").last.flatMap { Int($0) })
                try await blocking {
                    let end = try TestSocket.connect(port: port).receiveToFailure()
                    #expect(end.bytes == 0)
                }
            }
        }
    }

    /// Before, `8000` was dialed as 0.0.31.64.
    @Test func anUpstreamThatIsOnlyAPortIsOnThisMachine() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let response = try await call(
                "POST", "/proxies", #"{"name":"p","listen":"127.0.0.1:0","upstream":"\#(upstream.port)"}"#)
            #expect(response.status == 201 && response.json?.object?["upstream"] == .text("\(upstream.port)"))
            let listen = try #require(response.json?.object?["listen"]?.text)
            let port = try #require(listen.split(separator: ":").last.flatMap { Int($0) })
            try await blocking {
                let client = try TestSocket.connect(port: port)
                try client.send([1, 2])
                #expect(try client.receive(exactly: 2) == [1, 2])
            }
        }
    }

    @Test func aProxyWhoseUpstreamIsItselfDialsNothing() async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: 1)
            _ = try await call("PATCH", "/proxies/p", #"{"upstream":"127.0.0.1:\#(port)"}"#)
            let end = try await blocking { try TestSocket.connect(port: port).receiveToFailure() }
            #expect(end.bytes == 0)
            let proxy = try await call("GET", "/slowlane/v1/proxies/p").json
            #expect(proxy?.object?["connections_accepted"] == .integer(1))
        }
    }

    // MARK: Populate and reset

    @Test func populateKeepsARunningProxyAndReplacesAMovedOne() async throws {
        try await withServer { (call, _) async throws in
            let kept = try await call.proxy("kept", to: 1)
            _ = try await call.proxy("moved", to: 1)
            for name in ["kept", "moved"] {
                _ = try await call("POST", "/proxies/\(name)/toxics", #"{"type":"noop"}"#)
            }
            let response = try await call(
                "POST", "/populate",
                """
                [{"name":"kept","listen":"127.0.0.1:\(kept)","upstream":"127.0.0.1:1","enabled":false},
                 {"name":"moved","listen":"127.0.0.1:0","upstream":"127.0.0.1:2"},
                 {"name":"new","listen":"127.0.0.1:0","upstream":"127.0.0.1:3",
                  "toxics":[{"type":"latency","attributes":{"latency":5}}],"link":{"profile":"edge"}}]
                """)
            #expect(response.status == 201)
            guard case .array(let proxies)? = response.json?.object?["proxies"] else {
                Issue.record("\(response.body)")
                return
            }
            #expect(proxies.map { $0.object?["name"] } == [.text("kept"), .text("moved"), .text("new")])
            #expect(proxies[0].object?["enabled"] == .bool(true) && proxies[0].object?["toxics"] != .array([]))
            #expect(
                proxies[1].object?["toxics"] == .array([]) && proxies[1].object?["upstream"] == .text("127.0.0.1:2"))
            #expect(proxies[2].object?["toxics"] != .array([]))
            let link = try await call("GET", "/slowlane/v1/proxies/new/link")
            #expect(link.json?.object?["profile"] == .text("edge"))
            #expect(try await call("POST", "/populate", "[]").status == 201)
        }
    }

    @Test func populateStopsAtTheFirstFailureAndKeepsEarlierProxies() async throws {
        try await withServer { (call, _) async throws in
            let taken = try await call.proxy("taken", to: 1)
            let response = try await call(
                "POST", "/populate",
                """
                [{"name":"a","listen":"127.0.0.1:0","upstream":"x:1"},
                 {"name":"b","listen":"127.0.0.1:\(taken)","upstream":"x:1"},
                 {"name":"c","listen":"127.0.0.1:0","upstream":"x:1"}]
                """)
            #expect(response.status == 500)
            #expect(response.error == "listen tcp 127.0.0.1:\(taken): bind: address already in use")
            guard case .array(let done)? = response.json?.object?["proxies"] else {
                Issue.record("\(response.body)")
                return
            }
            #expect(done.map { $0.object?["name"] } == [.text("a")])
            #expect(try await call("GET", "/proxies/a").status == 200)
            #expect(try await call("GET", "/proxies/c").status == 404)
            let refused = try await call("POST", "/populate", "{}")
            #expect(refused.status == 400 && refused.json?.object?["proxies"] == .array([]))
        }
    }

    @Test func resetEnablesProxiesRemovesToxicsAndKeepsConnections() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy("p", to: upstream.port)
            _ = try await call.proxy("off", to: upstream.port)
            _ = try await call("PATCH", "/proxies/off", #"{"enabled":false}"#)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"bandwidth","attributes":{"rate":0}}"#)
            let client = try await blocking { () -> TestSocket in
                let client = try TestSocket.connect(port: port)
                try client.send(Array("held".utf8))
                #expect(!client.isReadable(within: 100))
                return client
            }
            #expect(try await call("PUT", "/slowlane/v1/proxies/p/link", #"{"profile":"wifi"}"#).status == 200)
            let response = try await call("POST", "/reset", "whatever")
            #expect(response.status == 204 && response.body.isEmpty)
            let held = try await blocking { try client.receive(exactly: 4) }
            #expect(held == Array("held".utf8))
            #expect(try await call("GET", "/proxies/off").json?.object?["enabled"] == .bool(true))
            #expect(try await call("GET", "/proxies/p/toxics").body == "[]")
            #expect(try await call("GET", "/slowlane/v1/proxies/p/link").json?.object?["profile"] == .null)
        }
    }

    // MARK: Metrics

    @Test func processMetricsHaveTheNamesOfPrometheus() async throws {
        try await withServer(metrics: .init(proxies: false, process: true)) { (call, _) async throws in
            let text = try await call("GET", "/metrics").body
            var names = ["process_cpu_seconds_total"]
            #if os(Linux)
            names += ["resident_memory_bytes", "virtual_memory_bytes", "open_fds", "max_fds"].map {
                "process_\($0)"
            }
            let start = try #require(
                text.firstMatch(of: /\nprocess_start_time_seconds (\d+)\n/).flatMap { Double($0.1) }, "\(text)")
            let age = Date.now.timeIntervalSince1970 - start
            #expect((-2..<86_400).contains(age), "\(age) s old")
            #endif
            for name in names {
                let line = text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }
                #expect(line.flatMap { Double($0.dropFirst(name.count + 1)) }.map { $0 > 0 } == true, "\(name)")
            }
            #expect(!text.contains("go_") && !text.contains("toxiproxy_proxy"))
        }
    }

    @Test func countersIncludeOpenConnections() async throws {
        let upstream = try Upstream.echo()
        try await withServer(metrics: .init(proxies: true, process: true)) { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let client = try await blocking { () -> TestSocket in
                let client = try TestSocket.connect(port: port)
                try client.send([UInt8](repeating: 1, count: 1000))
                #expect(try client.receive(exactly: 1000).count == 1000)
                return client
            }
            let response = try await call("GET", "/metrics")
            #expect(response.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            for direction in ["upstream", "downstream"] {
                for name in ["received", "sent"] {
                    let line =
                        "toxiproxy_proxy_\(name)_bytes_total{direction=\"\(direction)\",listener=\"127.0.0.1:\(port)\",proxy=\"p\",upstream=\"127.0.0.1:\(upstream.port)\"} 1000"
                    #expect(response.body.contains("\n\(line)\n"), "\(line)")
                }
            }
            #expect(
                response.body.contains("slowlane_proxy_connections_open{")
                    && response.body.contains("slowlane_build_info{")
            )
            // The counters survive the connections.
            _ = client
            _ = try await call("PATCH", "/proxies/p", #"{"enabled":false}"#)
            let open = try await call(
                "GET", "/slowlane/v1/metrics", headers: ["Accept: application/openmetrics-text; version=1.0.0"])
            #expect(open.body.hasSuffix("# EOF\n") && open.body.contains("# TYPE toxiproxy_proxy_sent_bytes counter"))
            #expect(open.body.contains("} 1000\n"))
        }
        try await withServer { (call, _) async throws in #expect(try await call("GET", "/metrics").status == 404) }
    }

    // MARK: Slowlane's routes

    @Test func aLinkAppliesBeforeTheResponse() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let path = "/slowlane/v1/proxies/p/link"
            for (body, delay) in [
                (#"{"timeline":"0s: 3g, 20s: 100-loss"}"#, 100), (#"{"timeline":"subway"}"#, 50),
                (#"{"netem":{"down":"delay 60ms","up":"delay 60ms"}}"#, 60),
            ] as [(String, Int64)] {
                let response = try await call("PUT", path, body)
                #expect(response.status == 200, "\(response.body)")
                #expect(response.json?.object?["down"]?.object?["delay_ms"] == .integer(delay), "\(response.body)")
            }
            // Two round trips: the handshake, and the byte with its echo.
            let span = try await blocking {
                // The modelled handshake begins with the connection.
                try ContinuousClock().measure {
                    let client = try TestSocket.connect(port: port)
                    try client.send([1])
                    _ = try client.receive(exactly: 1)
                }
            }
            #expect(span >= .milliseconds(240))
            #expect(try await call("DELETE", path).json?.object?["down"]?.object?["delay_ms"] == .integer(0))
        }
    }

    @Test func connectionsAreListedAndClosed() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let clients = try await blocking {
                try (0..<2).map { _ in
                    let client = try TestSocket.connect(port: port)
                    try client.send([1, 2])
                    _ = try client.receive(exactly: 2)
                    return client
                }
            }
            let path = "/slowlane/v1/proxies/p/connections"
            guard case .array(let list)? = try await call("GET", path).json else { return }
            #expect(list.map { $0.object?["number"] } == [.integer(0), .integer(1)])
            #expect(
                list.allSatisfy { $0.object?["received_bytes"] == .object(["up": .integer(2), "down": .integer(2)]) })
            #expect(try await call("DELETE", "\(path)/0").status == 204)
            #expect(try await call("DELETE", "\(path)/1?how=close").status == 204)
            try await blocking {
                #expect(clients[0].receiveToFailure().code == ECONNRESET)
                #expect(clients[1].receiveToFailure().code == 0)
            }
            #expect(try await call("DELETE", "\(path)/9").error == "connection not found")
            #expect(try await call("DELETE", "\(path)/0?how=softly").status == 400)
        }
    }

    /// Opens twenty connections one after the other, and returns which of them a toxic with toxicity 0.5 closed.
    private func closedConnections(seed: UInt64) async throws -> [Bool] {
        let upstream = try Upstream.echo()
        var isClosed: [Bool] = []
        try await withServer(seed: seed) { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            _ = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"limit_data","toxicity":0.5,"attributes":{"bytes":0}}"#)
            isClosed = try await blocking {
                try (0..<20).map { _ in
                    let client = try TestSocket.connect(port: port)
                    try client.send([1])
                    return try client.receive(exactly: 1).isEmpty
                }
            }
        }
        return isClosed
    }

    @Test func theSameSeedSelectsTheSameConnections() async throws {
        let first = try await closedConnections(seed: 7)
        #expect(try await closedConnections(seed: 7) == first && Set(first).count == 2)
        #expect(try await closedConnections(seed: 8) != first)
    }

    /// A large body is read on another thread; the next request of the connection waits for its effect.
    @Test func changesOfOneConnectionTakeEffectInTheirOrder() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            let padding = String(repeating: "x", count: 900_000)
            func request(_ seed: Int, _ more: String, _ close: String = "") -> String {
                let body = "{\"seed\":\(seed)\(more)}"
                return "PUT /slowlane/v1/proxies/p/seed HTTP/1.1\r\nHost: localhost\r\n\(close)"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            }
            for seed in 1...10 {
                let last = request(2 * seed + 1, "", "Connection: close\r\n")
                let both = request(2 * seed, ",\"padding\":\"\(padding)\"") + last
                let responses = try await blocking { [port = call.port] in
                    let socket = try TestSocket.connect(port: port)
                    try socket.send(Array(both.utf8))
                    return String(decoding: try socket.receiveToEnd(), as: UTF8.self)
                }
                #expect(responses.ranges(of: "HTTP/1.1 200 OK").count == 2)
                let read = try await call("GET", "/slowlane/v1/proxies/p/seed")
                #expect(read.json?.object?["seed"] == .integer(Int64(2 * seed + 1)))
            }
        }
    }

    // MARK: Authorization and limits

    @Test func requestsAreAuthorized() async throws {
        try await withServer(token: "secret") { (call, _) async throws in
            let refused = try await call("GET", "/proxies")
            #expect(refused.status == 401 && refused.header("WWW-Authenticate") == "Bearer")
            let owner = "Authorization: Bearer secret"
            #expect(try await call("GET", "/proxies", headers: [owner]).status == 200)
            #expect(try await call("GET", "/proxies", headers: [owner, "Host: evil.example"]).status == 403)
            #expect(try await call("POST", "/reset", headers: [owner, "Origin: http://evil.example"]).status == 403)
            let origin = "Origin: http://127.0.0.1:\(call.port)"
            #expect(try await call("POST", "/reset", headers: [owner, origin]).status == 204)
        }
    }

    @Test func bodiesThatAreTooLargeOrTooSlowAreRefused() async throws {
        var limits = ServerLimits()
        limits.bodyBytesMax = 1000
        limits.bodyWindowSeconds = 0.2
        try await withServer(limits: limits) { (call, _) async throws in
            let large = try await call("POST", "/proxies", String(repeating: " ", count: 2000))
            #expect(large.status == 413 && large.error?.contains("--max-body") == true)
            let slow = try await call.raw(
                "POST /proxies HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{")
            #expect(slow.status == 408)
        }
    }
}
