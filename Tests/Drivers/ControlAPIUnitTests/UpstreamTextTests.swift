import HTTPTypes
import Proxy
import Testing
import Wire

@testable import ControlAPI

/// The upstream of a proxy in requests.
@Suite(.timeLimit(.minutes(20))) struct UpstreamTextTests {
    @Test(arguments: [
        ("8000", "localhost:8000"), (":8000", "127.0.0.1:8000"), ("127.0.0.1:80", "127.0.0.1:80"),
        ("[::1]:80", "[::1]:80"), ("example.org:http", "example.org:80"),
    ]) func anUpstreamIsHostAndPortOrPort(_ text: String, _ endpoint: String) async {
        #expect(await UpstreamText.endpoint(text).description == endpoint)
        #expect(UpstreamText.warning(text) == nil)
    }

    /// System calls would read `8000` as the address 0.0.31.64, and `redis` without a port as port 0.
    @Test(arguments: [
        ("redis", "missing port in address"), ("1.2", "missing port in address"),
        ("redis:", "missing port in address"), ("99999", "missing port in address"), ("", "missing port in address"),
        ("x:99999", "invalid port"), ("2001:db8::1", "too many colons in address"), ("a b:1", "no such host"),
    ]) func anUpstreamWithoutAUsablePortIsNeverDialed(_ text: String, _ reason: String) async throws {
        let endpoint = await UpstreamText.endpoint(text)
        #expect(endpoint.port > 0 || endpoint.host.hasPrefix("no port in "), "\(endpoint)")
        #expect(UpstreamText.warning(text)?.contains(reason) == true, "\(UpstreamText.warning(text) ?? "none")")
    }

    @Test(arguments: ["127.0.0.1:0", ":0", "0", "[::1]:0", "x:00"]) func portZeroIsRefused(_ upstream: String)
        async throws
    {
        let call = APICall()
        try await call.proxy()
        let definition = #"{"name":"q","upstream":"\#(upstream)","enabled":false}"#
        let text = "the upstream '\(upstream)' has port 0; use the port of the server"
        let created = try await call("POST", "/proxies", definition)
        #expect(created.status == .badRequest && created.error == text, "\(created.body)")
        let populated = try await call("POST", "/populate", "[\(definition)]")
        #expect(populated.status == .badRequest && populated.error == "\(text) at proxy 1", "\(populated.body)")
        let updated = try await call("PATCH", "/proxies/p", #"{"upstream":"\#(upstream)"}"#)
        #expect(updated.status == .badRequest && updated.error == text, "\(updated.body)")
        #expect(try await call("GET", "/proxies/p").object?["upstream"] == .text("127.0.0.1:1"))
    }

    @Test func anUpstreamWithoutAPortIsAcceptedWithAWarning() async throws {
        let call = APICall()
        let response = try await call("POST", "/proxies", #"{"name":"q","upstream":"redis","enabled":false}"#)
        #expect(response.status == .created && response.object?["upstream"] == .text("redis"))
        #expect(
            response.warnings == [
                "upstream: address redis: missing port in address; every connection to it fails"
            ])
    }

    private static func created(_ upstream: String, _ more: String = "") async throws -> (API.Response, APICall) {
        let call = APICall()
        let body = #"{"name":"p","listen":"127.0.0.1:0","upstream":"\#(upstream)","enabled":false\#(more)}"#
        return (try await call("POST", "/proxies", body), call)
    }

    @Test func anUpstreamMayBeAURLOfHTTPS() async throws {
        let (response, call) = try await Self.created("https://api.test", #","upstream_tls":{"insecure":true,"x":1}"#)
        #expect(response.status == .created && response.object?["upstream"] == .text("https://api.test"))
        #expect(response.warnings.count == 1 && response.warnings.first?.contains("'x'") == true)
        let changed = try await call("PATCH", "/proxies/p", #"{"upstream":"https://other.test:8443"}"#)
        #expect(changed.object?["upstream"] == .text("https://other.test:8443"), "\(changed.body)")
        let plain = try await call("PATCH", "/proxies/p", #"{"upstream":"127.0.0.1:80"}"#)
        #expect(plain.status == .ok && plain.object?["upstream"] == .text("127.0.0.1:80"))
    }

    @Test(arguments: [
        ("https://api.test/v1", "", "upstream: the URL of an upstream has no path"),
        ("127.0.0.1:80", #","upstream_tls":{}"#, "upstream_tls needs an upstream https://HOST"),
        (
            "https://api.test", #","upstream_tls":{"ca":"rubbish"}"#,
            "upstream_tls.ca: there is no certificate in PEM form"
        ),
        ("https://api.test", #","upstream_tls":{"key":"x"}"#, "upstream_tls needs certificate and key, or none"),
        ("https://api.test", #","upstream_tls":{"insecure":1}"#, "insecure is not true or false"),
        ("https://api.test", #","upstream_tls":5"#, "upstream_tls is not an object"),
    ]) func wrongSettingsOfTLSAreErrors(_ upstream: String, _ more: String, message: String) async throws {
        let (response, call) = try await Self.created(upstream, more)
        #expect(response.status == .badRequest && response.error?.contains(message) == true, "\(response.body)")
        #expect(try await call("GET", "/proxies/p").status == .notFound)
    }
}
