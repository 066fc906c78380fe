import Testing

@testable import ForwardProxy

/// The hosts whose TLS is intercepted, and the names that an authority may certify.
@Suite struct InterceptedHostsTests {
    private func hosts(_ texts: String...) throws -> InterceptedHosts { try InterceptedHosts(parsing: texts) }

    @Test(arguments: [
        ("api.test", true), ("API.Test", true), ("api.test.", true), ("x.api.test", false), ("cdn.test", false),
        ("a.cdn.test", true), ("b.a.cdn.test", true), ("xcdn.test", false), ("10.1.2.3", true), ("11.1.2.3", false),
        ("::1", true), ("", false), ("api.test\0", false), ("api.test/", false), ("api.test:443", false),
        ("*.cdn.test", false), ("-\u{e4}.cdn.test", false), ("a..cdn.test", false), ("127.1", false),
    ]) func aHostIsIncludedByItsName(_ host: String, isIncluded: Bool) throws {
        #expect(try hosts("api.test, *.cdn.test", "10.0.0.0/8,::1").includes(host) == isIncluded)
    }

    @Test func everyValidHostIsIncludedByAll() {
        #expect(InterceptedHosts.all.includes("a.test") && InterceptedHosts.all.includes("::1"))
        #expect(
            !InterceptedHosts.all.includes("a b") && !InterceptedHosts.all.includes(String(repeating: "a", count: 64)))
        let label = String(repeating: "a", count: 63) + "."
        let longest = String(repeating: label, count: 3) + String(repeating: "b", count: 61)
        #expect(longest.utf8.count == 253 && InterceptedHosts.all.includes(longest))
        #expect(!InterceptedHosts.all.includes(longest + "b"))
        #expect(!InterceptedHosts.all.includes(String(repeating: label, count: 100_000)))
    }

    @Test(arguments: [
        ("*", "--intercept-all"), ("api.test:443", "a port"), ("", "missing"), ("a,,b", "missing"),
        ("https://api.test", "a URL"), ("a*.test", "'*' stands only"),
    ]) func aPatternThatCannotBeUsedHasAReason(_ text: String, _ reason: String) {
        let error = #expect(throws: HostRuleError.self) { try InterceptedHosts(parsing: [text]) }
        #expect(error?.problem.contains(reason) == true, "\(error?.problem ?? "none")")
    }

    @Test func theNumberOfPatternsIsLimited() throws {
        let names = (0..<InterceptedHosts.patternsMax).map { "h\($0).test" }
        #expect(try InterceptedHosts(parsing: names + ["h0.test"]).patterns.count == names.count)
        #expect(throws: HostRuleError.self) {
            try InterceptedHosts(parsing: [(names + ["more.test"]).joined(separator: ",")])
        }
    }

    /// A name of a certificate is copied only if each host for which it stands is intercepted.
    @Test(arguments: [
        ("api.test", "api.test"), ("API.test", "api.test"), ("*.cdn.test", "*.cdn.test"),
        ("*.a.cdn.test", "*.a.cdn.test"),
        ("*.test", nil), ("*.api.test", nil), ("other.test", nil), ("*", nil), ("*.", nil), ("a.*.cdn.test", nil),
        ("*.*.cdn.test", nil), ("10.0.0.1", nil), ("*.0.0.1", nil),
    ]) func aNameOfACertificateStandsForInterceptedHosts(_ name: String, _ normalized: String?) throws {
        #expect(try hosts("api.test,*.cdn.test,10.0.0.0/8").normalized(certificateName: name) == normalized)
    }

    @Test(arguments: [
        ("a.test", "a.test", true), ("*.test", "a.test", true), ("*.test", "b.a.test", false),
        ("*.test", "test", false),
        ("a.test", "b.test", false),
    ]) func aStarOfACertificateStandsForOneLabel(_ name: String, _ host: String, covers: Bool) {
        #expect(InterceptedHosts.covers(name, host) == covers)
    }

    @Test func constraintsAllowTheHostsAndNoOtherKindOfName() throws {
        let names = try #require(try hosts("api.test,*.cdn.test,*.api.test").constraints)
        #expect(names.names == ["api.test", "cdn.test"] && names.networks.isEmpty)
        #expect(
            names.networksExcluded.map(\.count) == [8, 32] && names.networksExcluded.joined().allSatisfy { $0 == 0 })
        let networks = try #require(try hosts("10.0.0.0/8,127.0.0.1").constraints)
        #expect(networks.networks == [[10, 0, 0, 0, 255, 0, 0, 0], [127, 0, 0, 1, 255, 255, 255, 255]])
        #expect(networks.names == ["invalid"] && networks.networksExcluded.isEmpty)
        #expect(InterceptedHosts.all.constraints == nil)
    }

    @Test func theHostsOfConstraintsIncludeTheHostsOfWhichTheyWereMade() throws {
        let original = try hosts("api.test,*.cdn.test,10.0.0.0/8,::1")
        let read = InterceptedHosts(original.constraints)
        #expect(original.isSubset(of: read))
        for host in ["api.test", "a.cdn.test", "10.9.9.9", "::1"] { #expect(read.includes(host)) }
        for host in ["other.test", "invalid", "11.0.0.0", "::2"] { #expect(!read.includes(host)) }
        #expect(InterceptedHosts(nil) == .all)
    }

    @Test(arguments: [
        ("a.test", "*.test", true), ("*.a.test", "*.test", true), ("*.test", "*.a.test", false),
        ("*.test", "a.test", false),
        ("10.1.0.0/16", "10.0.0.0/8", true), ("10.0.0.0/8", "10.1.0.0/16", false), ("a.test,b.test", "a.test", false),
    ]) func hostsAreASubsetIfEachPatternIs(_ left: String, _ right: String, isSubset: Bool) throws {
        #expect(try hosts(left).isSubset(of: hosts(right)) == isSubset)
        #expect(try hosts(left).isSubset(of: .all) && !InterceptedHosts.all.isSubset(of: hosts(right)))
    }
}
