import ForwardProxy
import TestSupport
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"), ("::", "::"),
        ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("1::", "1::"), ("2001:DB8::00ff", "2001:db8::ff"),
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("::ffff:a00:1", "::ffff:10.0.0.1"), ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
    ])
    func textsAreRead(_ text: String, _ canonical: String) { #expect(IPAddress(text)?.description == canonical) }

    @Test(arguments: [
        "", ".", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.", "+1.2.3.4", "1.2.3.-0", "0x7f.0.0.1",
        "127.1", "2130706433", ":", ":::", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", ":1::",
        "1::2:", "12345::", "g::", "-0::", "+1::", "::1%eth0", "[::1]", "::1.2.3", "::1.2.3.4:1", "1::2::3",
    ])
    func otherTextsAreNot(_ text: String) { #expect(IPAddress(text) == nil) }

    @Test func theTextOfEachAddressIsReadAsTheSameAddress() {
        for seed in randomSeeds(500, soak: 20_000) {
            var generator = SeededGenerator(seed: seed)
            let count = Bool.random(using: &generator) ? 4 : 16
            let bytes = (0..<count).map { _ in
                Bool.random(using: &generator) ? 0 : UInt8.random(in: 0...255, using: &generator)
            }
            let address = IPAddress(bytes: bytes)
            #expect(address.flatMap { IPAddress($0.description) } == address, "seed \(seed)")
            #expect(address?.description.contains(":::") == false, "seed \(seed)")
        }
        #expect(IPAddress(bytes: [1, 2, 3]) == nil)
    }
}

@Suite struct DestinationTests {
    @Test(arguments: [
        ("API.Test:443", "api.test:443"), ("api.test.:1", "api.test:1"), ("[0::1]:65535", "[::1]:65535"),
        ("a_b-c.test:80", "a_b-c.test:80"), ("127.0.0.1:8000", "127.0.0.1:8000"),
        ("xn--bcher-kva.test:80", "xn--bcher-kva.test:80"),
        ("1password.test:80", "1password.test:80"), ("localhost:1", "localhost:1"),
    ])
    func authoritiesAreRead(_ text: String, _ description: String) {
        #expect(Destination(authority: text)?.description == description)
    }

    @Test(arguments: [
        "", ":", ":80", "a", "a:", "a:0", "a:65536", "a:99999999999999999999", "a:-1", "a:+1", "a: 1", "a:1:2",
        "::1:80",
        "[::1]", "[::1:80", "[::1]80", "[fe80::1%25eth0]:80", "[1.2.3.4]:80", "[]:80", "user@a:80", "a..b:80", ".a:80",
        "a b:80", "bücher.test:80", "a/b:80", "127.1:80", "0x7f.1:80", "256.1.1.1:80", "a.0x10:80", "a*:80",
    ])
    func otherTextsAreNot(_ text: String) { #expect(Destination(authority: text) == nil) }

    @Test func namesHaveTheLengthsOfDNS() {
        let label = String(repeating: "a", count: 63)
        let name = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(name.utf8.count == 253)
        #expect(Destination(authority: "\(name).:80")?.host == name)
        #expect(Destination(authority: "\(name)b:80") == nil)
        #expect(Destination(authority: "\(label)a.test:80") == nil)
    }

    @Test func onlyAddressesAreNumeric() {
        #expect(Destination(host: "::1", port: 80).isNumericAddress)
        #expect(Destination(host: "10.0.0.1", port: 80).isNumericAddress)
        #expect(!Destination(host: "api.test", port: 80).isNumericAddress)
    }
}

@Suite struct DestinationPolicyTests {
    private static func destination(_ text: String) -> Destination {
        Destination(authority: text) ?? Destination(host: "", port: 0)
    }

    @Test(arguments: [
        "api.test:443", "localhost:1", "127.0.0.1:80", "10.0.0.1:80", "192.168.1.1:80", "[::1]:80", "[fd00::1]:80",
        "169.253.255.255:80", "1.1.1.1:80",
    ])
    func ordinaryDestinationsAreAllowed(_ text: String) {
        #expect(DestinationPolicy().isAllowed(Self.destination(text)))
    }

    @Test(arguments: [
        "169.254.169.254:80", "169.254.0.1:1", "0.0.0.0:80", "0.1.2.3:80", "224.0.0.1:80", "239.255.255.250:1900",
        "255.255.255.255:67", "168.63.129.16:80", "100.100.100.200:80", "192.0.0.192:80", "[::]:80", "[fe80::1]:80",
        "[febf::1]:80", "[ff02::1]:80", "[fd00:ec2::254]:80", "[fd20:ce::254]:80", "[::ffff:169.254.169.254]:80",
        "[::169.254.169.254]:80", "[64:ff9b::169.254.169.254]:80", "[::ffff:0.0.0.0]:80",
        "Metadata.Google.Internal.:80", "metadata:80", "instance-data:80",
    ])
    func addressesAndNamesOfMetadataAndGroupsAreRefused(_ text: String) throws {
        let destination = Self.destination(text)
        #expect(!DestinationPolicy().isAllowed(destination))
        // Each of them may be allowed.
        let pattern = try HostPattern(parsing: destination.address.map { "\($0)" } ?? destination.host)
        #expect(DestinationPolicy(exceptions: [pattern]).isAllowed(destination))
        #expect(DestinationPolicy(exceptions: [HostPattern(.any)]).isAllowed(destination))
        #expect(!DestinationPolicy(exceptions: [HostPattern(.name("other.test"))]).isAllowed(destination))
    }

    @Test func portZeroIsRefused() {
        #expect(!DestinationPolicy(exceptions: [HostPattern(.any)]).isAllowed(Destination(host: "api.test", port: 0)))
    }

    @Test func aNameMustNotLeadToARefusedAddress() throws {
        let name = Destination(host: "rebind.test", port: 80)
        let metadata = try #require(IPAddress("169.254.169.254"))
        let loopback = try #require(IPAddress("127.0.0.1"))
        #expect(DestinationPolicy().isAllowed(name))
        #expect(!DestinationPolicy().isAllowed(metadata, of: name))
        #expect(DestinationPolicy().isAllowed(loopback, of: name))
        for exception in ["rebind.test", "169.254.0.0/16", "169.254.169.254:80"] {
            #expect(DestinationPolicy(exceptions: [try HostPattern(parsing: exception)]).isAllowed(metadata, of: name))
        }
        #expect(
            !DestinationPolicy(exceptions: [try HostPattern(parsing: "rebind.test:81")]).isAllowed(metadata, of: name))
    }
}
