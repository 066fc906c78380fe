import ForwardProxy
import Testing

@Suite struct HostRulesTests {
    /// Patterns with a destination that matches and one that does not.
    @Test(arguments: [
        ("api.test", "api.test:80", "www.api.test:80"), ("API.test.", "api.test:443", "api.tests:443"),
        ("api.test:8443", "api.test:8443", "api.test:443"), ("*.cdn.test", "a.b.cdn.test:1", "cdn.test:1"),
        ("*.cdn.test", "a.cdn.test:1", "acdn.test:1"), ("*.cdn.test:1", "a.cdn.test:1", "a.cdn.test:2"),
        ("*:443", "10.0.0.1:443", "10.0.0.1:80"), ("10.0.0.0/8", "10.255.0.1:80", "11.0.0.1:80"),
        ("10.1.2.3/8:80", "10.9.9.9:80", "10.9.9.9:81"), ("10.0.0.0/8", "10.0.0.1:80", "ten.test:80"),
        ("192.168.1.1", "192.168.1.1:80", "192.168.1.2:80"), ("::1", "[::1]:80", "[::2]:80"),
        ("[::1]", "[::1]:80", "127.0.0.1:80"), ("[::1]:80", "[::1]:80", "[::1]:81"),
        ("fd00::/8", "[fdff::1]:80", "[fe00::1]:80"), ("[fd00::]/8:80", "[fdff::1]:80", "[fdff::1]:81"),
        ("0.0.0.0/0", "1.2.3.4:80", "[::1]:80"),
    ])
    func patternsMatch(_ text: String, _ matching: String, _ other: String) throws {
        let pattern = try HostPattern(parsing: text)
        #expect(pattern.matches(try #require(Destination(authority: matching))))
        #expect(!pattern.matches(try #require(Destination(authority: other))))
        #expect(try HostPattern(parsing: pattern.description) == pattern, "\(pattern)")
    }

    @Test(arguments: [
        ("api.test", "'=' is missing", 1), ("=3g", "the host is missing", 1),
        ("api.test=", "the conditions are missing", 10),
        ("api.test= ", "the conditions are missing", 10), (".test=3g", "write *.test", 1),
        ("a*.test=3g", "'*' stands only", 1),
        ("*.*.test=3g", "is not a name", 1), ("http://api.test=3g", "write the host alone", 1),
        ("api.test:x=3g", "the port is not a number", 10), ("api.test:0=3g", "the port is not a number", 10),
        ("api.test:=3g", "the port is not a number", 10), ("10.0.0.0/33=3g", "from 0 to 32", 1),
        ("10.0.0.0/+8=3g", "from 0 to 32", 1), ("fd00::/129=3g", "from 0 to 128", 1),
        ("api.test/8=3g", "not an address", 1),
        ("bücher.test=3g", "punycode", 1), ("fe80::1%eth0=3g", "zone identifier", 1), ("127.1=3g", "IPv4 address", 1),
        ("*.10.0.0.1=3g", "no subdomains", 1), ("10.0.0.1=nxdomain", "an address is not looked up", 10),
        ("[::1=3g", "']' is missing", 1), ("a b=3g", "is not a name", 1),
    ])
    func errorsTellTheTextThePositionAndTheRemedy(_ text: String, _ problem: String, _ column: Int) {
        let error = #expect(throws: HostRuleError.self) { try HostRules.rule(parsing: text) }
        #expect(error?.column == column && error?.text == text)
        #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    }

    @Test(arguments: [
        ("direct", HostRules.Treatment.direct, "direct"), ("refuse", .refuse, "refuse"), ("block", .block, "block"),
        ("dns-failure", .dnsFailure(.nxdomain), "nxdomain"), ("nxdomain", .dnsFailure(.nxdomain), "nxdomain"),
        ("servfail", .dnsFailure(.servfail), "servfail"), ("dns-timeout", .dnsFailure(.timeout), "dns-timeout"),
        ("3g", .conditions("3g"), "3g"), ("My Profile=1", .conditions("My Profile=1"), "My Profile=1"),
    ])
    func treatmentsAreRead(_ text: String, _ treatment: HostRules.Treatment, _ description: String) throws {
        let rule = try HostRules.rule(parsing: "Api.test:80=\(text)")
        #expect(rule.treatment == treatment)
        #expect(rule.description == "api.test:80=\(description)")
    }

    @Test func theMostSpecificRuleApplies() throws {
        let rules = try HostRules(rules: [
            "*=edge", "*:80=wifi", "*.test=3g", "*.cdn.test=lte", "*.cdn.test:80=refuse", "a.cdn.test=direct",
            "10.0.0.0/8=3g", "10.1.0.0/16=lte", "10.1.0.1=direct", "api.test=block",
        ])
        func rule(_ text: String) throws -> String? {
            rules.rule(for: try #require(Destination(authority: text)))?.description
        }
        #expect(try rule("other.org:443") == "*=edge")
        #expect(try rule("other.org:80") == "*:80=wifi")
        #expect(try rule("www.test:80") == "*.test=3g")
        #expect(try rule("b.cdn.test:443") == "*.cdn.test=lte")
        #expect(try rule("b.cdn.test:80") == "*.cdn.test:80=refuse")
        #expect(try rule("a.cdn.test:80") == "a.cdn.test=direct")
        #expect(try rule("10.2.0.1:443") == "10.0.0.0/8=3g")
        #expect(try rule("10.1.2.1:443") == "10.1.0.0/16=lte")
        #expect(try rule("10.1.0.1:443") == "10.1.0.1=direct")
        #expect(try rule("api.test:80") == "api.test=block")
        #expect(HostRules().rule(for: Destination(host: "api.test", port: 80)) == nil)
    }

    @Test func twoRulesOfOnePatternAreAnError() throws {
        let error = #expect(throws: HostRuleError.self) { try HostRules(rules: ["api.test=3g", "API.test.=wifi"]) }
        #expect(error?.problem == "a rule of this pattern exists: api.test=3g; remove one")
        #expect(throws: HostRuleError.self) { try HostRules(rules: ["10.0.0.1/8=3g", "10.0.0.2/8=wifi"]) }
        #expect(throws: HostRuleError.self) { try HostRules(rules: [], maps: ["a.test=b:1", "a.test=c:1"]) }
        #expect(try HostRules(rules: ["api.test=3g", "api.test:80=wifi"]).rules.count == 2)
    }

    @Test func aMapNamesTheDestinationThatIsConnected() throws {
        let rules = try HostRules(
            rules: [],
            maps: ["api.test=127.0.0.1:8000", "api.test:443=[::1]:8443", "*.shop.test=localhost", "localhost=api.test"])
        func mapped(_ text: String) throws -> String { "\(rules.mapped(try #require(Destination(authority: text))))" }
        #expect(try mapped("api.test:80") == "127.0.0.1:8000")
        #expect(try mapped("api.test:443") == "[::1]:8443")
        // The result is not mapped again.
        #expect(try mapped("a.shop.test:81") == "localhost:81")
        #expect(try mapped("other.test:80") == "other.test:80")
        #expect(
            rules.maps.map(\.description) == [
                "api.test=127.0.0.1:8000", "api.test:443=[::1]:8443", "*.shop.test=localhost", "localhost=api.test",
            ])
    }

    @Test(arguments: [
        ("api.test", "'=' is missing", 1), ("api.test=", "the host is missing", 10),
        ("api.test=127.0.0.1:0", "port", 10),
        ("api.test=::1:80", "without brackets", 10), ("x=http://a", "port is not a number", 3),
        ("x=a@b:80", "user name", 3),
    ])
    func errorsOfMapsTellThePosition(_ text: String, _ problem: String, _ column: Int) {
        let error = #expect(throws: HostRuleError.self) { try HostRules.map(parsing: text) }
        #expect(error?.column == column && error?.description.contains(problem) == true, "\(error?.description ?? "")")
    }
}
