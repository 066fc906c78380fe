import Determinism
import LinkModel
import TestSupport
import Testing

@testable import TCPModel

@Suite struct BurstFitTests {
    /// The fates of packets on a link that is good or bad.
    private static func fates(
        _ count: Int, becomesBad: Double, becomesGood: Double, lossInBad: Double, lossInGood: Double, seed: UInt64
    ) -> [Bool?] {
        var random = RandomStream(seed: seed, "fates")
        var isBad = false
        return (0..<count).map { _ in
            isBad = isBad ? !random.bool(probability: becomesGood) : random.bool(probability: becomesBad)
            return random.bool(probability: isBad ? lossInBad : lossInGood)
        }
    }

    @Test(arguments: randomSeeds(3, soak: 30)) func aChainHasItsProbabilities(_ seed: UInt64) throws {
        let fates = Self.fates(
            20_000, becomesBad: 0.01, becomesGood: 0.15, lossInBad: 0.7, lossInGood: 0, seed: seed)
        let chain = try #require(BurstFit(fates).chain)
        #expect(chain.becomesBad > 0.006 && chain.becomesBad < 0.016, "\(chain)")
        #expect(chain.becomesGood > 0.1 && chain.becomesGood < 0.22, "\(chain)")
        #expect(chain.lossInBad > 0.55 && chain.lossInBad < 0.85, "\(chain)")
        #expect(abs(chain.meanLoss / 0.04375 - 1) < 0.3, "\(chain)")
    }

    @Test(arguments: randomSeeds(2, soak: 50)) func independentLossesAreNoBursts(_ seed: UInt64) {
        let fit = BurstFit(
            Self.fates(10_000, becomesBad: 0, becomesGood: 1, lossInBad: 0, lossInGood: 0.02, seed: seed))
        #expect(fit.chain == nil && fit.inflation == 1)
    }

    @Test func unknownFatesAndFewLossesAreNoBursts() {
        #expect(BurstFit([]).chain == nil)
        #expect(BurstFit([Bool?](repeating: nil, count: 100)).chain == nil)
        #expect(BurstFit([Bool?](repeating: true, count: 100)).chain == nil)
        #expect(BurstFit(([true, true, true] + [Bool](repeating: false, count: 500)).map { $0 }).chain == nil)
    }
}
