import ControlAPI
import Foundation
import JSON
import TestSupport
import Testing

/// Toxiproxy's contract, line by line, through real HTTP.
@Suite(.timeLimit(.minutes(10))) struct APITests {
    // MARK: The HTTP layer

    @Test func bodiesAreReadWhateverTheirTypeAndFraming() async throws {
        try await withServer { (call, _) async throws in
            let body = #"{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}"#
            for (index, type) in ["text/plain", "application/x-www-form-urlencoded", "application/json"].enumerated() {
                let named = body.replacing("\"a\"", with: "\"a\(index)\"")
                let answer = try await call("POST", "/proxies", named, headers: ["Content-Type: \(type)"])
                #expect(answer.status == 201)
                #expect(answer.header("Content-Type") == "application/json")
            }
            let chunked = "\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n"
            #expect(
                try await call("POST", "/proxies", chunked, headers: ["Transfer-Encoding: chunked"]).status == 201)
        }
    }

    @Test func everyRoutedAnswerHasItsOwnRequestID() async throws {
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

    @Test func browsersAreKeptOut() async throws {
        try await withServer { (call, _) async throws in
            let answer = try await call("GET", "/proxies", headers: ["User-Agent: Mozilla/5.0 (X11)"])
            #expect(answer.status == 403 && answer.body == "User agent not allowed\n")
            for agent in ["mozilla/5.0", "curl Mozilla/5.0"] {
                #expect(try await call("GET", "/proxies", headers: ["User-Agent: \(agent)"]).status == 200)
            }
            #expect(try await call("GET", "/none", headers: ["User-Agent: Mozilla/5.0"]).status == 404)
        }
    }

    @Test func unknownPathsAndMethods() async throws {
        try await withServer { (call, _) async throws in
            for path in ["/", "/proxies/", "/toxics", "/proxies/a/b", "/slowlane/v1/none", "/slowlane/v2/version"] {
                let answer = try await call("GET", path)
                #expect(answer.status == 404 && answer.body == "404 page not found\n", "\(path)")
            }
            for (method, path) in [
                ("PUT", "/proxies"), ("DELETE", "/proxies"), ("HEAD", "/version"), ("OPTIONS", "/proxies"),
                ("GET", "/populate"), ("GET", "/reset"), ("PUT", "/proxies/a"), ("DELETE", "/proxies/a/toxics"),
            ] {
                let answer = try await call(method, path)
                #expect(answer.status == 405 && answer.body.isEmpty, "\(method) \(path)")
            }
            let moved = try await call("GET", "//proxies/./x/..")
            #expect(moved.status == 301 && moved.header("Location") == "/proxies")
        }
    }

    // MARK: JSON

    @Test func fieldNamesMatchInAnyCaseAttributesIncluded() async throws {
        try await withServer { (call, _) async throws in
            let proxy = try await call(
                "POST", "/proxies", #"{"Name":"x","LISTEN":"127.0.0.1:0","Upstream":"127.0.0.1:1","ENABLED":true}"#)
            #expect(proxy.status == 201)
            let toxic = try await call(
                "POST", "/proxies/x/toxics",
                #"{"Type":"latency","Stream":"UpStream","Toxicity":0.5,"Attributes":{"Latency":7,"JITTER":2},"other":1}"#
            )
            #expect(toxic.status == 200)
            #expect(
                toxic.body
                    == #"{"attributes":{"latency":7,"jitter":2},"name":"latency_UpStream","type":"latency","stream":"UpStream","toxicity":0.5}"#
            )
        }
    }

    @Test func nullIsNotGivenAndWholeNumbersMustBe() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            let toxic = try await call(
                "POST", "/proxies/p/toxics",
                #"{"type":"latency","name":null,"stream":null,"toxicity":null,"attributes":null}"#)
            #expect(toxic.status == 200 && toxic.json?.object?["name"] == .text("latency_downstream"))
            for bad in ["5.5", "\"5\"", "true", "[]", "99999999999999999999"] {
                let answer = try await call(
                    "PATCH", "/proxies/p/toxics/latency_downstream", #"{"attributes":{"jitter":3,"latency":\#(bad)}}"#)
                #expect(answer.status == 400 && answer.error?.hasPrefix("bad request body: ") == true, "\(bad)")
            }
            // Nothing of a refused call is kept.
            let after = try await call("GET", "/proxies/p/toxics/latency_downstream")
            #expect(after.json?.object?["attributes"] == .object(["latency": .integer(0), "jitter": .integer(0)]))
        }
    }

    @Test func toxicityIsAFloatOf32BitsInItsShortestForm() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            for (given, shown) in [
                ("0.1", "0.1"), ("1.0", "1"), ("0.33333333333", "0.33333334"), ("7", "7"), ("-1", "-1"),
            ] {
                let answer = try await call(
                    "POST", "/proxies/p/toxics", #"{"type":"noop","name":"t\#(given)","toxicity":\#(given)}"#)
                #expect(answer.status == 200 && answer.body.hasSuffix("\"toxicity\":\(shown)}"), "\(answer.body)")
            }
            #expect(
                try await call("POST", "/proxies/p/toxics", #"{"type":"noop","name":"t","toxicity":1e300}"#).status
                    == 400)
        }
    }

    @Test func proxiesAreSortedByName() async throws {
        try await withServer { (call, _) async throws in
            for name in ["mysql", "a", "zed", "Redis", "b c"] { _ = try await call.proxy(name, to: 1) }
            let body = try await call("GET", "/proxies").body
            let places = ["Redis", "a", "b c", "mysql", "zed"].compactMap { body.range(of: "\"\($0)\":{")?.lowerBound }
            #expect(places.count == 5 && places == places.sorted())
        }
    }

    // MARK: Errors

    @Test func theTextsOfErrors() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy("p", to: 1)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"noop","stream":"upstream"}"#)
            func expect(
                _ status: Int, _ text: String, _ method: String, _ path: String, _ body: String? = nil,
                _ place: SourceLocation = #_sourceLocation
            ) async throws {
                let answer = try await call(method, path, body)
                #expect(answer.status == status, "\(answer.body)", sourceLocation: place)
                #expect(answer.error == text, sourceLocation: place)
                #expect(answer.body.hasSuffix("\n"), sourceLocation: place)
            }
            try await expect(400, "missing required field: name", "POST", "/proxies", "{}")
            try await expect(400, "missing required field: name", "POST", "/proxies", #"{"name":"","upstream":"b"}"#)
            try await expect(400, "missing required field: upstream", "POST", "/proxies", #"{"name":"q"}"#)
            try await expect(
                400, "missing required field: name at proxy 2", "POST", "/populate",
                #"[{"name":"q","upstream":"b"},{"upstream":"b"}]"#)
            try await expect(
                400, "missing required field: upstream at proxy 1", "POST", "/populate", #"[{"name":"q"}]"#)
            try await expect(
                400, "stream was invalid, can be either upstream or downstream", "POST", "/proxies/p/toxics",
                #"{"type":"latency","stream":""}"#)
            try await expect(400, "invalid toxic type", "POST", "/proxies/p/toxics", #"{"type":"Latency"}"#)
            try await expect(400, "invalid toxic type", "POST", "/proxies/p/toxics", "{}")
            try await expect(404, "proxy not found", "GET", "/proxies/none")
            try await expect(404, "proxy not found", "PATCH", "/proxies/none", "no json")
            try await expect(404, "proxy not found", "POST", "/proxies/none/toxics", "no json")
            try await expect(404, "proxy not found", "DELETE", "/proxies/none")
            try await expect(404, "toxic not found", "GET", "/proxies/p/toxics/none")
            try await expect(404, "toxic not found", "PATCH", "/proxies/p/toxics/none", "{}")
            try await expect(404, "toxic not found", "DELETE", "/proxies/p/toxics/none")
            try await expect(409, "proxy already exists", "POST", "/proxies", #"{"name":"p","upstream":"else:1"}"#)
            // A name is unique over both streams.
            try await expect(
                409, "toxic already exists", "POST", "/proxies/p/toxics",
                #"{"type":"latency","name":"noop_upstream","attributes":{"latency":"x"}}"#)
            for body in ["", "{", "[]", "7", #"{"name":7}"#, #"{"name":"n","upstream":"u","enabled":"yes"}"#] {
                let answer = try await call("POST", "/proxies", body)
                #expect(answer.status == 400 && answer.error?.hasPrefix("bad request body: ") == true)
            }
        }
    }

    @Test func aTakenPortIsToldWithItsAddress() async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy("p", to: 1)
            for listen in ["127.0.0.1:\(port)", "localhost:\(port)"] {
                let answer = try await call(
                    "POST", "/proxies", #"{"name":"q","listen":"\#(listen)","upstream":"127.0.0.1:1"}"#)
                #expect(answer.status == 500)
                #expect(answer.error == "listen tcp 127.0.0.1:\(port): bind: address already in use")
            }
            #expect(try await call("GET", "/proxies/q").status == 404)
        }
    }

    @Test func theVersionIsPlainNumbers() async throws {
        try await withServer { (call, _) async throws in
            let answer = try await call("GET", "/version")
            #expect(answer.body == "{\"version\": \"2.12.0\"}\n")
            #expect(answer.header("Content-Type") == "application/json;charset=utf-8")
        }
    }

    // MARK: Proxies

    @Test func aNewProxyIsEnabledOnAnAddressThatIsShown() async throws {
        try await withServer { (call, _) async throws in
            let answer = try await call(
                "POST", "/proxies", #"{"name":"p","listen":"localhost:0","upstream":"x y z","toxics":null}"#)
            #expect(answer.status == 201)
            let object = try #require(answer.json?.object)
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

    @Test(arguments: ["a b", "50%", "host:8080", "ä→é", "a.b"]) func anyNameIsLegal(_ name: String) async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(name, to: 1)
            let path = "/proxies/" + (name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name)
            #expect(try await call("GET", path).json?.object?["name"] == .text(name))
            #expect(try await call("DELETE", path).status == 204)
        }
    }

    @Test(arguments: ["PATCH", "POST"]) func anUpdateThatChangesNothingLeavesConnectionsAlone(
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

    @Test func anotherUpstreamCutsConnectionsAndKeepsToxics() async throws {
        let (first, second) = (
            try Upstream { try $0.send(Array("one".utf8)) }, try Upstream { try $0.send(Array("two".utf8)) }
        )
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: first.port)
            _ = try await call("POST", "/proxies/p/toxics", #"{"type":"noop"}"#)
            let answer = try await call("PATCH", "/proxies/p", #"{"upstream":"127.0.0.1:\#(second.port)"}"#)
            #expect(answer.json?.object?["listen"] == .text("127.0.0.1:\(port)"))
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
            // While it is disabled the system may give the port to others, if it gives it to anybody.
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
            let answer = try await call("PATCH", "/proxies/p", #"{"listen":"127.0.0.1:\#(taken)"}"#)
            #expect(answer.status == 500)
            let after = try await call("GET", "/proxies/p").json?.object
            #expect(after?["enabled"] == .bool(false) && after?["listen"] == .text("127.0.0.1:\(taken)"))
            // What cannot be resolved changes nothing.
            #expect(
                try await call("PATCH", "/proxies/taken", #"{"listen":"no.such.host.invalid:1"}"#).status == 500)
            #expect(try await call("GET", "/proxies/taken").json?.object?["enabled"] == .bool(true))
        }
    }

    @Test func deletionClosesEverythingBeforeItAnswers() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let client = try await blocking { try TestSocket.connect(port: port) }
            let answer = try await call("DELETE", "/proxies/p")
            #expect(answer.status == 204 && answer.body.isEmpty)
            #expect(client.isReadable(within: 0))
            #expect(throws: TestSocket.Failure.self) { () throws -> Void in _ = try TestSocket.connect(port: port) }
        }
    }

    @Test func aRefusedUpstreamClosesTheClientAtOnce() async throws {
        try await withServer { (call, _) async throws in
            let free = try TestSocket.unusedPort()
            for upstream in ["127.0.0.1:\(free)", "nowhere.invalid:80", "no address at all"] {
                let answer = try await call(
                    "POST", "/proxies", #"{"name":"\#(upstream)","listen":"127.0.0.1:0","upstream":"\#(upstream)"}"#)
                let listen = try #require(answer.json?.object?["listen"]?.text)
                let port = try #require(listen.split(separator: ":").last.flatMap { Int($0) })
                try await blocking {
                    let end = try TestSocket.connect(port: port).receiveToFailure()
                    #expect(end.bytes == 0)
                }
            }
        }
    }

    @Test func aProxyThatLeadsToItselfCallsNobody() async throws {
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: 1)
            _ = try await call("PATCH", "/proxies/p", #"{"upstream":"127.0.0.1:\#(port)"}"#)
            let end = try await blocking { try TestSocket.connect(port: port).receiveToFailure() }
            #expect(end.bytes == 0)
            let proxy = try await call("GET", "/slowlane/v1/proxies/p").json
            #expect(proxy?.object?["accepted"] == .integer(1))
        }
    }

    // MARK: Populate and reset

    @Test func populateCreatesReplacesAndLeavesAlone() async throws {
        try await withServer { (call, _) async throws in
            let kept = try await call.proxy("kept", to: 1)
            _ = try await call.proxy("moved", to: 1)
            for name in ["kept", "moved"] {
                _ = try await call("POST", "/proxies/\(name)/toxics", #"{"type":"noop"}"#)
            }
            let answer = try await call(
                "POST", "/populate",
                """
                [{"name":"kept","listen":"127.0.0.1:\(kept)","upstream":"127.0.0.1:1","enabled":false},
                 {"name":"moved","listen":"127.0.0.1:0","upstream":"127.0.0.1:2"},
                 {"name":"new","listen":"127.0.0.1:0","upstream":"127.0.0.1:3",
                  "toxics":[{"type":"latency","attributes":{"latency":5}}],"link":{"profile":"edge"}}]
                """)
            #expect(answer.status == 201)
            guard case .array(let proxies)? = answer.json?.object?["proxies"] else {
                Issue.record("\(answer.body)")
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

    @Test func populateStopsAtTheFirstThatFailsAndKeepsThoseBefore() async throws {
        try await withServer { (call, _) async throws in
            let taken = try await call.proxy("taken", to: 1)
            let answer = try await call(
                "POST", "/populate",
                """
                [{"name":"a","listen":"127.0.0.1:0","upstream":"x:1"},
                 {"name":"b","listen":"127.0.0.1:\(taken)","upstream":"x:1"},
                 {"name":"c","listen":"127.0.0.1:0","upstream":"x:1"}]
                """)
            #expect(answer.status == 500)
            #expect(answer.error == "listen tcp 127.0.0.1:\(taken): bind: address already in use")
            guard case .array(let done)? = answer.json?.object?["proxies"] else {
                Issue.record("\(answer.body)")
                return
            }
            #expect(done.map { $0.object?["name"] } == [.text("a")])
            #expect(try await call("GET", "/proxies/a").status == 200)
            #expect(try await call("GET", "/proxies/c").status == 404)
            let refused = try await call("POST", "/populate", "{}")
            #expect(refused.status == 400 && refused.json?.object?["proxies"] == .array([]))
        }
    }

    @Test func resetEnablesAndRemovesToxicsAndConnectionsLiveOn() async throws {
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
            let answer = try await call("POST", "/reset", "whatever")
            #expect(answer.status == 204 && answer.body.isEmpty)
            let held = try await blocking { try client.receive(exactly: 4) }
            #expect(held == Array("held".utf8))
            #expect(try await call("GET", "/proxies/off").json?.object?["enabled"] == .bool(true))
            #expect(try await call("GET", "/proxies/p/toxics").body == "[]")
            #expect(try await call("GET", "/slowlane/v1/proxies/p/link").json?.object?["profile"] == .null)
        }
    }

    // MARK: Toxics

    @Test func toxicsAreShownUpstreamFirstThenByAge() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            for (name, stream) in [("d1", "downstream"), ("u1", "upstream"), ("d2", "downstream"), ("u2", "upstream")] {
                let answer = try await call(
                    "POST", "/proxies/p/toxics", #"{"type":"noop","name":"\#(name)","stream":"\#(stream)"}"#)
                #expect(answer.status == 200)
            }
            for path in ["/proxies/p/toxics", "/proxies/p"] {
                let json = try #require(try await call("GET", path).json)
                guard case .array(let toxics) = json.object?["toxics"] ?? json else { continue }
                #expect(toxics.map { $0.object?["name"] } == ["u1", "u2", "d1", "d2"].map { .text($0) })
            }
        }
    }

    @Test(arguments: [
        ("latency", #"{"latency":0,"jitter":0}"#), ("bandwidth", #"{"rate":0}"#), ("slow_close", #"{"delay":0}"#),
        ("timeout", #"{"timeout":0}"#), ("reset_peer", #"{"timeout":0}"#),
        ("slicer", #"{"average_size":0,"size_variation":0,"delay":0}"#), ("limit_data", #"{"bytes":0}"#),
        ("packet_loss", #"{"loss_rate":0,"correlation":0}"#), ("noop", "{}"),
    ]) func everyTypeHasItsAttributes(_ type: String, _ attributes: String) async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            let added = try await call("POST", "/proxies/p/toxics", #"{"type":"\#(type)"}"#)
            let expected =
                #"{"attributes":\#(attributes),"name":"\#(type)_downstream","type":"\#(type)","stream":"downstream","toxicity":1}"#
            #expect(added.status == 200 && added.body == expected)
            #expect(try await call("GET", "/proxies/p/toxics/\(type)_downstream").body == expected)
            for body in ["{}", #"{"attributes":null}"#, #"{"name":"x","type":"x","stream":"x"}"#] {
                #expect(try await call("PATCH", "/proxies/p/toxics/\(type)_downstream", body).body == expected)
            }
            let removed = try await call("DELETE", "/proxies/p/toxics/\(type)_downstream")
            #expect(removed.status == 204 && removed.body.isEmpty)
            #expect(try await call("GET", "/proxies/p/toxics").body == "[]")
        }
    }

    @Test func anUpdateMergesAttributes() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1)
            _ = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"latency","attributes":{"latency":100,"jitter":5}}"#)
            for method in ["PATCH", "POST"] {
                let answer = try await call(
                    method, "/proxies/p/toxics/latency_downstream", #"{"attributes":{"latency":300},"toxicity":0.5}"#)
                #expect(answer.status == 200)
                #expect(
                    answer.json?.object?["attributes"] == .object(["latency": .integer(300), "jitter": .integer(5)]))
                #expect(answer.json?.object?["toxicity"] == .number(0.5))
            }
            let loss = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"packet_loss","attributes":{"loss_rate":0.25}}"#)
            #expect(
                loss.json?.object?["attributes"] == .object(["loss_rate": .number(0.25), "correlation": .integer(0)]))
        }
    }

    // MARK: Metrics

    @Test func figuresOfTheProcessHaveTheNamesOfPrometheus() async throws {
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

    @Test func countersCountWhileConnectionsAreOpen() async throws {
        let upstream = try Upstream.echo()
        try await withServer(metrics: .init(proxies: true, process: true)) { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let client = try await blocking { () -> TestSocket in
                let client = try TestSocket.connect(port: port)
                try client.send([UInt8](repeating: 1, count: 1000))
                #expect(try client.receive(exactly: 1000).count == 1000)
                return client
            }
            let answer = try await call("GET", "/metrics")
            #expect(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            for direction in ["upstream", "downstream"] {
                for name in ["received", "sent"] {
                    let line =
                        "toxiproxy_proxy_\(name)_bytes_total{direction=\"\(direction)\",listener=\"127.0.0.1:\(port)\",proxy=\"p\",upstream=\"127.0.0.1:\(upstream.port)\"} 1000"
                    #expect(answer.body.contains("\n\(line)\n"), "\(line)")
                }
            }
            #expect(
                answer.body.contains("slowlane_proxy_connections_open{") && answer.body.contains("slowlane_build_info{")
            )
            // They outlive what they counted.
            _ = client
            _ = try await call("PATCH", "/proxies/p", #"{"enabled":false}"#)
            let open = try await call(
                "GET", "/slowlane/v1/metrics", headers: ["Accept: application/openmetrics-text; version=1.0.0"])
            #expect(open.body.hasSuffix("# EOF\n") && open.body.contains("# TYPE toxiproxy_proxy_sent_bytes counter"))
            #expect(open.body.contains("} 1000\n"))
        }
        try await withServer { (call, _) async throws in #expect(try await call("GET", "/metrics").status == 404) }
    }

    // MARK: Our own calls

    @Test func linksAreSetInEveryForm() async throws {
        let upstream = try Upstream.echo()
        try await withServer { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            let path = "/slowlane/v1/proxies/p/link"
            for (body, down) in [
                (#"{"profile":"edge"}"#, 400.0), (#"{"netem":{"down":"delay 70ms rate 1mbit","up":""}}"#, 70),
                (#"{"conditions":{"down":{"delay":"80 ms","rate":"500 kbit/s"},"up":{}}}"#, 80),
                (#"{"timeline":"0s: 3g, 20s: 100-loss"}"#, 100), (#"{"timeline":"subway"}"#, 50),
            ] {
                let answer = try await call("PUT", path, body)
                #expect(answer.status == 200, "\(answer.body)")
                let delay = answer.json?.object?["down"]?.object?["delay_ms"]
                #expect(delay == .integer(Int64(down)), "\(body): \(answer.body)")
            }
            // In force on the wire before the answer: a SYN and its answer, the byte and its echo.
            #expect(
                try await call("PUT", path, #"{"netem":{"down":"delay 60ms","up":"delay 60ms"}}"#).status == 200)
            let span = try await blocking {
                let client = try TestSocket.connect(port: port)
                return try ContinuousClock().measure {
                    try client.send([1])
                    _ = try client.receive(exactly: 1)
                }
            }
            #expect(span >= .milliseconds(240))
            #expect(try await call("DELETE", path).json?.object?["down"]?.object?["delay_ms"] == .integer(0))
            for bad in [
                "{}", #"{"profile":"edg"}"#, #"{"profile":"edge","timeline":"subway"}"#, #"{"profile":"./x.yaml"}"#,
                #"{"timeline":"0s: /etc/passwd"}"#, #"{"netem":{"down":"delay"}}"#, #"{"conditions":{"down":7}}"#,
                #"{"conditions":{"down":{"trace":"/etc/passwd"},"up":{}}}"#, #"{"conditions":null}"#, "[]",
            ] {
                let answer = try await call("PUT", path, bad)
                #expect(answer.status == 400 && answer.error != nil, "\(bad): \(answer.body)")
                #expect(!answer.body.contains("root:"))
            }
            #expect(try await call("PUT", "/slowlane/v1/proxies/none/link", #"{"profile":"edge"}"#).status == 404)
        }
    }

    @Test func connectionsAreListedAndCut() async throws {
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
            #expect(list.allSatisfy { $0.object?["bytes"] == .object(["up": .integer(2), "down": .integer(2)]) })
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

    @Test func seedsAreShownAndSet() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy(to: 1, #","seed":12"#)
            let path = "/slowlane/v1/proxies/p/seed"
            #expect(try await call("GET", path).body == #"{"seed":12}"#)
            #expect(try await call("PUT", path, #"{"seed":34}"#).body == #"{"seed":34}"#)
            for bad in ["{}", #"{"seed":-1}"#, #"{"seed":1.5}"#, #"{"seed":"1"}"#] {
                #expect(try await call("PUT", path, bad).status == 400)
            }
            let profiles = try await call("GET", "/slowlane/v1/profiles").json
            #expect(profiles?.object?["profiles"] != nil)
            #expect(try await call("GET", "/slowlane/v1/version").json?.object?["version"] == .text("test"))
        }
    }

    /// Which of twenty connections one after the other get no answer, because of a toxic that meets half of them.
    private func cut(seed: UInt64) async throws -> [Bool] {
        let upstream = try Upstream.echo()
        var cut: [Bool] = []
        try await withServer(seed: seed) { (call, _) async throws in
            let port = try await call.proxy(to: upstream.port)
            _ = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"limit_data","toxicity":0.5,"attributes":{"bytes":0}}"#)
            cut = try await blocking {
                try (0..<20).map { _ in
                    let client = try TestSocket.connect(port: port)
                    try client.send([1])
                    return try client.receive(exactly: 1).isEmpty
                }
            }
        }
        return cut
    }

    @Test func theSameSeedMakesTheSameConnectionsToxic() async throws {
        let first = try await cut(seed: 7)
        #expect(try await cut(seed: 7) == first && Set(first).count == 2)
        #expect(try await cut(seed: 8) != first)
    }

    // MARK: Safety

    @Test func foreignHostsAndPagesAreRefused() async throws {
        try await withServer(allowedHosts: ["ci-host"]) { (call, _) async throws in
            for host in ["localhost", "127.0.0.1:1", "127.8.8.8", "[::1]:8474", "ci-host:8474"] {
                #expect(try await call("GET", "/proxies", headers: ["Host: \(host)"]).status == 200, "\(host)")
            }
            for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
                #expect(try await call("GET", "/proxies", headers: ["Host: \(host)"]).status == 403, "\(host)")
            }
            for origin in ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1:\(call.port)"] {
                #expect(try await call("POST", "/reset", headers: ["Origin: \(origin)"]).status == 403, "\(origin)")
            }
            #expect(try await call("POST", "/reset", headers: ["Origin: http://127.0.0.1:\(call.port)"]).status == 204)
        }
    }

    @Test func theTokenIsWanted() async throws {
        try await withServer(token: "secret") { (call, _) async throws in
            let refused = try await call("GET", "/proxies")
            #expect(refused.status == 401 && refused.header("WWW-Authenticate") == "Bearer")
            #expect(try await call("GET", "/proxies", headers: ["Authorization: Bearer wrong!"]).status == 401)
            #expect(try await call("GET", "/proxies", headers: ["Authorization: Bearer secret"]).status == 200)
        }
    }

    /// Where text is compared by Unicode's rules each of these takes minutes.
    @Test func combiningMarksTakeLinearTime() async throws {
        try await withServer { (call, _) async throws in
            let marks = CombiningMarks.long
            let rest = #","listen":"127.0.0.1:0","upstream":"127.0.0.1:1""#
            _ = try await call.proxy("p", to: 1)
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try await call("POST", "/proxies", "{\"\(marks)\":1,\"\(marks)x\":2}").status == 400)
            #expect(try await call("POST", "/proxies", "{\"name\":\"\(marks)\"\(rest)}").status == 400)
            #expect(try await call("POST", "/proxies", "{\"\(marks)\":1,\"name\":\"q\"\(rest)}").status == 201)
            for type in ["\(marks)", "latency\",\"name\":\"\(marks)", "latency\",\"stream\":\"\(marks)"] {
                let toxic = try await call("POST", "/proxies/p/toxics", "{\"type\":\"\(type)\"}")
                #expect(toxic.status == 400)
            }
            for link in [
                "\"profile\":\"\(marks)\"", "\"timeline\":\"\(marks)\"", "\"timeline\":\"0s: \(marks)\"",
                "\"netem\":{\"up\":\"\(marks)\"}", "\"conditions\":{\"\(marks)\":1}",
                // As escapes of YAML, too.
                "\"timeline\":\"0s: \\\"\(String(repeating: "\\\\u0315\\\\u0300", count: 10_000))\\\"\"",
            ] {
                let answer = try await call("PUT", "/slowlane/v1/proxies/p/link", "{\(link)}")
                #expect(answer.status == 400, "\(link.prefix(20)): \(answer.body.prefix(100))")
            }
            #expect(try await call("GET", "/proxies/\(String(repeating: "%CC%95%CC%80", count: 600))").status == 414)
            #expect(try await call("GET", "/version").status == 200)
            #expect(clock.now - start < .seconds(60))
        }
    }

    @Test func proxiesAreToldApartByBytes() async throws {
        try await withServer { (call, _) async throws in
            _ = try await call.proxy("\u{E9}", to: 1)
            _ = try await call.proxy("e\u{301}", to: 2)
            #expect(try await call("GET", "/proxies/%C3%A9").json?.object?["upstream"] == "127.0.0.1:1")
            #expect(try await call("GET", "/proxies/e%CC%81").json?.object?["upstream"] == "127.0.0.1:2")
            let long = String(repeating: "n", count: 1025)
            let answer = try await call(
                "POST", "/proxies", #"{"name":"\#(long)","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}"#)
            #expect(answer.status == 400 && answer.error?.contains("longer than 1024 bytes") == true)
        }
    }

    @Test func limitsAreToldByName() async throws {
        var limits = ServerLimits()
        limits.proxiesMax = 2
        limits.toxicsMax = 1
        limits.bodyBytesMax = 1000
        limits.bodyWindowSeconds = 0.2
        try await withServer(limits: limits) { (call, _) async throws in
            _ = try await call.proxy("a", to: 1)
            _ = try await call.proxy("b", to: 1)
            let third = try await call("POST", "/proxies", #"{"name":"c","listen":"127.0.0.1:0","upstream":"x:1"}"#)
            #expect(third.status == 400 && third.error?.contains("--max-proxies") == true)
            _ = try await call("POST", "/proxies/a/toxics", #"{"type":"noop"}"#)
            let second = try await call("POST", "/proxies/a/toxics", #"{"type":"latency"}"#)
            #expect(second.status == 400 && second.error?.contains("--max-toxics") == true)
            let large = try await call("POST", "/proxies", String(repeating: " ", count: 2000))
            #expect(large.status == 413 && large.error?.contains("--max-body") == true)
            let slow = try await call.raw(
                "POST /proxies HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{")
            #expect(slow.status == 408)
        }
    }
}
