import Determinism
import Testing

@testable import LinkModel

@Suite struct RandomStreamTests {
    @Test func streamsOfDifferentNamesDiffer() {
        var one = RandomStream(seed: 1, "link/up/conn/1/loss")
        var same = RandomStream(seed: 1, "link/up/conn/1/loss")
        var other = RandomStream(seed: 1, "link/up/conn/2/loss")
        let draws = (0..<8).map { _ in one.next() }
        #expect(draws == (0..<8).map { _ in same.next() })
        #expect(draws != (0..<8).map { _ in other.next() })
    }

    @Test func probabilitiesAreExact() {
        var stream = RandomStream(seed: 3, "coins")
        let third = Probability(partsPerMillion: 333_333)!
        let count = (0..<100_000).filter { _ in stream.bool(probability: third) }.count
        #expect(abs(count - 33_333) < 600)
        #expect((0..<1000).allSatisfy { _ in !stream.bool(probability: Probability.zero) })
        #expect((0..<1000).allSatisfy { _ in stream.bool(probability: Probability.one) })
        let mean = (0..<20_000).reduce(0) { sum, _ in sum + stream.exponential(mean: 1_000_000) } / 20_000
        #expect(abs(mean - 1_000_000) < 30_000)
    }
}
