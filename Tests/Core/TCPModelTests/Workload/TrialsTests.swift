import Determinism
import LinkModel
import Testing

@testable import TCPModel

private let threeG = Conditions(
    up: DirectionConditions(rate: .kilobits(330), delay: .milliseconds(100)),
    down: DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)))

@Suite struct TrialsTests {
    /// Medians measured between two Linux kernels over a packet link, in milliseconds from the request.
    @Test(arguments: [
        ("ttfb", 208), ("down:1024", 217), ("down:10240", 315), ("down:102400", 1357), ("down:1048576", 11_410),
        ("up:1024", 229), ("up:10240", 461), ("up:102400", 2774), ("up:1048576", 26_536),
    ]) func transfersOver3GTakeTheMeasuredTime(_ transfer: String, _ milliseconds: Double) throws {
        var trials = Trials(threeG, seed: 1)
        let result = trials.run(try #require(Transfer(transfer)))
        let done = try #require(result.lastByte)
        #expect(abs(done.inMilliseconds - milliseconds) < 1.5, "\(transfer): \(done.inMilliseconds)")
        #expect(result.failure == nil)
    }

    /// Seconds from the end of the outage to the first byte: the measured 10th to 90th percentile.
    @Test(arguments: [
        ("oconn:3", 0.5...0.9), ("oconn:10", 1.7...2.1), ("oreq:10", 0.7...1.1), ("odrip:10", 5.5...6.1),
        ("obulk:3:204800:1", 3.5...4.2),
    ]) func dataResumesAfterOutagesAtTheMeasuredTime(_ transfer: String, _ seconds: ClosedRange<Double>) throws {
        var trials = Trials(threeG, seed: 2)
        let transfer = try #require(Transfer(transfer))
        let resumes = (0..<21).compactMap { _ in trials.run(transfer).resume?.inSeconds }.sorted()
        #expect(resumes.count == 21)
        #expect(seconds.contains(resumes[10]), "\(resumes[10])")
    }

    @Test func aSummaryHasPercentilesByNearestRank() throws {
        let transfer = try #require(Transfer("conn"))
        var summary = TrialSummary(of: transfer)
        #expect(summary.total == nil)
        for milliseconds in (1...20).reversed() {
            var result = TrialResult(transfer)
            result.connect = .milliseconds(Int64(milliseconds))
            summary.add(result)
        }
        var failed = TrialResult(transfer)
        failed.connect = .seconds(9)
        failed.failure = "stalled"
        summary.add(failed)
        #expect(summary.trials == 21 && summary.failures == 1)
        let total = try #require(summary.total)
        #expect(total.p50 == .milliseconds(10) && total.p95 == .milliseconds(19) && total.max == .milliseconds(20))
        #expect(summary.firstByte == nil && summary.resume == nil)
    }

    @Test(arguments: [
        "ttfb", "conn", "down:100", "pp:3", "pp:3:500", "odrip:3", "obulk:3:1000", "obulk:3:1000:0.5", "oreq:2",
    ])
    func theTextOfATransferParsesToTheSameTransfer(_ text: String) throws {
        let transfer = try #require(Transfer(text))
        #expect(transfer.text == text)
    }

    @Test func theSameSeedGivesTheSameResults() throws {
        let lossy = DirectionConditions(
            rate: .kilobits(780), delay: .milliseconds(100), loss: Probability(partsPerMillion: 50_000)!)
        func lines(seed: UInt64) throws -> [String] {
            var trials = Trials(Conditions(up: lossy, down: lossy), seed: seed)
            let transfer = try #require(Transfer("pp:20"))
            return (0..<5).map { trials.run(transfer).json(profile: "x", repetition: $0) }
        }
        #expect(try lines(seed: 1) == lines(seed: 1))
        #expect(try lines(seed: 1) != lines(seed: 2))
    }

    @Test(arguments: [
        "", "nonsense", "down", "down:", "down:0", "down:-1", "up:99", "pp:0", "pp:3:1", "obulk:3", "obulk:3:10:x",
        "oreq:0", "oreq:99999", "ttfb:1", "down:99999999999999999999", "odrip:3:4",
    ]) func invalidItemsAreRejected(_ text: String) {
        #expect(Transfer(text) == nil)
    }

    @Test func aPlanIsAListOfItems() throws {
        #expect(
            try Transfer.plan("ttfb,down:10240,pp:3") == [.ttfb, .down(bytes: 10_240), .pingPong(count: 3, bytes: 200)])
        let error = #expect(throws: Transfer.PlanError.self) { try Transfer.plan("ttfb,down:0") }
        #expect(error?.description.hasPrefix("'down:0' must be ttfb, down:N") == true)
    }

    @Test func millisecondsAreRoundedExactly() {
        #expect(TrialResult.milliseconds(Nanoseconds(208_063_499)) == "208.063")
        #expect(TrialResult.milliseconds(Nanoseconds(208_063_500)) == "208.064")
        #expect(TrialResult.milliseconds(.zero) == "0.000")
    }
}
