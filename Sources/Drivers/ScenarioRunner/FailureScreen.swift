internal import CommandSupport
public import Scenario
public import Worlds

/// The explanation of a run that did not pass: at most one screen of a terminal.
public enum FailureScreen {
    /// The size of a screen.
    public static let rowsMax = 24
    public static let columnsMax = 100
    /// The maximum number of further failed checks that are listed.
    private static let othersMax = 2
    /// The maximum number of programs whose output is shown, and of its lines.
    private static let outputsMax = 2
    private static let outputLinesMax = 4

    /// Returns the lines for the first failed check of a run, or the first inconclusive one; empty if there is none.
    ///
    /// - Parameters:
    ///   - checks: The checks as they are displayed.
    ///   - context: The context of the check that is explained.
    ///   - repetition: Whether the run can be reproduced, in a line.
    ///   - outputs: The output of programs, whose last lines are shown.
    ///   - notes: Further lines before the command that repeats the run.
    public static func lines(
        _ run: PlannedRun, _ checks: [RunSummary.Check], _ history: History, _ context: FailureContext,
        _ texts: TextDisplay, repetition: String, outputs: [ProgramOutput] = [], notes: [String] = []
    ) -> [String] {
        guard let index = mainCheck(checks) else { return [] }
        let check = checks[index]
        let mark = check.outcome == .fail ? "FAIL" : "?   "
        let title = "\(mark)  \(run.title), at \(TimeFormat.milliseconds(context.time)): \(check.description)"
        var head = [fitted(title, columnsMax)]
        let isCut = head[0] != title
        if isCut { head += wrapped(check.description, indent: 6, max: 2) }
        head += wrapped(check.reason, indent: 6, max: 2)
        if !check.advice.isEmpty { head += wrapped("to do: \(check.advice)", indent: 6, max: 2) }
        head.append("      in \(check.location)")

        let others = checks.indices.filter { $0 != index && checks[$0].outcome != .pass }
        var tail = others.prefix(Self.othersMax).map { other in
            fitted("      also \(checks[other].outcome.rawValue): \(checks[other].description)", columnsMax)
        }
        if others.count > tail.count { tail.append("      and \(others.count - tail.count) more") }
        for output in outputs.prefix(Self.outputsMax) {
            tail.append("      standard error of \(output.name):")
            tail += output.lines.suffix(Self.outputLinesMax).map {
                fitted("        " + TextTable.singleLine($0), columnsMax)
            }
        }
        tail += wrapped(repetition, indent: 2, max: 2)
        for note in notes { tail += wrapped(note, indent: 2, max: 2) }
        let replay = ReplayCommand.lines(run, width: columnsMax - 10)
        tail += replay.enumerated().map { ($0 == 0 ? "  replay: " : "          ") + $1 }

        let room = rowsMax - head.count - tail.count
        let events = RelevantEvents.lines(history, context, texts, max: max(0, room)).map { event in
            let seconds = TimeFormat.milliseconds(event.time)
            let padding = String(repeating: " ", count: max(0, 12 - seconds.count))
            return fitted("  \(padding)\(seconds)  \(TextTable.singleLine(event.text))", columnsMax)
        }
        return head + events + tail
    }

    /// Returns the index of the check to explain: the end of a program, which explains all others, the first that failed,
    /// or else the first inconclusive one.
    public static func mainCheck(_ checks: [RunSummary.Check]) -> Int? {
        checks.firstIndex { $0.outcome == .fail && $0.reason.contains(Scenario.Program.endedByItself) }
            ?? checks.firstIndex { $0.outcome == .fail } ?? checks.firstIndex { $0.outcome == .inconclusive }
    }

    private static func fitted(_ text: String, _ width: Int) -> String {
        text.count <= width ? text : text.prefix(width - 3) + "..."
    }

    private static func wrapped(_ text: String, indent: Int, max: Int) -> [String] {
        let width = columnsMax - indent
        var lines = TextTable.wrapped(text, width: width).split(separator: "\n").map(String.init)
        if lines.count > max { lines = Array(lines.prefix(max - 1)) + [lines[max - 1] + " ..."] }
        return lines.filter { !$0.isEmpty }.map { String(repeating: " ", count: indent) + fitted($0, width) }
    }
}
