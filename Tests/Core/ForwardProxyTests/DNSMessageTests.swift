import TestSupport
import Testing

@testable import ForwardProxy

/// Messages of name servers, also hostile ones.
@Suite struct DNSMessageTests {
    private static let query = DNSMessage.query(DNSName("api.test")!, .ipv4, id: 0x1234)

    private static func answer(_ response: DNSResponse, _ type: AddressType = .ipv4) -> DNSAnswer? {
        DNSMessage(response.bytes(to: query))?.answer(type)
    }

    @Test func aQueryIsReadByAServer() throws {
        let query = try #require(DNSQuery(Self.query))
        #expect(query.name == "api.test" && query.type == .ipv4)
        #expect(Self.query.prefix(4) == [0x12, 0x34, 1, 0] && Self.query.count == 26)
    }

    @Test func addressesOfTheTypeHaveTheLeastTimeToLive() throws {
        let response = DNSResponse(answers: [
            .address("api.test", "192.0.2.1", timeToLive: 60), .address("API.test", "192.0.2.2", timeToLive: 30),
            .address("other.test", "192.0.2.3", timeToLive: 1), .address("api.test", "2001:db8::1", timeToLive: 2),
        ])
        let addresses = [IPAddress("192.0.2.1")!, IPAddress("192.0.2.2")!]
        #expect(Self.answer(response) == .addresses(addresses, timeToLive: 30))
        #expect(Self.answer(response, .ipv6) == .addresses([IPAddress("2001:db8::1")!], timeToLive: 2))
    }

    /// RFC 2181, section 8.
    @Test func aTimeToLiveWithTheHighestBitIsZero() {
        let response = DNSResponse(answers: [.address("api.test", "192.0.2.1", timeToLive: 1 << 31)])
        #expect(Self.answer(response) == .addresses([IPAddress("192.0.2.1")!], timeToLive: 0))
    }

    @Test func aliasesAreFollowedInAnyOrder() {
        let response = DNSResponse(answers: [
            .address("c.test", "192.0.2.1", timeToLive: 100), .alias("b.test", "c.test", timeToLive: 20),
            .alias("api.test", "b.test", timeToLive: 50),
        ])
        #expect(Self.answer(response) == .addresses([IPAddress("192.0.2.1")!], timeToLive: 20))
        let loop = DNSResponse(answers: [.alias("api.test", "b.test"), .alias("b.test", "api.test")])
        #expect(Self.answer(loop) == .failure)
    }

    @Test(arguments: [UInt8(0), 3]) func aMissingNameIsKeptAsTheAuthoritySays(_ code: UInt8) {
        var response = DNSResponse(
            code: code, answers: [.alias("api.test", "b.test", timeToLive: 90)],
            authorities: [.authority("test", timeToLive: 600, minimum: 45)])
        #expect(Self.answer(response) == .none(timeToLive: 45))
        response.authorities = [.authority("test", timeToLive: 10, minimum: 45)]
        #expect(Self.answer(response) == .none(timeToLive: 10))
        response.authorities = []
        #expect(Self.answer(response) == .none(timeToLive: 0))
    }

    /// An address beside an authority is not an answer.
    @Test func recordsOfTheAuthoritySectionAreNoAnswers() {
        let response = DNSResponse(authorities: [.address("api.test", "192.0.2.1")])
        #expect(Self.answer(response) == .none(timeToLive: 0))
    }

    @Test(arguments: [UInt8(1), 2, 4, 5, 15]) func otherCodesAreFailures(_ code: UInt8) {
        let response = DNSResponse(code: code, answers: [.address("api.test", "192.0.2.1")])
        #expect(Self.answer(response) == .failure)
    }

    @Test func aTruncatedMessageIsNotReadFurther() {
        var bytes = DNSResponse(isTruncated: true, answers: [.address("api.test", "192.0.2.1")]).bytes(to: Self.query)
        bytes.removeLast(3)
        #expect(DNSMessage(bytes)?.answer(.ipv4) == .truncated)
    }

    @Test func compressedNamesAreRead() {
        var bytes = DNSResponse().bytes(to: Self.query)
        bytes[7] = 2
        // "www" and a pointer to the question's name is the alias's target, which the next record's name points to.
        bytes += [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 6, 3] + Array("www".utf8) + [0xC0, 12]
        bytes += [0xC0, 38, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 9]
        #expect(DNSMessage(bytes)?.answer(.ipv4) == .addresses([IPAddress("192.0.2.9")!], timeToLive: 9))
    }

    /// To itself, forward, in a circle, into the head.
    @Test(arguments: [[UInt8(0xC0), 26], [0xC0, 40], [1, 97, 0xC0, 26], [0xC0, 2], [0xC0]])
    func pointersThatDoNotLeadBackAreNotFollowed(_ name: [UInt8]) {
        var bytes = DNSResponse().bytes(to: Self.query)
        bytes[7] = 1
        bytes += name + [0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 9]
        #expect(DNSMessage(bytes) == nil)
    }

    @Test func namesAreAtMost255BytesLong() {
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(DNSName(longest)?.bytes.count == 255 && DNSName(longest)?.text == longest)
        #expect(
            DNSName(longest + "b") == nil && DNSName("a..b") == nil && DNSName("") == nil && DNSName(label + "a") == nil
        )
        let bytes = [UInt8](repeating: 0, count: 12) + (DNSName(longest)?.bytes.dropLast() ?? []) + [1, 97, 0]
        var index = 12
        #expect(DNSName(bytes, at: &index) == nil && index == 12)
    }

    @Test func everyPrefixAndEveryChangedByteIsReadOrIgnored() throws {
        let whole = DNSResponse(
            answers: [.alias("api.test", "b.test"), .address("b.test", "192.0.2.1")],
            authorities: [.authority("test", timeToLive: 1, minimum: 1)]
        ).bytes(to: Self.query)
        for count in 0..<whole.count { #expect(DNSMessage(Array(whole.prefix(count))) == nil) }
        var read = 0
        for index in whole.indices {
            for value: UInt8 in [0, 1, 2, 63, 64, 0xC0, 0xFF] {
                var bytes = whole
                bytes[index] = value
                if DNSMessage(bytes)?.answer(.ipv4) != nil { read += 1 }
            }
        }
        #expect(read > whole.count)
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0..<4 {
                bytes[Int.random(in: 2..<whole.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            _ = DNSMessage(bytes)?.answer(.ipv6)
        }
        #expect(DNSMessage(whole + [UInt8](repeating: 0, count: 5_000)) == nil)
    }
}
