/// An invariant in words.
public struct InvariantRule: Hashable, Sendable {
    /// The rule.
    public let rule: String
    /// What a run must show to violate it.
    public let violations: String
    /// The worlds in which it is checked, and with which differences.
    public let worlds: String
    /// What the check cannot see.
    public let blindSpots: String
    /// The origin of the rule.
    public let source: String
}

/// The reason why a run violates an invariant, and the place at which it does.
struct InvariantViolation: Hashable {
    let reason: String
    /// The index of the entry that shows it; `nil` for the end of the run.
    var index: Int?
    var actor: String?
    var row: String?

    init(_ reason: String, at index: Int? = nil, of actor: String? = nil, _ row: String? = nil) {
        self.reason = reason
        self.index = index
        self.actor = actor
        self.row = row
    }
}

/// A check of an invariant: a pure function over a run. A violation is certain; the absence of one is no proof.
protocol InvariantCheck {
    /// The invariant in words.
    static var rule: InvariantRule { get }

    /// Returns the first violation; `nil` if the run shows none.
    static func violation(in run: RunFacts) -> InvariantViolation?
}

extension Scenario.Invariant {
    /// The check of the invariant.
    private var check: any InvariantCheck.Type {
        switch self {
        case .noLostWrite: NoLostWrite.self
        case .noDuplicateEffect: NoDuplicateEffect.self
        case .noSilentOverwrite: NoSilentOverwrite.self
        case .convergence: Convergence.self
        case .boundedRetries: BoundedRetries.self
        case .monotonicRevision: MonotonicRevision.self
        case .order: ChangeOrder.self
        case .readYourWrites: ReadYourWrites.self
        case .noFalseConflict: NoFalseConflict.self
        case .deletesStick: DeletesStick.self
        case .crashAtomicity: CrashAtomicity.self
        case .validatedAnswersOnly: ValidatedAnswersOnly.self
        case .isolation: Isolation.self
        case .noBlocking: NoBlocking.self
        case .visibleState: VisibleState.self
        case .economy: Economy.self
        case .liveness: Liveness.self
        case .transparentProxy: TransparentProxy.self
        }
    }

    /// The invariant in words.
    public var rule: InvariantRule { check.rule }

    /// Returns the first violation in a run; `nil` if the run shows none.
    func violation(in run: RunFacts) -> InvariantViolation? { check.violation(in: run) }
}
