import Testing

@testable import ScenarioRunner

@Suite struct RunProgressTests {
    @Test func nothingIsReportedInTheFirstTwoSeconds() {
        var progress = RunProgress(planned: 10, isRewritten: false)
        progress.runStarted()
        #expect(progress.report(at: .milliseconds(1999)) == nil)
        #expect(progress.report(at: .seconds(2)) == "0 of 10 done, 0 failed, 1 running")
    }

    @Test func aTerminalIsUpdatedMoreOftenThanAFile() {
        var file = RunProgress(planned: 10, isRewritten: false)
        var terminal = RunProgress(planned: 10, isRewritten: true)
        var counts = (file: 0, terminal: 0)
        for tenth in 0..<300 {
            if file.report(at: .milliseconds(100 * tenth)) != nil { counts.file += 1 }
            if terminal.report(at: .milliseconds(100 * tenth)) != nil { counts.terminal += 1 }
        }
        #expect(counts.file == 3)
        #expect((90...140).contains(counts.terminal))
    }

    @Test func aReportHasRateAndTimeLeft() {
        var progress = RunProgress(planned: 60, isRewritten: false)
        for index in 0..<12 {
            progress.runStarted()
            progress.runEnded(passed: index > 0)
        }
        progress.runStarted()
        #expect(progress.line(at: .seconds(4)) == "12 of 60 done, 1 failed, 1 running, 3.0 runs/s, 16 s left")
        #expect(progress.line(at: .seconds(240)) == "12 of 60 done, 1 failed, 1 running, 3.0 runs/min, 16 min left")
    }

    @Test func nothingIsReportedAtTheEnd() {
        var progress = RunProgress(planned: 1, isRewritten: false)
        progress.runStarted()
        progress.runEnded(passed: true)
        #expect(progress.report(at: .seconds(5)) == nil)
    }
}
