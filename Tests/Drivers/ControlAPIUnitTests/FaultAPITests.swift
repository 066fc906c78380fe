import HTTPTypes
import NIOPosix
import TestSupport
import Testing
import Wire

@testable import ControlAPI

/// Faults, outages and positions of timelines in Slowlane's API, of a disabled proxy.
@Suite(.timeLimit(.minutes(20))) struct FaultAPITests {
    let call = APICall()
    let path = "/slowlane/v1/proxies/p/faults"

    @Test(arguments: [
        (#"{"rule":"POST /api/* nth 3 before-response stall"}"#, "POST /api/* nth 3 before-response stall"),
        (
            #"{"request":"POST /api/*","nth":3,"point":"before-response","then":"stall"}"#,
            "POST /api/* nth 3 before-response stall"
        ),
        (#"{"point":"any","probability":0.05,"then":{"delay":"5s"}}"#, "any * probability 5% any delay 5s"),
        (
            #"{"point":"any","probability":"2.5 %","times":4,"then":{"throttle":200}}"#,
            "any * probability 2.5% times 4 any throttle 200"
        ),
        (
            #"{"request":"PUT","times":"unlimited","point":"before-request","then":{"respond":{"status":503,"headers":{"Retry-After":2,"X-A":"b c"},"body":"busy"}}}"#,
            #"PUT * times unlimited before-request respond 503 Retry-After: 2 X-A: "b c" body busy"#
        ),
        (
            #"{"request":"GET /x","point":"mid-response","bytes":7,"side":"client","then":"reset","nth":null}"#,
            "GET /x mid-response bytes 7 reset client"
        ),
        (#"{"POINT":"before-request","Then":"portal"}"#, "any * before-request portal"),
    ]) func aFaultHasTwoForms(_ body: String, _ rule: String) async throws {
        try await call.proxy()
        let added = try await call("POST", path, body)
        #expect(added.status == .created && added.warnings.isEmpty, "\(added.body)")
        #expect(added.object?["rule"] == .text(rule))
        #expect(added.body == #"{"name":"fault_1","rule":\#(JSONText.string(rule)),"matched":0,"applied":0,"fired":0}"#)
        #expect(try await call("GET", path + "/fault_1").body == added.body)
        #expect(
            try await call("GET", path).body
                == #"{"faults":[\#(added.body)],"connections_without_faults":0,"tls_connections":0,"tls_server_names":[]}"#
        )
        #expect(try await call("GET", "/slowlane/v1/proxies/p").object?["faults"] == .integer(1))
    }

    @Test func faultsHaveNames() async throws {
        try await call.proxy()
        let rule = #""rule":"any before-response reset""#
        #expect(try await call("POST", path, #"{"name":"lost answer",\#(rule)}"#).status == .created)
        #expect(try await call("POST", path, #"{"name":"lost answer",\#(rule)}"#).status == .conflict)
        #expect(try await call("POST", path, #"{"name":"fault_2",\#(rule)}"#).status == .created)
        #expect(try await call("POST", path, "{\(rule)}").object?["name"] == .text("fault_1"))
        #expect(try await call("POST", path, "{\(rule)}").object?["name"] == .text("fault_3"))
        #expect(try await call("DELETE", path + "/lost%20answer").status == .noContent)
        #expect(try await call("DELETE", path + "/lost%20answer").error == "fault not found")
        #expect(try await call("GET", path).object?["faults"]?.array.count == 3)
        #expect(try await call("DELETE", path).status == .noContent)
        #expect(try await call("GET", path).object?["faults"]?.array.isEmpty == true)
        #expect(try await call("DELETE", "/slowlane/v1/proxies/q/faults").error == "proxy not found")
    }

    @Test func resetRemovesFaultsAndEndsOutages() async throws {
        // A disabled proxy would start.
        let api = "/slowlane/v1/proxies/p"
        let upstream = try TestSocket.listen()
        #expect(
            try await call(
                "POST", "/proxies", #"{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:\#(upstream.port)"}"#
            ).status == .created)
        #expect(try await call("POST", path, #"{"rule":"any before-response reset"}"#).status == .created)
        #expect(try await call("PUT", api + "/outage").body == #"{"up":true,"down":true}"#)
        #expect(try await call("POST", "/reset").status == .noContent)
        #expect(try await call("GET", path).object?["faults"]?.array.isEmpty == true)
        #expect(try await call("GET", api + "/outage").body == #"{"up":false,"down":false}"#)
        await call.api.close()
    }

    @Test(arguments: [
        ("", "EOF"), ("{", "invalid JSON"), ("[]", "not an object"), ("{}", "missing required field: rule"),
        (#"{"rul":"x"}"#, "did you mean 'rule'?"), (#"{"rule":7}"#, "rule is not a string"),
        (
            #"{"rule":"POST befor-response reset"}"#,
            "rule: column 6: unknown word 'befor-response'; did you mean 'before-response'"
        ),
        (#"{"rule":"any before-response reset","nth":2}"#, "give either rule or nth"),
        (#"{"then":"reset"}"#, "missing required field: point"),
        (#"{"point":"before-response"}"#, "missing required field: rule"),
        (
            #"{"point":"befor-response","then":"reset"}"#,
            "point: column 1: unknown word 'befor-response'; did you mean 'before-response'"
        ),
        (#"{"point":"before-response","then":"reset","nth":0}"#, "nth must be at least 1"),
        (#"{"point":"before-response","then":"reset","nth":-9223372036854775808}"#, "nth must be at least 1"),
        (#"{"point":"before-response","then":"reset","nth":1.5}"#, "nth is not a whole number"),
        (#"{"point":"before-response","then":"reset","nth":2,"probability":0.5}"#, "either nth or probability"),
        (#"{"point":"before-response","then":"reset","probability":2}"#, "probability must be 0 to 1"),
        (#"{"point":"before-response","then":"reset","probability":0}"#, "never applies"),
        (#"{"point":"before-response","then":"reset","probability":[]}"#, "probability is not a number"),
        (#"{"point":"before-response","then":"reset","times":0}"#, "times is less than 1"),
        (#"{"point":"before-response","then":"reset","bytes":-1}"#, "bytes must be at least 0"),
        (#"{"point":"before-response","then":"reset","bytes":3}"#, "bytes applies to"),
        (#"{"point":"before-response","then":"reset","side":"clint"}"#, "did you mean 'client'?"),
        (#"{"point":"before-response","then":"kill"}"#, "a proxy cannot kill a client"),
        (#"{"point":"before-response","then":7}"#, "then is not an object"),
        (#"{"point":"before-response","then":{"delay":"5s","throttle":1}}"#, "then must be a text"),
        (#"{"point":"before-response","then":{"delay":5}}"#, "delay is not a string"),
        (#"{"point":"committed","then":"stall"}"#, "'committed' is now called 'before-response'"),
        (#"{"point":"before-response","then":{"hold":"5s"}}"#, "'hold' is now called 'delay'"),
        (#"{"point":"before-response","then":"stall","chance":0.5}"#, "'chance' is now called 'probability'"),
        (#"{"point":"before-response","then":{"delay":"-5s"}}"#, "then.delay: column"),
        (#"{"point":"before-response","then":{"throttle":0}}"#, "at least 1 byte per second"),
        (#"{"point":"before-response","then":{"respond":{}}}"#, "missing required field: then.respond.status"),
        (#"{"point":"before-response","then":{"respond":{"status":99}}}"#, "must be 200 to 599"),
        (#"{"point":"before-response","then":{"respond":{"status":9223372036854775807}}}"#, "must be 200 to 599"),
        (
            #"{"point":"before-response","then":{"respond":{"status":200,"headers":{"A\r\nB":"c"}}}}"#,
            "must not be sent"
        ),
        (#"{"point":"before-response","then":{"respond":{"status":200,"headers":{"A":[]}}}}"#, "is not a string"),
        (#"{"point":"before-response","then":{"respond":{"status":200,"headers":7}}}"#, "headers is not an object"),
        (#"{"point":"before-response","then":{"respond":{"status":200,"boddy":""}}}"#, "no field 'boddy'"),
        (#"{"point":"after-response","then":{"respond":{"status":200}}}"#, "respond is not possible at after-response"),
        (#"{"request":"get /x","point":"before-response","then":"reset"}"#, "request: column 1"),
    ]) func anInvalidFaultIsRefused(_ body: String, _ message: String) async throws {
        try await call.proxy()
        let response = try await call("POST", path, body)
        #expect(response.status == .badRequest, "\(response.body)")
        #expect(response.error?.contains(message) == true, "\(response.body)")
        #expect(try await call("GET", path).object?["faults"]?.array.isEmpty == true)
    }

    @Test func theNumberAndTheSizeOfFaultsAreLimited() async throws {
        try await call.proxy()
        var created = 0
        for number in 0..<10_000 {
            let response = try await call("POST", path, #"{"rule":"GET /\#(number) before-response reset"}"#)
            if response.status == .created {
                created += 1
            } else {
                #expect(response.error == "a proxy has at most 100 faults (--max-faults)")
                if number > 200 { break }
            }
        }
        #expect(created == 100)
        #expect(try await call("DELETE", path).status == .noContent)
        let body = String(repeating: "x", count: 600_000)
        #expect(
            try await call("POST", path, #"{"rule":"any before-response respond 200 body \#(body)"}"#).status
                == .created)
        #expect(
            try await call("POST", path, #"{"rule":"any before-response respond 200 body \#(body)"}"#).error
                == "the replies of a proxy's faults have at most 1048576 bytes in total")
        #expect(try await call("GET", path).body.utf8.count < 1000)
        let marks = try await call("POST", path, #"{"rule":"\#(CombiningMarks.long)"}"#)
        #expect(marks.status == .badRequest)
    }

    @Test func unknownFieldsAreReported() async throws {
        try await call.proxy()
        let response = try await call("POST", path, #"{"rule":"any before-response reset","nht":2}"#)
        #expect(response.status == .created)
        #expect(response.warnings == ["unknown field 'nht' of the fault; did you mean 'nth'?"])
    }

    // MARK: Outages and timelines

    @Test func anOutageHasDirections() async throws {
        try await call.proxy()
        let path = "/slowlane/v1/proxies/p/outage"
        #expect(try await call("GET", path).body == #"{"up":false,"down":false}"#)
        #expect(try await call("PUT", path, #"{"down":true}"#).body == #"{"up":false,"down":true}"#)
        #expect(try await call("PUT", path, "{}").body == #"{"up":true,"down":true}"#)
        #expect(try await call("PUT", path, #"{"up":1}"#).error == "bad request body: up is not true or false")
        #expect(try await call("DELETE", path).body == #"{"up":false,"down":false}"#)
        #expect(try await call("PUT", "/slowlane/v1/proxies/q/outage").error == "proxy not found")
    }

    @Test func aTimelineCanOnlyBeChangedWhileItRuns() async throws {
        try await call.proxy("p", #","link":{"timeline":"0s: 3g, 20s: edge"}"#)
        let path = "/slowlane/v1/proxies/p/timeline"
        #expect(
            try await call("GET", path).object?["state"] == .text("stopped")
        )
        #expect(try await call("PATCH", path, #"{"paused":true}"#).error == "the proxy is disabled")
        for bad in ["{}", #"{"position_ms":-1}"#, #"{"position_ms":1e300}"#, #"{"paused":1}"#, "[]", ""] {
            #expect(try await call("PATCH", path, bad).status == .badRequest, "\(bad)")
        }
        try await call.proxy("q")
        #expect(try await call("GET", "/slowlane/v1/proxies/q/timeline").status == .notFound)
        #expect(
            try await call("PATCH", "/slowlane/v1/proxies/q/timeline", #"{"paused":true}"#).status == .conflict)
    }

    // MARK: The document

    /// Each route is in the OpenAPI document, with its methods, and nothing else is.
    @Test func theDocumentHasExactlyTheRoutes() async throws {
        let document = try #require(try await call("GET", "/slowlane/v1/openapi.json").object)
        #expect(document["openapi"]?.text?.hasPrefix("3.1.") == true)
        var documented: Set<String> = []
        for (path, item) in try #require(document["paths"]?.object) {
            for (method, operation) in try #require(item.object) where method != "parameters" {
                documented.insert("\(method.uppercased()) \(path)")
                #expect(operation["responses"].object?.isEmpty == false && operation["operationId"].text != nil)
            }
        }
        var routes: Set<String> = []
        for route in SlowlaneRoute.allCases {
            for method in route.methods { routes.insert("\(method.rawValue) /\(route.template)") }
        }
        #expect(documented == routes)
    }

    /// Each route has a handler: no documented method gets 404 of an unknown path or 405.
    @Test func eachRouteIsServed() async throws {
        for route in SlowlaneRoute.allCases {
            let segments = route.template.split(separator: "/").map { $0.hasPrefix("{") ? "x" : String($0) }
            let path = "/slowlane/v1/" + segments.joined(separator: "/")
            for method in route.methods {
                let response = try await call(method.rawValue, path)
                #expect(response.isRouted && response.status != .methodNotAllowed, "\(method) \(path)")
            }
            let other = try await call("TRACE", path)
            #expect(other.status == .methodNotAllowed && other.allowedMethods == route.methods)
        }
    }

    /// All references of the document have a target.
    @Test func referencesOfTheDocumentHaveTargets() async throws {
        let document = try #require(try await call("GET", "/slowlane/v1/openapi.json").json)
        var references: Set<String> = []
        func collect(_ value: JSONValue) {
            if let object = value.object {
                for (key, member) in object {
                    if key == "$ref", let target = member.text { references.insert(target) } else { collect(member) }
                }
            }
            for element in value.array { collect(element) }
        }
        collect(document)
        #expect(references.count > 20)
        for reference in references {
            var target = document
            for part in reference.split(separator: "/").dropFirst() { target = target[String(part)] }
            #expect(target.object != nil, "\(reference)")
        }
    }
}
