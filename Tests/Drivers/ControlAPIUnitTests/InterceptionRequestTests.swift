import ForwardProxy
import Foundation
import HTTPTypes
import NIOPosix
import Proxy
import Testing
import Wire

@testable import ControlAPI

/// The interception of TLS in requests.
@Suite(.timeLimit(.minutes(20))) struct InterceptionRequestTests {
    private func details(_ call: APICall) async throws -> JSONObject? {
        try await call("GET", "/slowlane/v1/proxies/p").object?["intercept"]?.object
    }

    @Test func theHostsOfAProxyAreSetAndChanged() async throws {
        let call = APICall()
        try await call.proxy("p", #","intercept":["api.test","*.cdn.test,10.0.0.0/8"]"#)
        #expect(try await details(call)?["hosts"]?.json == #"["api.test","*.cdn.test","10.0.0.0/8"]"#)
        #expect(try await details(call)?["certificate"] == .null)
        let changed = try await call("PATCH", "/proxies/p", #"{"intercept":["other.test"]}"#)
        #expect(changed.status == .ok && changed.warnings.isEmpty, "\(changed.body)")
        #expect(try await details(call)?["hosts"]?.json == #"["other.test"]"#)
        _ = try await call("PATCH", "/proxies/p", #"{"enabled":false}"#)
        #expect(try await details(call)?["hosts"]?.json == #"["other.test"]"#)
        _ = try await call("PATCH", "/proxies/p", #"{"intercept_all":true}"#)
        #expect(try await details(call)?["hosts"]?.json == #"["*"]"#)
        _ = try await call("PATCH", "/proxies/p", #"{"intercept":[]}"#)
        #expect(try await details(call) == nil)
    }

    @Test(arguments: [
        (#""intercept":["*"]"#, "intercept_all"), (#""intercept":[1]"#, "not a string"),
        (#""intercept":"api.test""#, "intercept is not an array"), (#""intercept":["a.test:443"]"#, "a port"),
        (#""intercept":["a.test"],"intercept_all":true"#, "leave intercept out"),
        (#""intercept":["a.test"],"upstream_tls":{"ca":"rubbish"}"#, "upstream_tls.ca: there is no certificate"),
        (#""intercept":["a.test"],"upstream_tls":{"key":"x"}"#, "needs certificate and key"),
        (#""upstream":"https://a.test","intercept":["a.test"]"#, "speak HTTP"),
    ]) func wrongSettingsAreRefused(_ fields: String, _ reason: String) async throws {
        let upstream = fields.contains("upstream\"") ? "" : #","upstream":"a.test:443""#
        let response = try await APICall()("POST", "/proxies", #"{"name":"p"\#(upstream),"enabled":false,\#(fields)}"#)
        #expect(response.status == .badRequest && response.error?.contains(reason) == true, "\(response.body)")
    }

    @Test func aStartedProxyHasAnAuthorityThatItKeeps() async throws {
        let call = APICall()
        let created = try await call(
            "POST", "/proxies", #"{"name":"p","listen":"127.0.0.1:0","forward":true,"intercept":["api.test"]}"#)
        #expect(created.status == .created, "\(created.body)")
        let first = try await details(call)?["sha256"]?.text
        let certificate = try await details(call)?["certificate"]?.text
        #expect(first?.count == 95 && certificate?.hasPrefix("-----BEGIN CERTIFICATE-----") == true)
        #expect(certificate?.contains("PRIVATE") == false)
        for change in [#"{"enabled":false}"#, #"{"enabled":true}"#] {
            _ = try await call("PATCH", "/proxies/p", change)
            #expect(try await details(call)?["sha256"]?.text == first)
        }
        _ = try await call("PATCH", "/proxies/p", #"{"intercept":["api.test","other.test"]}"#)
        let second = try await details(call)?["sha256"]?.text
        #expect(second != nil && second != first)
        await call.api.close()
    }

    @Test func theAuthorityOfTheUserIsUsedIfItMayCertifyTheHosts() async throws {
        let authority = try CertificateAuthority(
            for: InterceptedHosts(parsing: ["api.test"]), now: Int64(Date().timeIntervalSince1970))
        let api = API(
            seed: 1, version: "test", authority: { () throws(CertificateAuthorityError) in authority },
            on: MultiThreadedEventLoopGroup.singleton)
        let call = APICall(api)
        let created = try await call(
            "POST", "/proxies", #"{"name":"p","listen":"127.0.0.1:0","forward":true,"intercept":["api.test"]}"#)
        #expect(created.status == .created, "\(created.body)")
        #expect(try await details(call)?["sha256"] == .text(authority.fingerprint))
        let other = try await call(
            "POST", "/proxies", #"{"name":"q","listen":"127.0.0.1:0","forward":true,"intercept":["b.test"]}"#)
        #expect(
            other.status == .badRequest && other.error?.contains("may certify only api.test") == true, "\(other.body)")
        await api.close()
    }
}
