internal import Determinism
public import LinkModel

/// A search for the smallest scenario that fails in the same way as a run.
///
/// Each candidate is run; it replaces the current scenario if the same rule fails for the same kinds of subjects, no step
/// fails that did not fail before, and the file of the scenario is valid. For a rule that only this scenario has, such as an
/// expectation, a control run must keep the rule: the reference client where the run has another, otherwise a run without
/// faults on a good network. Without it, a scenario without steps would fail each expectation of their results.
///
/// Everything depends on the given functions only: with a limit on the number of runs and none of time, equal arguments
/// give equal results.
public struct Shrinker {
    /// The verdict and events of a run.
    public struct Observation: Sendable {
        /// The verdict.
        public let verdict: Verdict
        /// The events.
        public let history: History

        /// Creates an observation.
        public init(verdict: Verdict, history: History) {
            self.verdict = verdict
            self.history = history
        }
    }

    /// What a shrinker needs of its caller.
    public struct Environment {
        /// Runs a scenario in virtual time with the scenario's seed; `nil` if it cannot be run. A control run has the
        /// reference client and server.
        public let run: (Scenario, _ isControl: Bool) -> Observation?
        /// Returns whether the file of a scenario can be written and read.
        public let isValid: (Scenario) -> Bool
        /// Returns whether a file of a scenario would be too large to be read.
        public let isTooLarge: (Scenario) -> Bool
        /// Returns whether time is left.
        public let hasTime: () -> Bool
        /// The network that replaces others.
        public let wifi: Timeline.NamedConditions
        /// The name of conditions that are not those of a profile, as a file has them.
        public let unnamedLink: String
        /// Returns the profile with a name.
        public let profile: (String) -> Timeline.NamedConditions?
        /// Whether the runs have another client or server than the reference ones.
        public let hasOtherBehavior: Bool

        /// Creates an environment.
        public init(
            run: @escaping (Scenario, _ isControl: Bool) -> Observation?, isValid: @escaping (Scenario) -> Bool,
            isTooLarge: @escaping (Scenario) -> Bool = { _ in false },
            hasTime: @escaping () -> Bool, wifi: Timeline.NamedConditions, unnamedLink: String,
            profile: @escaping (String) -> Timeline.NamedConditions?, hasOtherBehavior: Bool
        ) {
            self.run = run
            self.isValid = isValid
            self.isTooLarge = isTooLarge
            self.hasTime = hasTime
            self.wifi = wifi
            self.unnamedLink = unnamedLink
            self.profile = profile
            self.hasOtherBehavior = hasOtherBehavior
        }
    }

    /// The result of a search.
    public struct Result: Sendable {
        /// The scenario.
        public let scenario: Scenario
        /// Its run.
        public let observation: Observation
        /// Its violation.
        public let violation: Violation
        /// The scenario of the original run with explicit values.
        public let original: Scenario
        /// The number of runs.
        public let runs: Int
        /// Whether no smaller scenario is left to try; otherwise a limit has ended the search.
        public let isComplete: Bool
        /// Whether control runs kept the rule; `nil` if none were needed.
        public let hasControl: Bool?
    }

    /// The default of the greatest number of runs.
    public static let runsMax = 2000
    /// The greatest number of units of which all pairs are tried.
    static let pairsMax = 8
    /// The greatest number of faults that are narrowed one by one.
    private static let narrowedMax = 8
    /// The maximum number of rounds; each round makes the scenario smaller.
    private static let roundsMax = 100

    let environment: Environment
    let runsMax: Int
    /// The number of runs so far.
    private(set) var runs = 0
    /// The smallest scenario so far, and its run.
    private(set) var current: Scenario
    private(set) var observation: Observation
    private(set) var violation: Violation
    private var failedSteps: Int
    /// Whether the file of the current scenario would be too large.
    private var isTooLarge: Bool
    private var usesControl = false
    private var wasLimited = false

    /// Shrinks the scenario of a failing run; `nil` if it passes, cannot be run, or fails only because of its steps.
    ///
    /// - Parameters:
    ///   - scenario: The scenario; its seed is that of the run.
    ///   - choose: Returns the violation to keep, of those of the run.
    public static func shrink(
        _ scenario: Scenario, runsMax: Int = runsMax, choosing choose: ([Violation]) -> Violation? = { $0.first },
        in environment: Environment
    ) -> Result? {
        let planned = scenario.materialized(seed: scenario.seed)
        guard let first = environment.run(planned, false),
            let violation = choose(Violation.all(in: first.verdict, planned, first.history))
        else { return nil }
        var shrinker = Shrinker(planned, first, violation, runsMax: runsMax, in: environment)
        return shrinker.search(scenario)
    }

    init(
        _ scenario: Scenario, _ observation: Observation, _ violation: Violation, runsMax: Int,
        in environment: Environment
    ) {
        self.environment = environment
        self.runsMax = runsMax
        self.observation = observation
        self.violation = violation
        current = scenario
        isTooLarge = environment.isTooLarge(scenario)
        failedSteps = observation.history.failedStepCount
        runs = 1
    }

    private mutating func search(_ scenario: Scenario) -> Result? {
        let original = scenario.materialized(seed: scenario.seed, history: observation.history)
        keepTargetOnly()
        // From here on, candidates are compared with controls if the rule needs them. The faults of a run with another client
        // are not always those of the control.
        if !violation.holdsForEveryScenario { usesControl = isKeptInControl(current) }
        materialize(scenario)
        useNamesOfFiles()
        narrowFaults()
        for _ in 0..<Self.roundsMax {
            let before = runs
            if !reduce() || runs == before { break }
        }
        finish()
        return Result(
            scenario: current, observation: observation, violation: violation, original: original, runs: runs,
            isComplete: !wasLimited, hasControl: violation.holdsForEveryScenario ? nil : usesControl)
    }

    /// Replaces draws by explicit values: of all parts, or of as many as possible.
    private mutating func materialize(_ scenario: Scenario) {
        let history = observation.history
        let choices: [Scenario.DrawnParts] = [.all, [.reactions, .faults], [.reactions, .networks], .reactions, []]
        for parts in choices {
            var candidate = scenario.materialized(seed: scenario.seed, history: history, parts: parts)
            candidate.expectations = current.expectations
            candidate.invariants = current.invariants
            (candidate.about, candidate.tags, candidate.exploration) = ("", [], nil)
            if attempt(candidate) { return }
            // A reaction at a fixed time need not be possible when earlier events have shifted.
            let hasReactions = parts.contains(.reactions) && !scenario.workload.isEmpty
            if hasReactions, attempt(candidate.makingStepsOptional()) { return }
        }
    }

    /// Replaces draws by explicit values where that was not possible in the larger scenario.
    private mutating func makeExplicit() -> Bool {
        let hasDraws = current.faults.contains { $0.probability != nil || $0.point == .any || !$0.mustFire }
        guard hasDraws || !current.workload.isEmpty else { return false }
        for parts: Scenario.DrawnParts in [[.reactions, .faults], .faults, .reactions] {
            let explicit = current.materialized(seed: current.seed, history: observation.history, parts: parts)
            if explicit.faults == current.faults, explicit.workload == current.workload { continue }
            let hasReactions = explicit.workload != current.workload
            if attempt(explicit) || hasReactions && attempt(explicit.makingStepsOptional()) {
                narrowFaults()
                return true
            }
        }
        return false
    }

    /// Replaces conditions that a file cannot name: by the profile of their name, or else their names.
    private mutating func useNamesOfFiles() {
        let (unnamed, profile) = (environment.unnamedLink, environment.profile)
        func isNamed(_ link: Timeline.NamedConditions) -> Bool { profile(link.name) == link || link.name == unnamed }
        let links = current.devices.flatMap { $0.network.flatMap { $0.phase.links } }
        if links.allSatisfy(isNamed) { return }
        func replacing(_ link: @escaping (Timeline.NamedConditions) -> Timeline.NamedConditions) -> Scenario {
            var candidate = current
            for index in candidate.devices.indices {
                candidate.devices[index].network = current.devices[index].network.map {
                    $0.replacing(\.phase, $0.phase.mappingLinks(link))
                }
            }
            return candidate
        }
        if attempt(replacing { isNamed($0) ? $0 : profile($0.name) ?? .init(unnamed, $0.conditions) }) { return }
        _ = attempt(replacing { isNamed($0) ? $0 : .init(unnamed, $0.conditions) })
    }

    /// Gives faults for the requests of one note: requests of other notes then do not shift their numbers.
    private mutating func narrowFaults() {
        if current.faults.isEmpty { return }
        let narrow = current.narrowingFaults(observation.history)
        if narrow.faults == current.faults || attempt(narrow) { return }
        // One run for each of many faults would take all of the time.
        guard current.faults.count <= Self.narrowedMax else { return }
        for index in current.faults.indices where current.faults[index] != narrow.faults[index] {
            var candidate = current
            candidate.faults[index] = narrow.faults[index]
            _ = attempt(candidate)
        }
    }

    /// Removes all expectations but the violated one. For an invariant one remains that always holds, because a file needs one.
    private mutating func keepTargetOnly() {
        var candidate = current
        // Descriptions have no effect on the run.
        (candidate.about, candidate.tags, candidate.exploration) = ("", [], nil)
        switch violation.rule {
        case .expectation(let location, let section):
            candidate.expectations = current.expectations.filter {
                $0.location == location && $0.kind.section == section && $0.description == violation.description
            }
        case .invariant, .end: candidate.expectations = [Self.vacuousExpectation]
        }
        if case .invariant(let invariant) = violation.rule {
            let isStandard = Scenario.Invariants.standardMembers.contains(invariant)
            candidate.invariants = Scenario.Invariants(adding: isStandard ? [] : [invariant], dropping: [])
        } else {
            candidate.invariants = .standard
        }
        if attempt(candidate) { return }
        // Open expectations can prolong a run.
        candidate.expectations = current.expectations
        _ = attempt(candidate)
    }

    /// An expectation that each run meets.
    static let vacuousExpectation = Expectation(
        .traffic(
            Expectation.Traffic(
                request: .any, from: nil, seen: .server, between: nil,
                count: .range(0...Int.max), responses: nil, same: [])), location: SourceLocation(file: "", line: 1))

    // MARK: Candidates

    /// Runs a candidate, and returns whether it has replaced the current scenario.
    mutating func attempt(_ candidate: Scenario?) -> Bool {
        guard let candidate, hasBudget else { return false }
        runs += 1
        guard let observed = environment.run(candidate, false),
            observed.history.failedStepCount <= failedSteps,
            let found = Violation.first(like: violation, in: observed.verdict, candidate, observed.history),
            !usesControl || isKeptInControl(candidate), isAcceptable(candidate)
        else { return false }
        current = candidate
        observation = observed
        violation = found
        failedSteps = observed.history.failedStepCount
        return true
    }

    /// Returns whether a scenario has a file, or only its size prevents one as it has before.
    private mutating func isAcceptable(_ candidate: Scenario) -> Bool {
        if environment.isValid(candidate) {
            isTooLarge = false
            return true
        }
        return isTooLarge && environment.isTooLarge(candidate)
    }

    private var hasBudget: Bool {
        mutating get {
            if runs < runsMax, environment.hasTime() { return true }
            wasLimited = true
            return false
        }
    }

    /// Returns whether the control of a scenario keeps the rule.
    private mutating func isKeptInControl(_ scenario: Scenario) -> Bool {
        guard hasBudget else { return false }
        runs += 1
        let control = environment.hasOtherBehavior ? scenario : calm(scenario)
        guard let observed = environment.run(control, true), observed.history.failedStepCount <= failedSteps else {
            return false
        }
        return Violation.first(like: violation, in: observed.verdict, control, observed.history) == nil
    }

    /// Returns a scenario without faults and on a good network.
    private func calm(_ scenario: Scenario) -> Scenario {
        var result = scenario
        result.faults = []
        result.devices = scenario.devices.map {
            $0.replacing(\.network, [.init(at: .zero, .hold(wifi), isSignalled: true)])
        }
        return result
    }

    var wifi: Timeline.NamedConditions { environment.wifi }

    // MARK: The search

    /// Tries all reductions once. Returns whether the scenario has become smaller.
    private mutating func reduce() -> Bool {
        var hasChanged = false
        func note(_ changed: Bool) { hasChanged = changed || hasChanged }
        note(makeExplicit())
        note(cutTail())
        note(removeWorkload())
        if shortenRun() {
            note(true)
            narrowFaults()
        }
        note(removeClasses())
        // Runs of small scenarios take less time, so that guesses come before single removals.
        note(isolate())
        note(removeUnits())
        note(mergeFaults())
        note(simplifyNetworks())
        note(shortenTimes())
        note(simplifyValues())
        return hasChanged
    }

    /// Expects that devices and server agree, if they do, also in a control run: a file for readers has an expectation with a meaning.
    private mutating func finish() {
        guard !violation.rule.isExpectation, current.server == .builtIn,
            current.expectations.count == 1, current.expectations[0].description == Self.vacuousExpectation.description
        else { return }
        var candidate = current
        let location = SourceLocation(file: "", line: 1)
        candidate.expectations = [Expectation(.agree(current.devices.map(\.name) + ["server"]), location: location)]
        guard environment.isValid(candidate) else { return }
        // A run may end earlier with another expectation.
        runs += 1
        guard let observed = environment.run(candidate, false),
            observed.verdict.checks.first?.outcome == .pass,
            let found = Violation.first(like: violation, in: observed.verdict, candidate, observed.history)
        else { return }
        // A client without the defect must meet the expectation too, or the file would be no regression test.
        if environment.hasOtherBehavior {
            guard let control = environment.run(candidate, true) else { return }
            let verdict = Verdict(candidate, control.history)
            if verdict.checks.first?.outcome != .pass { return }
        }
        (current, observation, violation) = (candidate, observed, found)
    }
}

extension Violation.Rule {
    var isExpectation: Bool { if case .expectation = self { true } else { false } }
}

extension History {
    /// The number of steps that failed.
    var failedStepCount: Int { entries.count { if case .stepFailed = $0.event { true } else { false } } }
}
