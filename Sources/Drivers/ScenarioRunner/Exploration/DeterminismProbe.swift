internal import Determinism
internal import Scenario
internal import Worlds

/// The comparison of two runs that should be equal, step by step: both are made again, and the second one stops at the
/// first step that differs. A step is an event of the history, or an internal event of the world, such as the deadline
/// of a link. The second run has its server's notes in SQLite. Every random number is a function of the seed, the name of a stream and the number of earlier draws from
/// it, so that a draw can only differ after a step does.
enum DeterminismProbe {
    /// The steps of the first run, and the comparison of the second.
    private final class Steps {
        private(set) var first: [String] = []
        private var isSecond = false
        private var next = 0
        private(set) var difference: (index: Int, first: String?, second: String?)?

        /// Records a step; returns whether the run goes on.
        func record(_ step: String) -> Bool {
            guard isSecond else {
                first.append(step)
                return true
            }
            guard difference == nil else { return false }
            if next < first.count, first[next] == step {
                next += 1
                return true
            }
            difference = (next, next < first.count ? first[next] : nil, step)
            return false
        }

        func beginSecond() { isSecond = true }

        /// Ends the second run.
        func end() {
            if difference == nil, next < first.count { difference = (next, first[next], nil) }
        }
    }

    /// Makes a run twice and returns the first step that differs, in lines.
    static func lines(_ run: PlannedRun, _ worlds: RunWorlds) throws(SetupError) -> [String] {
        let steps = Steps()
        for isSecond in [false, true] {
            if isSecond { steps.beginSecond() }
            var run = run
            if isSecond { run.storage = .sqlite }
            _ = try worlds.traced(run) { (step: SimulatedStep) -> Bool in
                switch step {
                case .event(let entry): return steps.record(RunTrace.line(entry))
                case .world(let time, let text):
                    return steps.record("\(TimeFormat.milliseconds(time.sinceStart))  \(text)")
                }
            }
        }
        steps.end()
        guard let found = steps.difference else {
            return ["two further runs were equal: the difference is not there in every run"]
        }
        let ended = "(the run has ended)"
        return [
            "repeated step by step: step \(found.index) is the first that differs",
            "  run 3: \(found.first ?? ended)", "  run 4: \(found.second ?? ended)",
        ]
    }
}
