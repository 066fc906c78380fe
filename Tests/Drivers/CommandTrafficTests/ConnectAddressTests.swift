import TestSupport
import Testing

@testable import CommandTraffic

/// The address argument of connect(2), and the listening sockets in the text of /proc/net/tcp.
@Suite struct ConnectAddressTests {
    private static func ipv4(_ address: [UInt8], port: [UInt8] = [0, 80]) -> [UInt8] {
        [2, 0] + port + address + zeros(8)
    }

    private static func ipv6(_ address: [UInt8], port: [UInt8] = [0x1F, 0x90]) -> [UInt8] {
        [10, 0] + port + zeros(4) + address + zeros(4)
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    private struct Case: Sendable {
        let structure: [UInt8]
        let text: String
        var isLoopback = false
    }

    private static let cases = [
        Case(structure: ipv4([192, 0, 2, 7]), text: "192.0.2.7:80"),
        Case(structure: ipv4([127, 1, 2, 3]), text: "127.1.2.3:80", isLoopback: true),
        Case(structure: ipv4([0, 0, 0, 0], port: [255, 255]), text: "127.0.0.1:65535", isLoopback: true),
        Case(structure: ipv6(zeros(15) + [1]), text: "[::1]:8080", isLoopback: true),
        Case(structure: ipv6(zeros(16)), text: "[::1]:8080", isLoopback: true),
        Case(structure: ipv6(zeros(10) + [255, 255, 127, 0, 0, 1]), text: "127.0.0.1:8080", isLoopback: true),
        Case(structure: ipv6(zeros(10) + [255, 255, 192, 0, 2, 7]), text: "192.0.2.7:8080"),
        Case(structure: ipv6([0x20, 1, 0xD, 0xB8] + zeros(11) + [7]), text: "[2001:db8::7]:8080"),
        Case(structure: ipv6([0x20, 1] + zeros(4) + [0, 1] + zeros(6) + [0, 2]), text: "[2001:0:0:1::2]:8080"),
        Case(structure: ipv6([0xFE, 0x80] + zeros(14)), text: "[fe80::]:8080"),
        Case(structure: ipv6([0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7]), text: "[1:0:2:3:4:5:6:7]:8080"),
    ]

    @Test func addressesOfBothFamiliesAreRead() {
        for row in Self.cases {
            let address = ConnectAddress(row.structure)
            #expect(address?.description == row.text)
            #expect(address?.isLoopback == row.isLoopback, "\(row.text)")
        }
    }

    @Test func theKernelDecidesAboutOtherStructures() {
        let structures = [
            [], [2], Self.zeros(16), Array(Self.ipv4([1, 2, 3, 4]).prefix(15)),
            Array(Self.ipv6(Self.zeros(16)).prefix(23)), [1, 0, 47, 116, 109, 112] + Self.zeros(20),
        ]
        for structure in structures { #expect(ConnectAddress(structure) == nil, "\(structure)") }
    }

    @Test func structuresWithoutAScopeAreRead() {
        #expect(ConnectAddress(Array(Self.ipv6(Self.zeros(15) + [1]).prefix(24)))?.port == 8080)
    }

    private static let titles = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"

    private static func line(_ local: String, state: String = "0A") -> String {
        "   0: \(local) 00000000:0000 \(state) 00000000:00000000 00:00000000 00000000     0        0 5 1 0 100 0 0 10 0"
    }

    /// The words of addresses have the order of little-endian machines here.
    @Test(arguments: [
        (line("0100007F:1F90"), true), (line("00000000:1F90"), true), (line("0200007F:1F90"), false),
        (line("0100007F:1F91"), false), (line("0100007F:1F90", state: "01"), false),
        (line("00000000000000000000000000000000:1F90"), true),
        (line("0000000000000000FFFF00000100007F:1F90"), true),
        (line("00000000000000000000000001000000:1F90"), false), (titles, false), ("", false), (line("x"), false),
    ]) func listenersOfAnIPv4Address(_ line: String, accepts: Bool) throws {
        let address = try #require(ConnectAddress(Self.ipv4([127, 0, 0, 1], port: [0x1F, 0x90])))
        #expect(ListenerTable.accepts(line, address) == accepts)
    }

    @Test(arguments: [
        (line("00000000000000000000000001000000:1F90"), true), (line("00000000000000000000000000000000:1F90"), true),
        (line("00000000:1F90"), false), (line("0000000000000000FFFF00000100007F:1F90"), false),
    ]) func listenersOfAnIPv6Address(_ line: String, accepts: Bool) throws {
        for bytes in [Self.zeros(15) + [1], Self.zeros(16)] {
            let address = try #require(ConnectAddress(Self.ipv6(bytes)))
            #expect(ListenerTable.accepts(line, address) == accepts)
        }
    }

    @Test func listenersAreToldFromConnections() {
        #expect(ListenerTable.isListener(Self.line("0100007F:1F90")))
        #expect(!ListenerTable.isListener(Self.line("0100007F:1F90", state: "06")))
        #expect(!ListenerTable.isListener(Self.titles))
    }
}
