import HTTPTypes
import NIOPosix
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// Forward proxies in the API, without sockets: their proxies are disabled.
@Suite(.timeLimit(.minutes(20))) struct ForwardAPITests {
    let call = APICall()
    let path = "/slowlane/v1/proxies/f"

    /// Creates a disabled forward proxy.
    private func create(_ more: String = "") async throws -> API.Response {
        try await call("POST", "/proxies", #"{"name":"f","forward":true,"enabled":false\#(more)}"#)
    }

    @Test func aForwardProxyHasToxiproxysFieldsAndOneMore() async throws {
        let expected =
            #"{"name":"f","listen":"127.0.0.1:0","upstream":"any server","enabled":false,"toxics":[],"forward":true}"#
        let created = try await create()
        #expect(created.status == .created && created.warnings.isEmpty)
        #expect(created.body == expected)
        #expect(try await call("GET", "/proxies/f").body == expected)
        try await call.proxy()
        #expect(
            try await call("GET", "/proxies/p").body
                == #"{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":false,"toxics":[]}"#)
        #expect(try await call("GET", "/slowlane/v1/proxies/p").object?["forward"] == nil)
        let status = try await call("GET", path).object
        #expect(status?["forward"] == .bool(true) && status?["credentials"] == .bool(false))
        #expect(status?["allow"] == .array([]))
    }

    @Test func aRuleHasTwoForms() async throws {
        _ = try await create(
            #","to":["*.CDN.test=WiFi","10.0.0.0/8=refuse",{"pattern":"a.test:443","action":"dns-failure"},"#
                + #"{"pattern":"b.test","link":{"profile":"3G"}},{"pattern":"*","link":{"netem":{"down":"delay 100ms"}}},"#
                + #"{"pattern":"c.test","link":{"conditions":{"down":{"rate":"1 Mbit/s"},"up":{}}}}],"#
                + #""map":["api.test=127.0.0.1:8000"]"#)
        let rules = try await call("GET", path + "/rules")
        #expect(
            rules.body
                == #"{"to":[{"pattern":"*.cdn.test","link":{"profile":"wifi"}},{"pattern":"10.0.0.0/8","action":"refuse"},"#
                + #"{"pattern":"a.test:443","action":"nxdomain"},{"pattern":"b.test","link":{"profile":"3g"}},"#
                + #"{"pattern":"*","link":{"netem":{"down":"delay 100ms"}}},"#
                + #"{"pattern":"c.test","link":{"conditions":{"down":{"rate":"1 Mbit/s"},"up":{}}}}],"#
                + #""map":["api.test=127.0.0.1:8000"]}"#)
        // The response is a request.
        let again = try await call("PUT", path + "/rules", rules.body)
        #expect(again.status == .ok && again.warnings.isEmpty && again.body == rules.body)
    }

    @Test func aListThatIsNotGivenRemains() async throws {
        _ = try await create(#","to":["a.test=wifi"],"map":["a.test=127.0.0.1"]"#)
        let changed = try await call("PUT", path + "/rules", #"{"to":["a.test=block","b.test=direct"]}"#)
        #expect(
            changed.body
                == #"{"to":[{"pattern":"a.test","action":"block"},{"pattern":"b.test","action":"direct"}],"map":["a.test=127.0.0.1"]}"#
        )
        #expect(try await call("PUT", path + "/rules", "{}").error == "missing required field: to or map")
        #expect(try await call("DELETE", path + "/rules").body == #"{"to":[],"map":[]}"#)
        #expect(try await call("POST", "/proxies/f", #"{"map":["b.test=127.0.0.2:1"]}"#).status == .ok)
        #expect(try await call("GET", path + "/rules").body == #"{"to":[],"map":["b.test=127.0.0.2:1"]}"#)
        #expect(try await call("GET", path + "/hosts").body == #"{"hosts":[]}"#)
    }

    @Test(arguments: [
        (#""to":7"#, "to is not an array"), (#""to":[7]"#, "to, entry 1: expected a string"),
        (#""to":["a.test=wifi","b.test"]"#, "to, entry 2: \"b.test\", column 1: '=' is missing"),
        (#""to":["a.test=wifi","A.test=3g"]"#, "to, entry 2: \"a.test=3g\", column 1: a rule of this pattern exists"),
        (#""to":["a.test=egde"]"#, "to, entry 1: unknown profile 'egde'; did you mean 'edge'"),
        (#""to":["a.test=./office.yaml"]"#, "to, entry 1: unknown profile './office.yaml'"),
        (#""to":["10.0.0.0/8=nxdomain"]"#, "an address is not looked up"),
        (#""to":[{"link":{"profile":"3g"}}]"#, "pattern"),
        (#""to":[{"pattern":"a.test"}]"#, "a rule has either an action or a link"),
        (#""to":[{"pattern":"a.test","action":"block","link":{"profile":"3g"}}]"#, "either an action or a link"),
        (#""to":[{"pattern":"a.test","action":"blok"}]"#, "the action 'blok' is none of direct, refuse, block"),
        (#""to":[{"pattern":"a.test=wifi","action":"block"}]"#, "the action"),
        (#""to":[{"pattern":"a.test=wifi","link":{"profile":"3g"}}]"#, "to, entry 1"),
        (#""to":[{"pattern":"a.test","link":{"timeline":"subway"}}]"#, "the link of a rule is constant"),
        (
            #""to":[{"pattern":"a.test","link":{"profile":"3g","reset_after_ms":5}}]"#,
            "the link of a rule has no reset_after_ms"
        ),
        (#""to":[{"pattern":"a.test","link":{}}]"#, "expected one of profile"),
        (#""map":["a.test"]"#, "map, entry 1: \"a.test\", column 1: '=' is missing"),
        (#""map":["a.test=127.0.0.1:0"]"#, "map, entry 1"), (#""map":{"a.test":"b.test"}"#, "map is not an array"),
        (#""allow":["a.test"]"#, "allow, entry 1: \"a.test\", column 1: not an address or a network"),
        (#""allow":["10.0.0.1:80"]"#, "not an address or a network"),
        (#""user":"ada""#, "give user and password"), (#""password":"x""#, "give user and password"),
        (#""user":"a:b","password":"x""#, "and the user no colon"),
        (#""upstream":"127.0.0.1:1""#, "give upstream or forward, not both"), (#""forward":1"#, "forward is not true"),
    ]) func anInvalidSettingIsRefused(_ setting: String, _ message: String) async throws {
        let isField = setting.hasPrefix(#""forward""#)
        let body = isField ? #"{"name":"f","enabled":false,\#(setting)}"# : ""
        let response = try await isField ? call("POST", "/proxies", body) : create("," + setting)
        #expect(response.status == .badRequest, "\(response.body)")
        #expect(response.error?.contains(message) == true, "\(response.body)")
        #expect(try await call("GET", "/proxies").body == "{}")
    }

    @Test func theKindOfAProxyDoesNotChange() async throws {
        _ = try await create()
        try await call.proxy()
        #expect(try await call("POST", "/proxies/f", #"{"forward":false}"#).status == .conflict)
        #expect(try await call("POST", "/proxies/p", #"{"forward":true}"#).status == .conflict)
        #expect(
            try await call("POST", "/proxies/f", #"{"upstream":"127.0.0.1:1"}"#).error?.contains("not both") == true)
        #expect(try await call("POST", "/proxies/p", #"{"to":["*=3g"]}"#).error?.contains(#"need "forward""#) == true)
        #expect(
            try await call("POST", "/proxies", #"{"name":"q","upstream":"127.0.0.1:1","allow":["10.0.0.0/8"]}"#).error?
                .contains(#"need "forward""#) == true)
        for (method, route) in [("GET", "rules"), ("PUT", "rules"), ("DELETE", "rules"), ("GET", "hosts")] {
            let response = try await call(method, "/slowlane/v1/proxies/p/" + route, #"{"to":[]}"#)
            #expect(response.status == .notFound, "\(method) \(route)")
            #expect(response.error?.contains("only a forward proxy") == true, "\(response.body)")
        }
        // A client of Toxiproxy sends back what it has read.
        let saved = try await call(
            "POST", "/proxies/f", #"{"name":"f","listen":"127.0.0.1:0","upstream":"any server","enabled":false}"#)
        #expect(saved.status == .ok && saved.warnings.isEmpty && saved.object?["forward"] == .bool(true))
    }

    @Test func credentialsAreNeverShown() async throws {
        let log = LogRecord()
        let call = APICall(logger: log.logger)
        let secret = #""user":"ada-lovelace","password":"analytical""#
        var texts: [String] = []
        for (method, path, body) in [
            ("POST", "/proxies", #"{"name":"f","forward":true,"enabled":false,\#(secret)}"#),
            ("POST", "/proxies", #"{"name":"f","forward":true,"enabled":false,\#(secret)}"#),
            ("POST", "/proxies", #"{"name":"g","enabled":false,\#(secret)}"#),
            ("POST", "/populate", #"[{"name":"f","forward":true,"enabled":false,\#(secret),"x":1}]"#),
            ("POST", "/proxies/f", "{\(secret),\"listen\":7}"), ("POST", "/proxies/f", "{\(secret)}"),
            ("POST", "/proxies/f", #"{"user":"ada-lovelace:","password":"analytical"}"#),
            ("GET", "/proxies", ""), ("GET", "/proxies/f", ""), ("GET", path, ""), ("GET", path + "/rules", ""),
            ("PUT", path + "/rules", #"{"to":[],\#(secret)}"#), ("GET", "/slowlane/v1/metrics", ""),
        ] {
            let response = try await call(method, path, body)
            texts += [response.body] + response.warnings
        }
        #expect(try await call("GET", path).object?["credentials"] == .bool(true))
        for text in texts + [log.text] {
            #expect(!text.contains("lovelace") && !text.contains("analytical"), "\(text)")
        }
        _ = try await call("POST", "/proxies/f", #"{"user":""}"#)
        #expect(try await call("GET", path).object?["credentials"] == .bool(false))
    }

    @Test func aProxyForOtherMachinesNeedsClients() async throws {
        for listen in ["0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80"] {
            let response = try await call("POST", "/proxies", #"{"name":"f","forward":true,"listen":"\#(listen)"}"#)
            #expect(response.status == .badRequest, "\(response.body)")
            #expect(response.error?.contains("would let every machine of the network use it") == true)
        }
        // A disabled one is checked when it starts.
        _ = try await create(#","listen":"0.0.0.0:0""#)
        #expect(try await call("POST", "/proxies/f", #"{"enabled":true}"#).status == .badRequest)
        #expect(try await call("GET", "/proxies/f").object?["enabled"] == .bool(false))
    }

    @Test func theNumberOfRulesIsLimited() async throws {
        _ = try await create()
        func rules(_ count: Int) -> String {
            #"{"to":[\#((0..<count).map { #""h\#($0).test=block""# }.joined(separator: ","))]}"#
        }
        #expect(try await call("PUT", path + "/rules", rules(1000)).status == .ok)
        let refused = try await call("PUT", path + "/rules", rules(1001))
        #expect(refused.error == "bad request body: to has more than 1000 entries")
        let link = String(repeating: " ", count: 5000)
        let long = try await call(
            "PUT", path + "/rules", #"{"to":[{"pattern":"*","link":{"netem":{"down":"delay 1ms\#(link)"}}}]}"#)
        #expect(long.error?.contains("longer than") == true, "\(long.body)")
        #expect(try await call("GET", path + "/rules").object?["to"]?.array.count == 1000)
    }

    @Test func unknownFieldsAreReported() async throws {
        let created = try await create(#","too":[],"to":[{"pattern":"a.test","action":"block","port":1}]"#)
        #expect(
            created.warnings == [
                "unknown field 'too' of the proxy; did you mean 'to'?", "unknown field 'port' of the rule",
            ])
        let changed = try await call("PUT", path + "/rules", #"{"to":[],"maps":[]}"#)
        #expect(changed.warnings == ["unknown field 'maps' of the rules; did you mean 'map'?"])
    }

    @Test func aRuleImpairsAProxy() async throws {
        _ = try await create()
        let name = try #require(HTTPField.Name("Slowlane-Conditions"))
        for (rule, isImpaired) in [("a.test=direct", false), ("a.test=refuse", true), ("a.test=3g", true)] {
            let response = try await call("PUT", path + "/rules", #"{"to":["\#(rule)"]}"#)
            #expect((response.headers[name] == "f") == isImpaired, "\(rule)")
        }
        #expect(try await call("DELETE", path + "/rules").headers[name] == nil)
    }

    @Test func aConfigurationMayHaveForwardProxies() async throws {
        let file = #"[{"name":"f","forward":true,"enabled":false,"to":["*.cdn.test=wifi"],"link":{"profile":"3g"}}]"#
        let (proxies, problem) = await call.api.load(Array(file.utf8))
        #expect(problem == nil && proxies.map(\.upstream) == ["any server"])
        #expect(try await call("GET", path + "/link").object?["profile"] == .text("3g"))
        #expect(
            try await call("GET", path + "/rules").body
                == #"{"to":[{"pattern":"*.cdn.test","link":{"profile":"wifi"}}],"map":[]}"#)
        let broken = #"[{"name":"f","forward":true,"to":["*.cdn.test"]}]"#
        #expect(await call.api.load(Array(broken.utf8)).problem?.contains("to, entry 1") == true)
    }
}
