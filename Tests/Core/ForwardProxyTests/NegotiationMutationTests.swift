import ForwardProxy
import NIOCore
import TestSupport
import Testing

/// Mutated negotiations: none traps, none holds more than its limit, and the steps do not depend on the pieces.
@Suite struct NegotiationMutationTests {
    /// The head of a request at its limits (``Wire/HTTPLimits``), and the piece that exceeds them.
    private static let bytesKeptMax = (8 << 10) + (64 << 10) + 64

    private static func mutated(_ bytes: [UInt8], _ generator: inout SeededGenerator) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let index = Int.random(in: 0...bytes.count, using: &generator)
            let byte = UInt8.random(in: 0...255, using: &generator)
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: bytes.insert(byte, at: index)
            case 1 where index < bytes.count: bytes[index] = byte
            case 2 where index < bytes.count: bytes[index] ^= 1 << (byte & 7)
            case 3 where index < bytes.count: bytes.remove(at: index)
            case 4: bytes = Array(bytes[..<index])
            case 5: bytes.insert(contentsOf: bytes[index...].prefix(20), at: index)
            default:
                bytes.insert(contentsOf: [UInt8](repeating: byte, count: Int(byte) * Int(byte) / 8), at: index)
            }
        }
        return bytes
    }

    @Test func mutatedNegotiationsEndOrWait() throws {
        var endings: [String: Int] = [:]
        for seed in randomSeeds(600, soak: 100_000) {
            var generator = SeededGenerator(seed: seed)
            let example = NegotiationTests.cases.randomElement(using: &generator)!
            let bytes = Self.mutated(example.bytes, &generator)
            let settings = settings(user: example.user)
            var negotiation = Negotiation(settings)
            var ending = "waits"
            var rest = bytes[...]
            var steps = 0
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...64, using: &generator))
                rest = rest.dropFirst(piece.count)
                negotiation.received(ByteBuffer(bytes: piece))
                while let step = negotiation.next() {
                    steps += 1
                    switch step {
                    case .reply(let bytes): try #require(bytes.readableBytes > 0 && ending == "waits", "seed \(seed)")
                    case .open(let destination):
                        ending = "open"
                        #expect(Destination(authority: "\(destination)") == destination, "seed \(seed)")
                    case .associate: ending = "associate"
                    case .forwardRequests: ending = "forward"
                    case .refuse(let bytes):
                        ending = "refuse"
                        #expect(bytes.readableBytes > 0, "seed \(seed)")
                    }
                }
                if ending == "waits" { #expect(negotiation.bytesKept <= Self.bytesKeptMax, "seed \(seed)") }
                if ending == "refuse" { #expect(negotiation.bytesKept == 0, "seed \(seed)") }
            }
            // A method of SOCKS 5, its credentials and the request, or three times 407.
            #expect(steps <= 3, "seed \(seed)")
            endings[ending, default: 0] += 1
            let whole = Transcript([bytes], settings)
            // A malformed head is recognised earlier in pieces, with another error.
            let isOpen = whole.steps.last?.hasPrefix("open") == true || whole.steps.last == "forward"
            #expect(isOpen == (ending == "open" || ending == "forward"), "seed \(seed)")
        }
        for ending in ["waits", "open", "forward", "refuse"] { #expect(endings[ending] ?? 0 > 0, "\(endings)") }
    }

    @Test(arguments: [
        [UInt8]("GET http://a/".utf8), Array("GET http://a/ HTTP/1.1\r\nA: ".utf8), Array("A".utf8),
        [4, 1, 0, 80, 0, 0, 0, 1],
        [4, 1, 0, 80, 0, 0, 0, 1, 0], Array("\r\n\r\n".utf8),
    ])
    func anEndlessNegotiationIsRefused(_ start: [UInt8]) {
        var negotiation = Negotiation(settings())
        negotiation.received(ByteBuffer(bytes: start))
        let piece = ByteBuffer(repeating: UInt8(ascii: "a"), count: 61)
        var bytesKept = 0
        while negotiation.next() == nil {
            bytesKept = max(bytesKept, negotiation.bytesKept)
            guard bytesKept <= Self.bytesKeptMax else { break }
            negotiation.received(piece)
        }
        #expect(bytesKept <= Self.bytesKeptMax)
        #expect(negotiation.bytesKept == 0)
    }
}
