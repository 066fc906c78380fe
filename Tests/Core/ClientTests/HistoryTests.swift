import Client
import NotesService
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Random histories of two devices. `SLOWLANE_HISTORIES` sets their number in each contract, `SLOWLANE_HISTORY_SEED` the
/// first seed.
@Suite struct HistoryTests {
    private static func environment(_ name: String, otherwise value: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init) ?? value
    }

    static let count = environment("SLOWLANE_HISTORIES", otherwise: 20)
    static let firstSeed = environment("SLOWLANE_HISTORY_SEED", otherwise: 1)

    @Test(arguments: [APIContract.orig, .compat, .strict]) func noHistoryViolatesAnInvariant(_ contract: APIContract) {
        var failures = 0
        for seed in Self.firstSeed..<Self.firstSeed + Self.count {
            guard let violations = History(contract, seed: UInt64(seed)).violations(steps: 30) else { continue }
            failures += 1
            Issue.record("\(violations)")
            if failures == 5 { break }
        }
    }

    /// The model detects deliberate defects of notes.
    @Test(arguments: [Mutant.postsAgainUnderNewID, .overwritesOnConflict, .dropsOnLostResponse])
    func theHistoriesOfAMutantViolateAnInvariant(_ mutant: Mutant) {
        let isDetected = (1...100).contains { seed in
            History(.compat, seed: UInt64(seed), mutant: mutant).violations(steps: 30) != nil
        }
        #expect(isDetected)
    }
}
