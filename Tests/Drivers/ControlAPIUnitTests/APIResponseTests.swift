import Foundation
import HTTPTypes
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// Toxiproxy's contract where it needs no sockets.
@Suite(.timeLimit(.minutes(20))) struct APIResponseTests {
    let call = APICall()

    // MARK: Routes

    @Test func browsersAreRefused() async throws {
        let response = try await call("GET", "/proxies", userAgent: "Mozilla/5.0 (X11)")
        #expect(response.status == .forbidden && response.body == "User agent not allowed\n")
        for agent in ["mozilla/5.0", "curl Mozilla/5.0"] {
            #expect(try await call("GET", "/proxies", userAgent: agent).status == .ok)
        }
        #expect(try await call("GET", "/none", userAgent: "Mozilla/5.0").status == .notFound)
    }

    @Test func unknownPathsAndMethods() async throws {
        for path in ["/", "/proxies/", "/toxics", "/proxies/a/b", "/slowlane/v1/none", "/slowlane/v2/version"] {
            let response = try await call("GET", path)
            #expect(response.status == .notFound && response.body == "404 page not found\n", "\(path)")
            #expect(!response.isRouted)
        }
        for (method, path) in [
            ("PUT", "/proxies"), ("DELETE", "/proxies"), ("HEAD", "/version"), ("OPTIONS", "/proxies"),
            ("GET", "/populate"), ("GET", "/reset"), ("PUT", "/proxies/a"), ("DELETE", "/proxies/a/toxics"),
            ("POST", "/slowlane/v1/proxies/a/link"), ("DELETE", "/slowlane/v1/proxies/a/seed"),
        ] {
            let response = try await call(method, path)
            #expect(response.status == .methodNotAllowed && response.body.isEmpty, "\(method) \(path)")
        }
        let moved = try await call("GET", "//proxies/./x/..")
        #expect(moved.status == .movedPermanently && moved.location == "/proxies")
        let long = "/proxies/" + String(repeating: "%CC%95", count: 1200)
        #expect(try await call("GET", long).status == .uriTooLong)
        #expect(try await call("GET", "/proxies/%FF").status == .badRequest)
    }

    @Test func theVersionIsNumbersAndDots() async throws {
        let response = try await call("GET", "/version")
        #expect(response.body == "{\"version\": \"2.12.0\"}\n")
        #expect(response.type == "application/json;charset=utf-8")
        #expect(try await call("GET", "/slowlane/v1/version").object?["version"] == .text("test"))
    }

    // MARK: JSON

    @Test func fieldNamesMatchInAnyLetterCase() async throws {
        let proxy = try await call(
            "POST", "/proxies", #"{"Name":"x","LISTEN":"127.0.0.1:0","Upstream":"127.0.0.1:1","ENABLED":false}"#)
        #expect(proxy.status == .created && proxy.warnings.isEmpty)
        let toxic = try await call(
            "POST", "/proxies/x/toxics",
            #"{"Type":"latency","Stream":"UpStream","Toxicity":0.5,"Attributes":{"Latency":7,"JITTER":2}}"#)
        #expect(toxic.status == .ok && toxic.warnings.isEmpty)
        #expect(
            toxic.body
                == #"{"attributes":{"latency":7,"jitter":2},"name":"latency_UpStream","type":"latency","stream":"UpStream","toxicity":0.5}"#
        )
    }

    @Test func nullMeansAbsentAndIntegersAreRequired() async throws {
        try await call.proxy()
        let toxic = try await call(
            "POST", "/proxies/p/toxics",
            #"{"type":"latency","name":null,"stream":null,"toxicity":null,"attributes":null}"#)
        #expect(toxic.status == .ok && toxic.object?["name"] == .text("latency_downstream"))
        for bad in ["5.5", "\"5\"", "true", "[]", "99999999999999999999"] {
            let response = try await call(
                "PATCH", "/proxies/p/toxics/latency_downstream", #"{"attributes":{"jitter":3,"latency":\#(bad)}}"#)
            #expect(response.status == .badRequest, "\(bad)")
            #expect(response.error?.hasPrefix("bad request body: ") == true, "\(bad)")
        }
        // A refused request changes nothing.
        let after = try await call("GET", "/proxies/p/toxics/latency_downstream")
        #expect(after.object?["attributes"] == .object(["latency": .integer(0), "jitter": .integer(0)]))
    }

    @Test func toxicityIsA32BitFloatInShortestForm() async throws {
        try await call.proxy()
        for (given, shown) in [
            ("0.1", "0.1"), ("1.0", "1"), ("0.33333333333", "0.33333334"), ("7", "7"), ("-1", "-1"),
        ] {
            let response = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"noop","name":"t\#(given)","toxicity":\#(given)}"#)
            #expect(response.status == .ok && response.body.hasSuffix("\"toxicity\":\(shown)}"), "\(response.body)")
        }
        let tooLarge = try await call("POST", "/proxies/p/toxics", #"{"type":"noop","name":"t","toxicity":1e300}"#)
        #expect(tooLarge.status == .badRequest)
    }

    @Test func proxiesAreSortedByName() async throws {
        for name in ["mysql", "a", "zed", "Redis", "b c"] { try await call.proxy(name) }
        let body = try await call("GET", "/proxies").body
        let positions = ["Redis", "a", "b c", "mysql", "zed"].compactMap { body.range(of: "\"\($0)\":{")?.lowerBound }
        #expect(positions.count == 5 && positions == positions.sorted())
    }

    // MARK: Errors

    @Test func errorsHaveTheTextsOfTheOriginal() async throws {
        try await call.proxy()
        _ = try await call("POST", "/proxies/p/toxics", #"{"type":"noop","stream":"upstream"}"#)
        func expect(
            _ status: Int, _ text: String, _ method: String, _ path: String, _ body: String = "",
            _ location: SourceLocation = #_sourceLocation
        ) async throws {
            let response = try await call(method, path, body)
            #expect(response.status.code == status, "\(response.body)", sourceLocation: location)
            #expect(response.error == text, sourceLocation: location)
            #expect(response.body.hasSuffix("\n"), sourceLocation: location)
        }
        try await expect(400, "missing required field: name", "POST", "/proxies", "{}")
        try await expect(400, "missing required field: name", "POST", "/proxies", #"{"name":"","upstream":"b"}"#)
        try await expect(400, "missing required field: upstream", "POST", "/proxies", #"{"name":"q"}"#)
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
        // Names are unique over both streams.
        try await expect(
            409, "toxic already exists", "POST", "/proxies/p/toxics",
            #"{"type":"latency","name":"noop_upstream","attributes":{"latency":"x"}}"#)
        for body in ["", "{", "[]", "7", #"{"name":7}"#, #"{"name":"n","upstream":"u","enabled":"yes"}"#] {
            let response = try await call("POST", "/proxies", body)
            #expect(response.status == .badRequest && response.error?.hasPrefix("bad request body: ") == true)
        }
    }

    @Test func errorsOfPopulateNameTheEntry() async throws {
        for (body, text) in [
            (#"[{"name":"q","upstream":"b:1"},{"upstream":"b:1"}]"#, "missing required field: name at proxy 2"),
            (#"[{"name":"q"}]"#, "missing required field: upstream at proxy 1"),
        ] {
            let response = try await call("POST", "/populate", body)
            #expect(response.status == .badRequest && response.error == text)
            #expect(response.object?["proxies"] == .array([]))
        }
        #expect(try await call("GET", "/proxies").body == "{}")
        let notAnArray = try await call("POST", "/populate", "{}")
        #expect(notAnArray.status == .badRequest && notAnArray.object?["proxies"] == .array([]))
    }

    @Test func limitsHaveTheNamesOfTheirFlags() async throws {
        var limits = ServerLimits()
        limits.proxiesMax = 2
        limits.toxicsMax = 1
        let call = APICall(limits: limits)
        try await call.proxy("a")
        try await call.proxy("b")
        let third = try await call("POST", "/proxies", #"{"name":"c","upstream":"x:1","enabled":false}"#)
        #expect(third.status == .badRequest && third.error?.contains("--max-proxies") == true)
        _ = try await call("POST", "/proxies/a/toxics", #"{"type":"noop"}"#)
        let second = try await call("POST", "/proxies/a/toxics", #"{"type":"latency"}"#)
        #expect(second.status == .badRequest && second.error?.contains("--max-toxics") == true)
    }

    // MARK: Proxies

    @Test(arguments: ["a b", "50%", "host:8080", "ä→é", "a.b"]) func anyNameIsValid(_ name: String) async throws {
        try await call.proxy(name)
        let path = "/proxies/" + (name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name)
        #expect(try await call("GET", path).object?["name"] == .text(name))
        #expect(try await call("DELETE", path).status == .noContent)
        #expect(try await call("GET", path).status == .notFound)
    }

    @Test func namesAreComparedByBytes() async throws {
        try await call.proxy("\u{E9}", #","seed":1"#)
        try await call.proxy("e\u{301}", #","seed":2"#)
        #expect(try await call("GET", "/slowlane/v1/proxies/%C3%A9/seed").object?["seed"] == .integer(1))
        #expect(try await call("GET", "/slowlane/v1/proxies/e%CC%81/seed").object?["seed"] == .integer(2))
        let long = String(repeating: "n", count: 1025)
        let response = try await call("POST", "/proxies", #"{"name":"\#(long)","upstream":"127.0.0.1:1"}"#)
        #expect(response.status == .badRequest && response.error?.contains("longer than 1024 bytes") == true)
    }

    @Test func aDisabledProxyShowsItsSettingsAsGiven() async throws {
        let response = try await call(
            "POST", "/proxies",
            #"{"name":"d","listen":"localhost:1","upstream":"x y z","enabled":false,"toxics":null}"#)
        #expect(
            response.body
                == #"{"name":"d","listen":"localhost:1","upstream":"x y z","enabled":false,"toxics":[]}"#)
    }

    @Test func populateCreatesReplacesAndKeeps() async throws {
        for name in ["kept", "moved"] {
            try await call.proxy(name)
            _ = try await call("POST", "/proxies/\(name)/toxics", #"{"type":"noop"}"#)
        }
        let response = try await call(
            "POST", "/populate",
            """
            [{"name":"kept","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":false},
             {"name":"moved","listen":"127.0.0.1:0","upstream":"127.0.0.1:2","enabled":false},
             {"name":"new","listen":"127.0.0.1:0","upstream":"127.0.0.1:3","enabled":false,
              "toxics":[{"type":"latency","attributes":{"latency":5}}],"link":{"profile":"edge"}}]
            """)
        #expect(response.status == .created && response.warnings.isEmpty)
        guard case .array(let proxies)? = response.object?["proxies"] else {
            Issue.record("\(response.body)")
            return
        }
        #expect(proxies.map { $0.object?["name"] } == [.text("kept"), .text("moved"), .text("new")])
        #expect(proxies[0].object?["toxics"] != .array([]))
        #expect(proxies[1].object?["toxics"] == .array([]) && proxies[1].object?["upstream"] == .text("127.0.0.1:2"))
        #expect(proxies[2].object?["toxics"] != .array([]))
        #expect(try await call("GET", "/slowlane/v1/proxies/new/link").object?["profile"] == .text("edge"))
        #expect(try await call("POST", "/populate", "[]").status == .created)
    }

    // MARK: Toxics

    @Test func toxicsAreListedUpstreamFirstThenByAge() async throws {
        try await call.proxy()
        for (name, stream) in [("d1", "downstream"), ("u1", "upstream"), ("d2", "downstream"), ("u2", "upstream")] {
            let response = try await call(
                "POST", "/proxies/p/toxics", #"{"type":"noop","name":"\#(name)","stream":"\#(stream)"}"#)
            #expect(response.status == .ok)
        }
        for path in ["/proxies/p/toxics", "/proxies/p"] {
            let json = try #require(try await call("GET", path).json)
            guard case .array(let toxics) = json.object?["toxics"] ?? json else {
                Issue.record("\(json)")
                continue
            }
            #expect(toxics.map { $0.object?["name"] } == ["u1", "u2", "d1", "d2"].map { .text($0) })
        }
    }

    @Test(arguments: [
        ("latency", #"{"latency":0,"jitter":0}"#), ("bandwidth", #"{"rate":0}"#), ("slow_close", #"{"delay":0}"#),
        ("timeout", #"{"timeout":0}"#), ("reset_peer", #"{"timeout":0}"#),
        ("slicer", #"{"average_size":0,"size_variation":0,"delay":0}"#), ("limit_data", #"{"bytes":0}"#),
        ("packet_loss", #"{"loss_rate":0,"correlation":0}"#), ("noop", "{}"),
    ]) func everyTypeHasItsAttributes(_ type: String, _ attributes: String) async throws {
        try await call.proxy()
        let added = try await call("POST", "/proxies/p/toxics", #"{"type":"\#(type)"}"#)
        let expected =
            #"{"attributes":\#(attributes),"name":"\#(type)_downstream","type":"\#(type)","stream":"downstream","toxicity":1}"#
        #expect(added.status == .ok && added.body == expected)
        #expect(try await call("GET", "/proxies/p/toxics/\(type)_downstream").body == expected)
        for body in ["{}", #"{"attributes":null}"#, #"{"name":"x","type":"x","stream":"x"}"#] {
            #expect(try await call("PATCH", "/proxies/p/toxics/\(type)_downstream", body).body == expected)
        }
        let removed = try await call("DELETE", "/proxies/p/toxics/\(type)_downstream")
        #expect(removed.status == .noContent && removed.body.isEmpty)
        #expect(try await call("GET", "/proxies/p/toxics").body == "[]")
    }

    @Test func anUpdateMergesAttributes() async throws {
        try await call.proxy()
        _ = try await call("POST", "/proxies/p/toxics", #"{"type":"latency","attributes":{"latency":100,"jitter":5}}"#)
        for method in ["PATCH", "POST"] {
            let response = try await call(
                method, "/proxies/p/toxics/latency_downstream", #"{"attributes":{"latency":300},"toxicity":0.5}"#)
            #expect(response.status == .ok)
            #expect(response.object?["attributes"] == .object(["latency": .integer(300), "jitter": .integer(5)]))
            #expect(response.object?["toxicity"] == .number(0.5))
        }
        let loss = try await call(
            "POST", "/proxies/p/toxics", #"{"type":"packet_loss","attributes":{"loss_rate":0.25}}"#)
        #expect(loss.object?["attributes"] == .object(["loss_rate": .number(0.25), "correlation": .integer(0)]))
    }

    // MARK: Slowlane's routes

    @Test func seedsAreShownAndSet() async throws {
        try await call.proxy("p", #","seed":12"#)
        let path = "/slowlane/v1/proxies/p/seed"
        #expect(try await call("GET", path).body == #"{"seed":12}"#)
        #expect(try await call("PUT", path, #"{"seed":34}"#).body == #"{"seed":34}"#)
        for bad in ["{}", #"{"seed":-1}"#, #"{"seed":1.5}"#, #"{"seed":"1"}"#] {
            #expect(try await call("PUT", path, bad).status == .badRequest)
        }
        #expect(try await call("GET", "/slowlane/v1/profiles").object?["profiles"] != nil)
    }

    @Test func keysHaveUnits() async throws {
        try await call.proxy("p", #","seed":12,"link":{"profile":"edge"}"#)
        let link =
            #"{"profile":"edge","timeline":null,"start":null,"connection_policy":"open","down":{"rate_bps":240000,"delay_ms":400,"loss_percent":0,"queue":"50 packets"},"up":{"rate_bps":200000,"delay_ms":440,"loss_percent":0,"queue":"50 packets"},"dns_delay_ms":0,"reset_at":null}"#
        #expect(try await call("GET", "/slowlane/v1/proxies/p/link").body == link)
        #expect(
            try await call("GET", "/slowlane/v1/proxies/p").body
                == #"{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":false,"seed":12,"link":\#(link),"connections_open":0,"connections_accepted":0,"dials_failed":0,"sent_bytes":{"up":0,"down":0},"held_bytes":0,"queue_packets":{"up":0,"down":0},"timeline":null,"outage":{"up":false,"down":false},"faults":0,"faults_fired":0}"#
        )
    }

    // MARK: Hostile input

    /// With comparisons by Unicode's rules each of these requests takes minutes, so that the test reaches its time limit;
    /// without, all of them take a second of CPU time.
    @Test func combiningMarksTakeLinearTime() async throws {
        let marks = CombiningMarks.long
        let rest = #","upstream":"127.0.0.1:1","enabled":false"#
        try await call.proxy()
        #expect(try await call("POST", "/proxies", "{\"\(marks)\":1,\"\(marks)x\":2}").status == .badRequest)
        #expect(try await call("POST", "/proxies", "{\"name\":\"\(marks)\"\(rest)}").status == .badRequest)
        #expect(try await call("POST", "/proxies", "{\"\(marks)\":1,\"name\":\"q\"\(rest)}").status == .created)
        for type in ["\(marks)", "latency\",\"name\":\"\(marks)", "latency\",\"stream\":\"\(marks)"] {
            #expect(try await call("POST", "/proxies/p/toxics", "{\"type\":\"\(type)\"}").status == .badRequest)
            let proxy = "{\"name\":\"q\",\"upstream\":\"x:1\",\"toxics\":[{\"type\":\"\(type)\"}]}"
            #expect(try await call("POST", "/proxies", proxy).status == .badRequest)
            #expect(try await call("POST", "/populate", "[\(proxy)]").status == .badRequest)
        }
        #expect(
            try await call("POST", "/proxies", "{\"name\":\"q\",\"upstream\":\"\(marks)\"}").status == .badRequest)
        #expect(try await call("PATCH", "/proxies/p", "{\"upstream\":\"\(marks)\"}").status == .badRequest)
        let attributes = "{\"type\":\"latency\",\"attributes\":{\"\(marks)\":1}}"
        #expect(try await call("POST", "/proxies/p/toxics", attributes).status == .ok)
        for link in [
            "\"profile\":\"\(marks)\"", "\"timeline\":\"\(marks)\"", "\"timeline\":\"0s: \(marks)\"",
            "\"netem\":{\"up\":\"\(marks)\"}", "\"conditions\":{\"\(marks)\":1}", "\"\(marks)\":1",
            // The same as escapes of YAML.
            "\"timeline\":\"0s: \\\"\(String(repeating: "\\\\u0315\\\\u0300", count: 10_000))\\\"\"",
        ] {
            let response = try await call("PUT", "/slowlane/v1/proxies/p/link", "{\(link)}")
            #expect(response.status == .badRequest, "\(link.utf8.count) bytes")
        }
        #expect(try await call("GET", "/version").status == .ok)
    }
}
