import Determinism
import ForwardProxy
import HTTPTypes
import Impairment
import LinkModel
import NIOPosix
import TestSupport
import Testing
import Wire

@testable import ControlAPI
@testable import Proxy

/// The OpenAPI document against the responses that it describes.
@Suite(.timeLimit(.minutes(20))) struct OpenAPIDocumentTests {
    private let call = APICall()

    @Test(arguments: SlowlaneRoute.allCases) func eachMethodOfARouteHasAnOperation(_ route: SlowlaneRoute) {
        #expect(Set(route.operations.keys) == Set(route.methods))
    }

    /// Responses have only declared members, with their types, and all that are required; and each declared member is
    /// in some response.
    @Test func responsesHaveTheirSchemas() async throws {
        var check = SchemaCheck(document: OpenAPIDocument.value)
        try await createProxies()
        for route in SlowlaneRoute.allCases where route.methods.contains(.get) && ![.metrics, .events].contains(route) {
            let operation = check.document["paths"]["/\(route.template)"]["get"]
            var statuses: Set<Int> = []
            for proxy in route.template.contains("{proxy}")
                ? ["plain", "timed", "forward", "secure", "datagrams"] : [""]
            {
                let path = route.template.replacing("{proxy}", with: proxy).replacing("{fault}", with: "fault_1")
                let response = try await call("GET", "/slowlane/v1/\(path)")
                let media = check.document.resolved(operation["responses"]["\(response.status.code)"])["content"]
                check.expect(try #require(response.json), media["application/json"]["schema"], "GET \(path)")
                statuses.insert(response.status.code)
            }
            #expect(statuses.contains(200), "\(route)")
            check.declare(operation["responses"]["200"]["content"]["application/json"]["schema"], "GET \(route)")
        }
        try checkWriters(&check)
        await call.api.close()
        #expect(check.problems.isEmpty, "\(check.problems.joined(separator: "\n"))")
        let unseen = check.declared.subtracting(check.seen).filter { name in
            Proxy.canForwardDatagrams || !["Proxy.udp", "Proxy.protocol"].contains { name.hasPrefix($0) }
        }
        #expect(unseen.isEmpty, "\(unseen.sorted())")
        #expect(check.seen.count > 100)
    }

    /// Creates proxies of all kinds, and records them.
    private func createProxies() async throws {
        try await call.proxy("plain", #","link":{"conditions":{"down":{"delay":"5 ms"},"up":{}}}"#)
        let running = #""listen":"127.0.0.1:0","upstream":"127.0.0.1:1""#
        var definitions = [
            #"{"name":"timed",\#(running),"link":{"timeline":"subway","start":"2026-03-01T12:00:00Z"}}"#,
            #"{"name":"secure","listen":"127.0.0.1:0","upstream":"https://127.0.0.1:1"}"#,
            #"{"name":"forward","forward":true,"intercept":["api.test"],"allow":["127.0.0.0/8"],"user":"a","#
                + #""password":"b","map":["a.test=127.0.0.1:1"],"to":["a.test=wifi","b.test=dns-failure"]}"#,
        ]
        if Proxy.canForwardDatagrams {
            definitions.append(#"{"name":"datagrams",\#(running),"protocol":"tcp,udp"}"#)
        } else {
            definitions.append(#"{"name":"datagrams",\#(running)}"#)
        }
        for definition in definitions {
            let created = try await call("POST", "/proxies", definition)
            #expect(created.status == .created, "\(created.body)")
        }
        #expect(try await call("POST", "/slowlane/v1/recording", #"{"state":"on"}"#).status == .ok)
        let fault = try await call(
            "POST", "/slowlane/v1/proxies/plain/faults", #"{"rule":"GET * before-response reset"}"#)
        #expect(fault.status == .created, "\(fault.body)")
    }

    /// Checks writers of what needs traffic or files.
    private func checkWriters(_ check: inout SchemaCheck) throws {
        let connection = ConnectionStatus(
            id: ConnectionID(carrier: .datagrams(FlowID(index: 0, generation: 0))), number: 3, client: nil,
            serverName: "api.test", age: .milliseconds(5),
            bytesRead: PerDirection(up: 1, down: 2), bytesHeld: PerDirection(up: 0, down: 0))
        let host = HostTraffic(destination: Destination(host: "api.test", port: 443), connections: 1)
        let half = try #require(Probability(partsPerMillion: 500_000))
        let second = Nanoseconds.seconds(1)
        var conditions = Conditions.clear
        conditions.datagrams = DatagramConditions(policy: .refuse, mtu: 1400, idle: second, rebind: second)
        conditions.up = DirectionConditions(
            rate: Rate(bitsPerSecond: 1_000_000), delay: second, loss: half, jitter: Jitter(span: second),
            bursts: .timed(good: second, bad: second, lossInBad: half, lossInGood: .zero),
            lostPackets: PacketNumbers([3...3]),
            duplication: half, reordering: half)
        conditions.down = DirectionConditions(
            trace: try DeliveryTrace(milliseconds: [1, 5]),
            bursts: .gilbertElliott(becomesBad: half, becomesGood: half, lossInBad: half, lossInGood: .zero))
        let view = LinkView(setting: .passThrough, conditions: conditions, resetAt: 1_000_000)
        let texts: [(String, JSONSchema)] = [
            (API.connections.write([connection]), API.connections.schema),
            (API.hosts.json([host, HostTraffic(destination: nil)]), API.hosts.schema),
            (LinkView.shape.json(view), LinkView.shape.schema),
        ]
        for (text, schema) in texts {
            check.expect(try #require(JSONText.parse(text.utf8)), schema.value, "GET connections")
        }
    }

    /// The check of the other tests finds what is wrong.
    @Test(arguments: [
        ("Outage", #"{"up":true}"#, "Outage: 'down' is missing"),
        ("Outage", #"{"up":true,"down":1}"#, "Outage.down: 1 is not one of boolean"),
        ("Outage", #"{"up":true,"down":false,"left":true}"#, "Outage: 'left' is not declared"),
        ("Outage", "null", "Outage: null is not one of object"),
        ("Seed", #"{"seed":-1}"#, "Seed.seed: -1 is out of range"),
        ("Seed", #"{"seed":1.5}"#, "Seed.seed: 1.5 is not one of integer"),
        ("Timeline", #"{"timeline":"a","state":"lost"}"#, "Timeline.state: \"lost\" is none of the words"),
        ("Hosts", #"{"hosts":[{"host":7}]}"#, "Hosts.hosts[].host: 7 is not one of string, null"),
    ]) func theCheckFindsWhatIsWrong(_ component: String, _ text: String, _ problem: String) throws {
        var check = SchemaCheck(document: OpenAPIDocument.value)
        let reference: JSONValue = ["$ref": .text("#/components/schemas/\(component)")]
        check.expect(try #require(JSONText.parse(text.utf8)), reference, "")
        #expect(check.problems.contains(problem), "\(check.problems)")
    }
}

/// The comparison of values with schemas of a document. Names of members begin with that of the component.
private struct SchemaCheck {
    let document: JSONValue
    private(set) var problems: [String] = []
    /// The names of members in values.
    private(set) var seen: Set<String> = []
    /// The names of members in schemas.
    private(set) var declared: Set<String> = []

    init(document: JSONValue) { self.document = document }

    /// Compares a value with a schema.
    mutating func expect(_ value: JSONValue, _ schema: JSONValue, _ place: String) {
        if let target = schema["$ref"].text {
            return expect(value, document.resolved(schema), String(target.split(separator: "/").last ?? ""))
        }
        let alternatives = schema["anyOf"].array
        if !alternatives.isEmpty {
            let results = alternatives.map { alternative in
                var check = self
                check.expect(value, alternative, place)
                return check
            }
            self = results.first { $0.problems.count == problems.count } ?? results[0]
            return
        }
        guard schema.object != nil else { return problems.append("\(place): no schema") }
        let types = (schema["type"].array + [schema["type"]]).compactMap(\.text)
        guard types.contains(where: { Self.hasType($0, value) }) else {
            return problems.append("\(place): \(value.json) is not one of \(types.joined(separator: ", "))")
        }
        if schema["enum"] != .null, !schema["enum"].array.contains(value) {
            problems.append("\(place): \(value.json) is none of the words")
        }
        if let number = value.number,
            number < schema["minimum"].number ?? number || number > schema["maximum"].number ?? number
        {
            problems.append("\(place): \(value.json) is out of range")
        }
        for element in value.array { expect(element, schema["items"], place + "[]") }
        for name in schema["required"].array.compactMap(\.text) where value.object?[name] == nil && value != .null {
            problems.append("\(place): '\(name)' is missing")
        }
        guard let members = value.object, let properties = schema["properties"].object else { return }
        for (name, member) in members {
            seen.insert("\(place).\(name)")
            guard let property = properties[name] else {
                problems.append("\(place): '\(name)' is not declared")
                continue
            }
            expect(member, property, "\(place).\(name)")
        }
    }

    /// Collects the names of members of a schema.
    mutating func declare(_ schema: JSONValue, _ place: String) {
        if let target = schema["$ref"].text {
            return declare(document.resolved(schema), String(target.split(separator: "/").last ?? ""))
        }
        for alternative in schema["anyOf"].array { declare(alternative, place) }
        if schema["items"] != .null { declare(schema["items"], place + "[]") }
        for (name, property) in schema["properties"].object ?? [:] {
            declared.insert("\(place).\(name)")
            declare(property, "\(place).\(name)")
        }
    }

    private static func hasType(_ type: String, _ value: JSONValue) -> Bool {
        switch value {
        case .null: type == "null"
        case .bool: type == "boolean"
        case .integer: type == "integer" || type == "number"
        case .number: type == "number"
        case .text: type == "string"
        case .array: type == "array"
        case .object: type == "object"
        case .unrepresentable: false
        }
    }
}

extension JSONValue {
    /// Returns the target of a reference of this document, or the value itself if it is none.
    fileprivate func resolved(_ value: JSONValue) -> JSONValue {
        guard let target = value["$ref"].text else { return value }
        return target.split(separator: "/").dropFirst().reduce(self) { $0[String($1)] }
    }
}
