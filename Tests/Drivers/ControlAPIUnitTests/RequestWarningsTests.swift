import HTTPTypes
import Testing

@testable import ControlAPI

/// Warnings about parts of a request that have no effect.
@Suite(.timeLimit(.minutes(20))) struct RequestWarningsTests {
    @Test func anUnknownAttributeIsReportedInTheResponseAndInTheLog() async throws {
        let log = LogRecord()
        let call = APICall(logger: log.logger)
        try await call.proxy()
        let added = try await call(
            "POST", "/proxies/p/toxics", #"{"type":"bandwidth","attributes":{"rates":5}}"#)
        let warning = "unknown attribute 'rates' of toxic 'bandwidth'; did you mean 'rate'?"
        #expect(added.status == .ok && added.warnings == [warning])
        #expect(log.text == "warning: POST /proxies/p/toxics: \(warning)")
        let updated = try await call(
            "PATCH", "/proxies/p/toxics/bandwidth_downstream", #"{"attributes":{"rate":5,"latency":1},"toxicty":1}"#)
        #expect(
            updated.warnings == [
                "unknown field 'toxicty' of the toxic; did you mean 'toxicity'?",
                "unknown attribute 'latency' of toxic 'bandwidth'",
            ])
    }

    @Test func unknownFieldsOfAProxyAreReported() async throws {
        let call = APICall()
        let created = try await call(
            "POST", "/proxies",
            #"{"name":"q","upstream":"x:1","enabled":false,"lisen":"y","Logger":{},"toxics":[{"type":"noop","typo":1}],"link":{"profile":"edge","x_y_z":1}}"#
        )
        #expect(created.status == .created)
        #expect(
            created.warnings == [
                "unknown field 'lisen' of the proxy; did you mean 'listen'?",
                "unknown field 'x_y_z' of the link", "unknown field 'typo' of the toxic; did you mean 'type'?",
            ])
        let updated = try await call("PATCH", "/proxies/q", #"{"name":"other","toxics":[1],"enable":true}"#)
        #expect(updated.warnings == ["unknown field 'enable' of the proxy; did you mean 'enabled'?"])
        let populated = try await call(
            "POST", "/populate", #"[{"name":"r","upstream":"x:1","enabled":false,"seeds":1}]"#)
        #expect(populated.warnings == ["proxy 'r': unknown field 'seeds' of the proxy; did you mean 'seed'?"])
    }

    @Test func unknownFieldsOfSlowlanesRoutesAreReported() async throws {
        let call = APICall()
        try await call.proxy()
        let link = try await call(
            "PUT", "/slowlane/v1/proxies/p/link", #"{"netem":{"downn":"delay 1ms"},"profiles":1}"#)
        #expect(link.status == .ok)
        #expect(
            link.warnings == [
                "unknown field 'profiles' of the link; did you mean 'profile'?",
                "unknown field 'downn' of netem; did you mean 'down'?",
            ])
        let seed = try await call("PUT", "/slowlane/v1/proxies/p/seed", #"{"seed":1,"sed":2}"#)
        #expect(seed.warnings == ["unknown field 'sed' of the seed; did you mean 'seed'?"])
    }

    @Test func anErrorHasTheWarningsThatMayExplainIt() async throws {
        let call = APICall()
        let created = try await call("POST", "/proxies", #"{"name":"q","upsteam":"x:1"}"#)
        #expect(created.error == "missing required field: upstream")
        #expect(created.warnings == ["unknown field 'upsteam' of the proxy; did you mean 'upstream'?"])
        try await call.proxy()
        let added = try await call("POST", "/proxies/p/toxics", #"{"typ":"latency"}"#)
        #expect(added.error == "invalid toxic type")
        #expect(added.warnings == ["unknown field 'typ' of the toxic; did you mean 'type'?"])
    }

    @Test func warningsOfAConfigurationAreLogged() async throws {
        let log = LogRecord()
        let call = APICall(logger: log.logger)
        let json = #"[{"name":"a","upstream":"x:1","enabled":false,"toxic":[]}]"#
        #expect(await call.api.load(Array(json.utf8)).proxies.map(\.name) == ["a"])
        #expect(
            log.text
                == "warning: configuration: proxy 'a': unknown field 'toxic' of the proxy; did you mean 'toxics'?")
    }

    @Test func warningsAreFewAndPrintable() async throws {
        let call = APICall()
        try await call.proxy()
        let attributes = (0..<1000).map { "\"unknown\($0)\":1" }.joined(separator: ",")
        let many = try await call("POST", "/proxies/p/toxics", #"{"type":"noop","attributes":{\#(attributes)}}"#)
        #expect(many.warnings.count == RequestWarnings.countMax)
        #expect(many.warnings.last == "further warnings are left out")
        let name = "a\\r\\nSet-Cookie: é\\\"\\\\\(String(repeating: "n", count: 200))"
        let odd = try await call("POST", "/proxies/p/toxics", #"{"type":"noop","name":"t","\#(name)":1}"#)
        let header = RequestWarnings.header(odd.warnings)
        #expect(header.hasPrefix(#"299 - "unknown field 'a??Set-Cookie: ?\"\\nnn"#), "\(header)")
        #expect(header.utf8.allSatisfy { (0x20..<0x7F).contains($0) } && header.utf8.count < 200)
    }

    @Test func theTextsOfAHeaderAreThoseThatWereWritten() {
        let texts = ["plain", #"a "quoted\" \text"#, "", "comma, 299 - and dash"]
        #expect(RequestWarnings.texts(ofHeader: RequestWarnings.header(texts)) == texts)
        // What other programs may send.
        for (value, texts) in [("", []), ("299 - x", []), (#"110 a "open"#, ["open"]), (#"1 - "a\"#, [#"a\"#])] {
            #expect(RequestWarnings.texts(ofHeader: value) == texts)
        }
    }
}
