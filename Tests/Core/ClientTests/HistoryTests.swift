import Client
import NotesService
import TestSupport
import Testing

/// Random histories of two devices.
@Suite struct HistoryTests {
    @Test(arguments: [APIContract.orig, .compat, .strict]) func noHistoryViolatesAnInvariant(_ contract: APIContract) {
        var failures = 0
        for seed in randomSeeds(8, soak: 5000) {
            guard let violations = History(contract, seed: seed).violations(steps: 30) else { continue }
            failures += 1
            Issue.record("\(violations)")
            if failures == 5 { break }
        }
    }

    /// The model detects decisions that lose or duplicate notes.
    @Test(arguments: [SyncBehavior.createsAgain, .winsConflicts, .dropsLostChanges])
    func theHistoriesOfAnotherBehaviorViolateAnInvariant(_ behavior: SyncBehavior) {
        let isDetected = (1...100).contains { seed in
            History(.compat, seed: UInt64(seed), behavior).violations(steps: 30) != nil
        }
        #expect(isDetected)
    }
}

extension SyncBehavior {
    /// A creation whose response was lost is repeated under another identifier.
    static let createsAgain = outcome { $0.isLost && $0.entry.kind == .create ? .createdAgain : nil }
    /// A change whose response was lost is taken for executed.
    static let dropsLostChanges = outcome { $0.isLost ? .dropped : nil }
    /// The local side wins all conflicts.
    static let winsConflicts: SyncBehavior = {
        var behavior = SyncBehavior()
        behavior.replaceConflictDecisions { $0.theirs.revision == nil ? nil : .resolved(.mine) }
        return behavior
    }()

    private static func outcome(_ body: @escaping @Sendable (ChangeAttempt) -> ChangeOutcome?) -> SyncBehavior {
        var behavior = SyncBehavior()
        behavior.replaceOutcomes(body)
        return behavior
    }
}
