extension Scenario {
    /// A property that every run must have, whatever its scenario.
    public enum Invariant: String, CaseIterable, Hashable, Sendable {
        /// I1: every accepted change is on the server, superseded by its user, or visible as a conflict or error.
        case noLostWrite = "no-lost-write"
        /// I2: each action of a user changes the server at most once.
        case noDuplicateEffect = "no-duplicate-effect"
        /// I3: the accepted writes of a note form one chain of revisions.
        case noSilentOverwrite = "no-silent-overwrite"
        /// I4: after the quiesce phase, clean notes equal the server's.
        case convergence
        /// I5: the number of attempts in an outage is within the retry budget.
        case boundedRetries = "bounded-retries"
        /// I6: a client never goes back to a lower revision.
        case monotonicRevision = "monotonic-revision"
        /// I7: changes of a note reach the server in the user's order.
        case order
        /// I8: a view never shows an older text than the user's last edit.
        case readYourWrites = "read-your-writes"
        /// I9: a conflict is shown only if another client has written.
        case noFalseConflict = "no-false-conflict"
        /// I10: a deleted note returns only by a decision of its user.
        case deletesStick = "deletes-stick"
        /// I11: a kill does not change the final state.
        case crashAtomicity = "crash-atomicity"
        /// I12: an invalid response changes nothing.
        case validatedAnswersOnly = "validated-answers-only"
        /// I13: no byte of one account is sent with another's credentials.
        case isolation
        /// I14: reads and edits do not wait for the network.
        case noBlocking = "no-blocking"
        /// I15: marks of pending changes, errors and conflicts appear and vanish as specified.
        case visibleState = "visible-state"
        /// I16: no body is fetched that has not changed.
        case economy
        /// I17: the next attempt follows soon after the end of an outage.
        case liveness
        /// I18: without conditions and faults, the proxy changes no byte.
        case transparentProxy = "transparent-proxy"

        /// The short name, `I1` to `I18`.
        public var number: String { "I\((Self.allCases.firstIndex(of: self) ?? 0) + 1)" }

        /// The name with the short name, such as `no-lost-write (I1)`.
        public var title: String { "\(rawValue) (\(number))" }

        /// The description of the check in a verdict.
        public var checkDescription: String { "invariant: \(title)" }

        /// Returns the invariant with a name or a short name; `nil` if there is none.
        public init?(named name: String) {
            guard let found = Self.allCases.first(where: { $0.rawValue == name || $0.number == name }) else {
                return nil
            }
            self = found
        }
    }

    /// A set of invariants: the standard set with changes.
    public struct Invariants: Hashable, Sendable {
        /// Invariants in addition to the standard set.
        public var added: [Invariant]
        /// Invariants of the standard set that are not checked.
        public var dropped: [Invariant]

        /// Creates a set.
        public init(adding added: [Invariant], dropping dropped: [Invariant]) {
            self.added = added
            self.dropped = dropped
        }

        /// The standard set.
        public static let standard = Invariants(adding: [], dropping: [])

        /// All invariants.
        public static let all = Invariants(
            adding: Invariant.allCases.filter { !standardMembers.contains($0) }, dropping: [])

        /// The invariants of the standard set.
        public static let standardMembers: [Invariant] = [
            .noLostWrite, .noDuplicateEffect, .noSilentOverwrite, .convergence, .boundedRetries, .monotonicRevision,
            .readYourWrites, .noFalseConflict, .crashAtomicity, .validatedAnswersOnly, .transparentProxy,
        ]

        /// The invariants to check, in the order of their numbers.
        public var members: [Invariant] {
            Invariant.allCases.filter {
                (Self.standardMembers.contains($0) || added.contains($0)) && !dropped.contains($0)
            }
        }

        /// Returns the members that were checked, those that were not, and the standard ones that the scenario drops, in
        /// a line each.
        public func summary(unchecked: [UncheckedInvariant]) -> [String] {
            func line(_ title: String, _ invariants: [Invariant]) -> [String] {
                let names = invariants.map { "\($0.rawValue) (\($0.number))" }
                return names.isEmpty ? [] : ["\(title): \(names.joined(separator: ", "))"]
            }
            let left = Set(unchecked.map(\.invariant))
            return line("invariants checked", members.filter { !left.contains($0) })
                + unchecked.map {
                    "invariant not checked: \($0.invariant.rawValue) (\($0.invariant.number)): \($0.reason)"
                }
                + line("invariants dropped by the scenario", Invariant.allCases.filter(dropped.contains))
        }
    }
}
