extension ExpectationEvaluator {
    /// Returns the first violation of an invariant; `nil` if the run shows none.
    mutating func violation(of invariant: Scenario.Invariant) -> InvariantViolation? { invariant.violation(in: facts) }
}

/// An invariant that a run cannot violate visibly, because its history lacks what the check needs.
public struct UncheckedInvariant: Hashable, Sendable {
    /// The invariant.
    public let invariant: Scenario.Invariant
    /// What is missing.
    public let reason: String
}

extension RunFacts {
    /// The members of the scenario's invariants that were not checked.
    var unchecked: [UncheckedInvariant] {
        scenario.invariants.members.compactMap { invariant in
            reason(notToCheck: invariant).map { UncheckedInvariant(invariant: invariant, reason: $0) }
        }
    }

    private func reason(notToCheck invariant: Scenario.Invariant) -> String? {
        switch invariant {
        case .transparentProxy where world?.comparesBytes != true:
            return "the bytes of both ends of the links are not compared"
        case .noLostWrite, .convergence:
            if scenario.server != .builtIn { return "the notes of a server other than the built-in one are not read" }
            if serverRows == nil { return "the server's notes were not read" }
            if wasAborted { return "the run was aborted" }
        case .noDuplicateEffect:
            if let reason = NoDuplicateEffect.undecidedReason(in: self) { return reason }
        case .crashAtomicity where !scenario.devices.isEmpty && scenario.devices.allSatisfy(\.runsProgram):
            return "the commits of programs are not known"
        default: break
        }
        let needsViews: Set<Scenario.Invariant> = [
            .noLostWrite, .convergence, .readYourWrites, .noFalseConflict, .validatedAnswersOnly, .noBlocking,
            .visibleState,
        ]
        if needsViews.contains(invariant), !scenario.devices.isEmpty, scenario.devices.allSatisfy(\.lacksAdapter) {
            return "the programs have no adapters, so their views are not known"
        }
        return nil
    }
}
