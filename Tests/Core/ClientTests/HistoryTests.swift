import Client
import NotesService
import TestSupport
import Testing

/// Random histories of two devices.
@Suite struct HistoryTests {
    @Test(arguments: [APIContract.orig, .compat, .strict]) func noHistoryViolatesAnInvariant(_ contract: APIContract) {
        var failures = 0
        for seed in randomSeeds(20, soak: 5000) {
            guard let violations = History(contract, seed: seed).violations(steps: 30) else { continue }
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
