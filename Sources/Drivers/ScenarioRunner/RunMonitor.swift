internal import CommandSupport
internal import Scenario
internal import Synchronization

/// The output on standard error while runs last: events of a single run, the progress of a batch.
final class RunMonitor: Sendable {
    private let console: Console
    private let progress: Mutex<RunProgress>
    private let logs = Mutex<[Int: RunLog]>([:])

    init(planned: Int, _ console: Console) {
        self.console = console
        progress = Mutex(RunProgress(planned: planned, isRewritten: console.hasStatusLine))
    }

    func runStarted(_ run: PlannedRun, isAnnounced: Bool) {
        runStarted()
        guard isAnnounced else { return }
        console.print(run.title, to: .progress)
        let about = TextTable.singleLine(run.scenario.about)
        if !about.isEmpty { console.print(TextTable.wrapped(about), to: .progress) }
    }

    /// Records the start of a run that is not announced.
    func runStarted() { progress.withLock { $0.runStarted() } }

    func runEnded(passed: Bool) { progress.withLock { $0.runEnded(passed: passed) } }

    func printEvent(_ entry: History.Entry, of run: PlannedRun) {
        let line = logs.withLock { $0[run.index, default: RunLog()].line(entry) }
        if let line { console.print(line, to: .progress) }
    }

    /// Prints the progress while an operation lasts, unless it is hidden.
    func reportProgress<Value>(isHidden: Bool, during operation: () async throws -> Value) async throws -> Value {
        try await ProgressTicker(console) { [self] time in progress.withLock { $0.report(at: time) } }
            .run(isHidden: isHidden, during: operation)
    }
}
