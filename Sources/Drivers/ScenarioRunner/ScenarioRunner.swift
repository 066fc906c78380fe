//  ScenarioRunner: many runs of scenarios, in virtual and in real time.
//
//  Owns: the selection of scenarios, the plan of a batch, its threads and order, repetitions and their comparison, the
//  comparison of both worlds, explanations of failures, traces, reports.
//
//  Does not own: a single run (Worlds/Simulated, LiveWorld), the meaning of scenarios and verdicts (Scenario), files
//  (ConfigFiles), arguments (the command).

public import Scenario
internal import Worlds

/// Runs a plan, several runs at a time.
public struct ScenarioRunner: Sendable {
    private let worlds: RunWorlds
    /// The maximum number of runs at a time.
    private let jobs: Int
    private let checksDeterminism: Bool

    /// Creates a runner.
    ///
    /// - Parameters:
    ///   - jobs: The maximum number of runs at a time.
    ///   - checksDeterminism: Whether every run in virtual time is repeated; otherwise those that do not pass are.
    public init(worlds: RunWorlds = .standard, jobs: Int, checksDeterminism: Bool = false) {
        self.worlds = worlds
        self.jobs = max(1, jobs)
        self.checksDeterminism = checksDeterminism
    }

    /// Runs a plan. Throws only if the task is cancelled; all runs end then.
    ///
    /// - Parameters:
    ///   - onStart: Called when a run starts, on any thread.
    ///   - onEvent: Called with the events of runs while they last, on any thread.
    ///   - transform: Called when a run has ended, on any thread and in any order. What it returns is kept until
    ///     `onResult` takes it.
    ///   - onResult: Called with the transformed results, one at a time, in the order of the plan.
    public func run<Value: Sendable>(
        _ plan: [PlannedRun], onStart: @escaping @Sendable (PlannedRun) -> Void = { _ in },
        onEvent: (@Sendable (PlannedRun, History.Entry) -> Void)? = nil,
        transform: @escaping @Sendable (FinishedRun) -> Value, onResult: (Value) -> Void
    ) async throws {
        var ordered = OrderedResults<Value>()
        var next = 0
        try await withThrowingTaskGroup(of: (Int, Value).self) { group in
            while true {
                while next < plan.count && next - ordered.count < jobs {
                    let (index, run) = (next, plan[next])
                    next += 1
                    group.addTask {
                        try Task.checkCancellation()
                        onStart(run)
                        let finished = try await finish(run, onEvent)
                        return (index, transform(finished))
                    }
                }
                guard let (index, value) = try await group.next() else { break }
                for value in ordered.add(value, at: index) { onResult(value) }
            }
        }
    }

    /// Makes one run, and repeats it if it must be.
    private func finish(_ run: PlannedRun, _ report: (@Sendable (PlannedRun, History.Entry) -> Void)?) async throws
        -> FinishedRun
    {
        var onEvent: (@Sendable (History.Entry) -> Void)?
        if let report { onEvent = { event in report(run, event) } }
        let clock = ContinuousClock()
        let start = clock.now
        var outcome: FinishedRun.Outcome
        do {
            switch run.world {
            case .simulated:
                let simulate = worlds.simulated
                outcome = .result(try await BlockingThread.run { [onEvent] in try simulate(run, onEvent) })
            case .live: outcome = .result(try await worlds.live(run, onEvent))
            }
        } catch let error as SetupError {
            outcome = .invalid(error.description)
        } catch let error as ProgramError {
            let text = "\(run.scenario.fullName): \(error)"
            outcome = error.kind == .notStarted ? .unavailable(text) : .unusable(text)
        } catch {
            try Task.checkCancellation()
            if error is CancellationError { throw error }
            outcome = .unavailable("\(run.scenario.fullName): \(error)")
        }
        try Task.checkCancellation()
        let wallTime = clock.now - start
        var repetition = FinishedRun.Repetition.none
        if case .result(let first) = outcome, run.scenario.realTimeReason == nil,
            checksDeterminism && run.world == .simulated || !first.hasPassed
        {
            let simulate = worlds.simulated
            do {
                let second = try await BlockingThread.run { try simulate(run, nil) }
                switch run.world {
                case .simulated: repetition = RunDifference(first, second).map { .different($0) } ?? .same
                case .live: repetition = .simulated(second.verdict.result)
                }
            } catch let error as SetupError {
                // What is valid in one world is valid in both: the repetition is the exception.
                outcome = .invalid("\(error.description) (in the repetition of a run)")
            }
        }
        return FinishedRun(run: run, outcome: outcome, repetition: repetition, wallTime: wallTime)
    }
}

extension RunResult {
    fileprivate var hasPassed: Bool { verdict.result == .pass }
}
