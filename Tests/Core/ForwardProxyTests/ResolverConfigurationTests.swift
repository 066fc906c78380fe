import Determinism
import Testing

@testable import ForwardProxy

/// The files of the system's resolver, and the names that are asked.
@Suite struct ResolverConfigurationTests {
    private static func read(_ text: String) -> ResolverConfiguration { ResolverConfiguration(Array(text.utf8)) }

    @Test func theFileIsRead() {
        let configuration = Self.read(
            """
            # nameserver 192.0.2.9
            ; nameserver 192.0.2.8
            domain one.test two.test
            nameserver 192.0.2.1 # remark
            \tnameserver\t2001:db8::1
            nameserver fe80::1%eth0
            nameserver example
            nameserver 192.0.2.2
            nameserver 192.0.2.3
            search a.test b.test. c..test
            options ndots:2 timeout:3 attempts:4 rotate edns0
            nameserver
            options
            """)
        #expect(configuration.servers.map(\.address.description) == ["192.0.2.1", "2001:db8::1", "192.0.2.2"])
        #expect(configuration.servers.allSatisfy { $0.port == 53 })
        #expect(configuration.searchList == ["a.test", "b.test"])
        #expect(configuration.dotsMin == 2 && configuration.timeout == .seconds(3) && configuration.attempts == 4)
    }

    @Test func figuresHaveBounds() {
        let large = Self.read("options ndots:99 timeout:99 attempts:99\noptions timeout:-1 ndots:x attempts")
        #expect(large.dotsMin == 15 && large.timeout == .seconds(30) && large.attempts == 5)
        let small = Self.read("options ndots:0 timeout:0 attempts:0")
        #expect(small.dotsMin == 0 && small.timeout == .seconds(1) && small.attempts == 1)
        let none = Self.read("")
        #expect(none == ResolverConfiguration() && none.timeout == .seconds(5) && none.attempts == 2)
    }

    @Test(arguments: [
        ("a.b.test", ["a.b.test", "a.b.test.x.test"]), ("api.test", ["api.test.x.test", "api.test"]),
        ("db", ["db.x.test", "db", "system db"]), ("printer.local", ["system printer.local"]),
        ("a.svc.local", ["a.svc.local", "a.svc.local.x.test"]), ("app.localhost", ["system app.localhost"]),
        (String(repeating: "a.", count: 123) + "test", [String(repeating: "a.", count: 123) + "test"]),
    ])
    func theSearchListExtendsNames(_ host: String, _ names: [String]) {
        let configuration = Self.read("nameserver 192.0.2.1\nsearch x.test\noptions ndots:2")
        #expect(configuration.steps(for: host).map { ($0.usesSystem ? "system " : "") + $0.name } == names)
        #expect(Self.read("search x.test").steps(for: host).map(\.usesSystem) == [true])
    }

    @Test func theHostsFileIsRead() {
        let hosts = HostsFile(
            Array(
                """
                # 192.0.2.9 comment.test
                192.0.2.1\tAPI.test api # remark.test
                2001:db8::1 api.test
                192.0.2.2 db.test#cache.test
                fe80::1%eth0 zone.test
                192.0.2.3
                nonsense here.test
                """.utf8))
        #expect(hosts.addresses(of: "api.test").map(\.description) == ["192.0.2.1", "2001:db8::1"])
        #expect(hosts.addresses(of: "api").count == 1 && hosts.addresses(of: "db.test").count == 1)
        for name in ["comment.test", "remark.test", "cache.test", "zone.test", "here.test", "#", ""] {
            #expect(hosts.addresses(of: name).isEmpty, "\(name)")
        }
    }
}
