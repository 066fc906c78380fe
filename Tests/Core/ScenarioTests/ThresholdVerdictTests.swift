import Determinism
import Testing

@testable import Scenario

/// Verdicts about metrics.
@Suite struct ThresholdVerdictTests {
    @Test func aPercentileIsTheNearestRank() {
        func values(_ samples: [Int64]) -> [Int64?] {
            [.p50, .p90, .p95, .p99, .max].map { ExpectationEvaluator.value(of: $0, samples) }
        }
        #expect(values([7]) == [7, 7, 7, 7, 7])
        #expect(values([1, 2]) == [1, 2, 2, 2, 2])
        #expect(values(Array(1...10)) == [5, 9, 10, 10, 10])
        #expect(values(Array(1...100)) == [50, 90, 95, 99, 100])
        #expect(values(Array(1...200)) == [100, 180, 190, 198, 200])
        #expect(values([]) == [nil, nil, nil, nil, nil])
    }

    private static func outcome(
        _ run: HandwrittenRun, _ metric: Threshold.Metric, _ bounds: (Threshold.Statistic, Int64)...
    ) -> Verdict.Outcome {
        run.outcome(.threshold(Threshold(metric, bounds.map { Threshold.Bound($0.0, max: $0.1) })))
    }

    private static let second: Int64 = 1_000_000_000

    @Test func attemptsAreThoseOfOneWrite() {
        var run = HandwrittenRun()
        #expect(Self.outcome(run, .attemptsPerWrite, (.max, 1)) == .inconclusive("there is no sample"))
        for _ in 0..<3 { run.exchange(1, responded: nil, received: nil) }
        run.exchange(2, key: "other")
        run.exchange(3, key: nil, body: 4)
        run.exchange(4, key: nil, body: 5)
        // Reads, and the requests of writers, are no attempts.
        for _ in 0..<9 { run.exchange(5, "GET", key: nil) }
        for _ in 0..<9 { run.exchange(5, of: "W", key: "w") }
        #expect(Self.outcome(run, .attemptsPerWrite, (.p50, 1), (.max, 3)) == .pass)
        #expect(Self.outcome(run, .attemptsPerWrite, (.p50, 1), (.max, 2)) == .fail("max is 3 (4 samples)"))
    }

    @Test func aChangeIsSavedWhenItIsAccepted() {
        var run = HandwrittenRun()
        run.add(1, .action(actor: "A", .edit(row: "n1")))
        run.add(1, .action(actor: "B", .edit(row: "n1")))
        run.add(3, .accepted(device: "A", row: "n1"))
        run.add(4, .accepted(device: "B", row: "n1"))
        #expect(Self.outcome(run, .saveToScreen, (.max, 3 * Self.second)) == .pass)
        #expect(Self.outcome(run, .saveToScreen, (.max, 2 * Self.second)) == .fail("max is 3.0 s (2 samples)"))
        #expect(Self.outcome(run, .saveToScreen, (.p50, 2 * Self.second)) == .pass)
    }

    @Test func aChangeIsSyncedWhenNothingOfItIsPending() {
        var run = HandwrittenRun()
        run.show(0, "A", .plain)
        #expect(Self.outcome(run, .saveToSynced, (.p50, 1)) == .inconclusive("there is no sample"))
        run.add(1, .action(actor: "A", .edit(row: "n1")))
        run.add(1, .accepted(device: "A", row: "n1"))
        #expect(Self.outcome(run, .saveToSynced, (.p50, 1)) == .inconclusive("there is no sample"))
        run.show(1, "A", .upload)
        run.show(2, "A", .conflict)
        #expect(
            Self.outcome(run, .saveToSynced, (.p50, Self.second))
                == .fail("p50 is infinite: a change was never synced (1 sample)"))
        run.show(7, "A", .plain)
        #expect(Self.outcome(run, .saveToSynced, (.p50, 6 * Self.second)) == .pass)
        #expect(Self.outcome(run, .saveToSynced, (.p50, 5 * Self.second)) == .fail("p50 is 6.0 s (1 sample)"))
        // A removed note is synced too.
        run.add(8, .action(actor: "A", .delete(row: "n1")))
        run.add(8, .accepted(device: "A", row: "n1"))
        run.show(8, "A", .upload)
        run.add(9, .device("A", .init(rows: [], outbox: 0)))
        #expect(Self.outcome(run, .saveToSynced, (.p50, Self.second), (.max, 6 * Self.second)) == .pass)
    }
}
