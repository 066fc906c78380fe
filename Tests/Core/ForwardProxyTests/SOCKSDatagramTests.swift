import Determinism
import ForwardProxy
import TestSupport
import Testing

@Suite struct SOCKSDatagramTests {
    private static func length(_ bytes: [UInt8]) -> Int? { bytes.withUnsafeBytes { SOCKSDatagram.headerLength($0) } }

    struct Example: Sendable {
        let header: [UInt8]
        let destination: String
    }

    static let ipv4: [UInt8] = [0, 0, 0, 1, 127, 0, 0, 1, 1, 187]
    static let name: [UInt8] = [0, 0, 0, 3, 8] + Array("Api.test".utf8) + [0, 53]
    static let ipv6: [UInt8] = [9, 9, 0, 4] + [UInt8](repeating: 0, count: 15) + [1, 255, 255]

    static let examples = [
        Example(header: ipv4, destination: "127.0.0.1:443"), Example(header: name, destination: "api.test:53"),
        Example(header: ipv6, destination: "[::1]:65535"),
    ]

    @Test(arguments: examples) func aHeaderNamesADestination(_ example: Example) {
        let (header, destination) = (example.header, example.destination)
        #expect(Self.length(header) == header.count && Self.length(header + [1, 2, 3]) == header.count)
        #expect(SOCKSDatagram.destination(header)?.description == destination)
        for count in 0..<header.count { #expect(Self.length(Array(header.prefix(count))) == nil) }
    }

    @Test func fragmentsAndUnknownTypesAreDropped() {
        #expect(Self.length([0, 0, 1, 1, 127, 0, 0, 1, 1, 187]) == nil)
        #expect(Self.length([0, 0, 0x81, 1, 127, 0, 0, 1, 1, 187]) == nil)
        #expect(Self.length([0, 0, 0, 2, 127, 0, 0, 1, 1, 187]) == nil)
        #expect(SOCKSDatagram.destination([0, 0, 0, 1, 127, 0, 0, 1, 0, 0]) == nil, "port 0")
        let notAName: [UInt8] = [0, 0, 0, 3, 3] + Array("a b".utf8) + [0, 53]
        #expect(SOCKSDatagram.destination(notAName) == nil)
        #expect(SOCKSDatagram.destination([0, 0, 0, 3, 0, 0, 53]) == nil)
    }

    @Test func theHeaderOfAResponseHasTheAddressOfItsServer() throws {
        let address = try #require(IPAddress("192.0.2.1"))
        #expect(SOCKSDatagram.header(of: address, port: 443) == [0, 0, 0, 1, 192, 0, 2, 1, 1, 187])
        let address6 = try #require(IPAddress("::1"))
        let header = SOCKSDatagram.header(of: address6, port: 53)
        #expect(SOCKSDatagram.destination(header)?.description == "[::1]:53" && Self.length(header) == 22)
    }

    @Test(arguments: randomSeeds(5, soak: 100)) func anyBytesAreAHeaderOrAreDropped(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            let count = Int.random(in: 0...40, using: &generator)
            var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            if count > 3 { (bytes[2], bytes[3]) = (0, UInt8.random(in: 0...5, using: &generator)) }
            guard let length = Self.length(bytes) else { continue }
            #expect(length <= count && length >= 7)
            if let destination = SOCKSDatagram.destination(Array(bytes.prefix(length))) {
                #expect((1...65535).contains(destination.port) && !destination.host.isEmpty)
            }
        }
    }
}
