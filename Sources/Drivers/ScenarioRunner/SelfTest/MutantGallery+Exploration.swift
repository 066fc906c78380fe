internal import Client
internal import NotesService
internal import Scenario
internal import Worlds

extension MutantGallery {
    /// Returns the invariant by which an exploration must detect a mutant for which the gallery names an expectation.
    static func invariant(of mutant: RunMutant) -> Scenario.Invariant {
        switch mutant {
        case .client(let mutant):
            switch mutant {
            case .missingNoteEditedForEver, .rejectionRetried, .noJitter: .boundedRetries
            case .operationIDRenewedOnRetry, .operationIDRenewedOnRestart, .everythingSentTwice, .conflictSavedAsCopy:
                .noDuplicateEffect
            case .serverErrorIsFinal, .outboxNotCounted: .visibleState
            case .noCap, .changesWaitForPoll: .liveness
            case .editsNotMerged: .economy
            case .newestChangeFirst, .unsentNoteDeletedOnServer, .queueReversedOnRestart: .order
            case .conflictLosesTheirs, .sendsDuringConflict: .noSilentOverwrite
            case .listEmptyWithoutConnection: .noBlocking
            case .conflictBaseForgottenOnRestart: .crashAtomicity
            case .deletedNoteRestored: .deletesStick
            default: .noLostWrite
            }
        case .server(let mutant):
            switch mutant {
            case .replayNotIdempotent, .keyReusedGetsFirstResult: .noDuplicateEffect
            case .deletedNameCreatedAgain: .deletesStick
            default: .noSilentOverwrite
            }
        case .pattern: .visibleState
        case .reader: .visibleState
        case .field: .noLostWrite
        }
    }

    /// Returns the entries of mutants that a scenario's clients and server can have.
    static func entries(for scenario: Scenario) -> [Entry] {
        entries.filter { entry in
            if let app = entry.mutant.app { scenario.apps.contains(app) } else { scenario.apps.isEmpty }
        }
    }
}
