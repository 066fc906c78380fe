import TestSupport
import Testing

@testable import ForwardProxy

/// Queries of resolvers, and the responses to them.
@Suite struct DNSQueryTests {
    /// A query for `API.test`, type A, with recursion desired.
    private static let query: [UInt8] =
        [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3] + Array("API".utf8) + [4] + Array("test".utf8) + [0, 0, 1, 0, 1]

    private static func query(type: UInt8) -> [UInt8] {
        var bytes = query
        bytes[bytes.count - 3] = type
        return bytes
    }

    @Test func aQueryForAnAddressIsRead() throws {
        let query = try #require(DNSQuery(Self.query))
        #expect(query.name == "api.test" && query.type == .ipv4)
        #expect(DNSQuery(Self.query(type: 28))?.type == .ipv6)
        let other = try #require(DNSQuery(Self.query(type: 16)))
        #expect(other.type == nil)
    }

    /// An additional record (EDNS) follows the question.
    @Test func recordsAfterTheQuestionAreIgnored() {
        #expect(DNSQuery(Self.query + [0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0])?.name == "api.test")
    }

    @Test func everyPrefixAndEveryChangedByteIsReadOrIgnored() {
        for count in 0..<Self.query.count { #expect(DNSQuery(Array(Self.query.prefix(count))) == nil) }
        for index in Self.query.indices {
            for value: UInt8 in [0, 1, 63, 64, 192, 255] {
                var bytes = Self.query
                bytes[index] = value
                _ = DNSQuery(bytes)?.response(.addresses([[1, 2, 3, 4]]), timeToLive: 1)
            }
        }
    }

    @Test func responsesQueriesOfTwoQuestionsAndDotsInLabelsAreNotRead() {
        for (index, value) in [
            (2, 0x81), (2, 0x10), (5, 2), (13, 0x2E), (13, 0x20), (12, 0xC0), (Self.query.count - 1, 3),
        ] {
            var bytes = Self.query
            bytes[index] = UInt8(value)
            #expect(DNSQuery(bytes) == nil, "byte \(index)")
        }
    }

    @Test func aResponseHasTheAddressesOfTheType() throws {
        let addresses = NameAnswer.addresses([[192, 0, 2, 7], [UInt8](repeating: 9, count: 16)])
        let response = try #require(DNSQuery(Self.query)?.response(addresses, timeToLive: 1))
        #expect(response.prefix(12) == [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0])
        #expect(response.dropFirst(12).prefix(14) == Self.query.dropFirst(12))
        #expect(response.suffix(16) == [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 7])
        let ipv6 = try #require(DNSQuery(Self.query(type: 28))?.response(addresses, timeToLive: 1))
        #expect(ipv6[7] == 1 && ipv6.suffix(18) == [0, 16] + [UInt8](repeating: 9, count: 16))
    }

    @Test(arguments: [(NameAnswer.noSuchName, UInt8(3)), (.failure, 2), (.addresses([]), 0)])
    func aResponseWithoutAddressesHasTheCode(_ answer: NameAnswer, code: UInt8) throws {
        let response = try #require(DNSQuery(Self.query)?.response(answer, timeToLive: 1))
        #expect(response[3] & 0x0F == code && response[7] == 0 && response.count == Self.query.count)
    }

    @Test func noAnswerIsNoMessage() throws {
        #expect(try #require(DNSQuery(Self.query)).response(.nothing, timeToLive: 1) == nil)
    }

    @Test func aResponseFitsIntoADatagramOfOldResolvers() throws {
        let many = (0..<100).map { [UInt8](repeating: UInt8($0), count: 16) }
        let response = try #require(DNSQuery(Self.query(type: 28))?.response(.addresses(many), timeToLive: 1))
        #expect(response.count <= 512 && response[7] == 12)
    }
}
