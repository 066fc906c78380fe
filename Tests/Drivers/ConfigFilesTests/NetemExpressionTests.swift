import Determinism
import LinkModel
import Testing

@testable import ConfigFiles

@Suite struct NetemExpressionTests {
    @Test func readsEachKeyword() throws {
        let conditions = try NetemExpression.parse("delay 100ms 20ms distribution normal loss 1% rate 780kbit limit 50")
        #expect(conditions.delay == .milliseconds(100))
        #expect(conditions.jitter == Jitter(span: .milliseconds(20), distribution: .normal))
        #expect(conditions.loss.partsPerMillion == 10_000)
        #expect(conditions.rate == .kilobits(780))
        #expect(conditions.queue == .packets(50))
        #expect(try NetemExpression.parse("").queue == .packets(1000))
        #expect(try NetemExpression.parse("delay 5ms 1ms").jitter?.distribution == .uniform)
        let bursts = try NetemExpression.parse("loss gemodel 1% 25% 70% 0.5%").bursts
        #expect(
            bursts
                == .gilbertElliott(
                    becomesBad: Probability(partsPerMillion: 10_000)!,
                    becomesGood: Probability(partsPerMillion: 250_000)!,
                    lossInBad: Probability(partsPerMillion: 700_000)!, lossInGood: Probability(partsPerMillion: 5000)!))
        let others = try NetemExpression.parse("delay 10ms 5ms distribution pareto duplicate 1% reorder 25%")
        #expect(others.jitter == Jitter(span: .milliseconds(5), distribution: .pareto))
        #expect(others.duplication.partsPerMillion == 10_000)
        #expect(others.reordering.partsPerMillion == 250_000)
        #expect(
            try NetemExpression.parse("loss timed 20s 800ms 90%").bursts
                == .timed(
                    good: .seconds(20), bad: .milliseconds(800), lossInBad: Probability(partsPerMillion: 900_000)!,
                    lossInGood: .zero))
        #expect(
            try NetemExpression.parse("loss gemodel 10%").bursts
                == .gilbertElliott(
                    becomesBad: Probability(partsPerMillion: 100_000)!,
                    becomesGood: Probability(partsPerMillion: 900_000)!,
                    lossInBad: .one, lossInGood: .zero))
    }

    @Test(arguments: [
        ("dealy 100ms", 1, "unknown word 'dealy'; did you mean 'delay'"),
        ("delay 100", 7, "'100' has no unit"),
        ("delay", 1, "'delay' needs a value"),
        ("delay 1ms loss 101%", 16, "'101%' is out of range"),
        ("loss 1% 25%", 9, "a loss correlation is not supported"),
        ("delay 1ms 1ms 25%", 15, "a correlation is not supported"),
        ("delay 1ms 1ms distribution paretonormal", 28, "'paretonormal' is not supported"),
        ("rate -1kbit", 6, "'-1kbit' is negative"),
        ("limit many", 7, "'many' is not a number of packets"),
        ("delay 1ms delay 2ms", 11, "'delay' is given twice"),
        ("duplicate", 1, "'duplicate' needs a value"),
        ("reorder 5%", 1, "'reorder' needs a delay"),
        ("delay 9ms reorder 5% 50%", 22, "a correlation"),
        ("delay 9ms reorder 5% gap 5", 22, "'gap' is not supported"),
        ("loss timed 2s", 6, "'timed' needs"),
        ("corrupt 1%", 1, "'corrupt' is not supported"),
        ("loss state 1%", 6, "'loss state' is not supported"),
        ("rate nan", 6, "'nan' is not a number"),
        ("rate 1000000", 6, "'1000000' has no unit"),
        ("rate 5%", 6, "unknown unit '%'"),
        ("rate 1m", 6, "unknown unit 'm'"),
        ("rate 1KB/s", 6, "unknown unit 'KB/s'"),
        ("rate 0kbit", 6, "'0kbit' stops all traffic"),
        ("rate 1tbit", 6, "'1tbit' is out of range"),
        ("delay 5m", 7, "unknown unit 'm'"),
    ]) func anErrorHasTheColumnOfItsWord(_ text: String, _ column: Int, _ message: String) {
        let error = #expect(throws: NetemExpression.ParseError.self) { try NetemExpression.parse(text) }
        #expect(error?.column == column)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    /// The units of rates in tc(8): `bit` counts bits, `bps` counts bytes, and case does not matter.
    @Test(arguments: [
        ("8000bit", 8000), ("8kbit", 8000), ("8mbit", 8_000_000), ("8gbit", 8_000_000_000),
        ("0.05tbit", 50_000_000_000),
        ("1000bps", 8000), ("1kbps", 8000), ("1mbps", 8_000_000), ("1gbps", 8_000_000_000),
        ("0.01tbps", 80_000_000_000),
        ("8kibit", 8192), ("8mibit", 8_388_608), ("8gibit", 8_589_934_592), ("0.03125tibit", 34_359_738_368),
        ("1kibps", 8192), ("1mibps", 8_388_608), ("1gibps", 8_589_934_592), ("0.0078125tibps", 68_719_476_736),
        ("1Mbps", 8_000_000), ("1MBps", 8_000_000), ("1KiBps", 8192), ("8Kbit", 8000), ("8KIBIT", 8192),
        ("1.5mbit", 1_500_000), ("1.5mbps", 12_000_000), ("0.3kibit", 307), ("780kbit/s", 780_000),
    ]) func ratesHaveTheUnitsOfTC(_ text: String, _ bitsPerSecond: Int64) throws {
        #expect(try NetemExpression.parse("rate \(text)").rate?.bitsPerSecond == bitsPerSecond)
    }

    /// The units of times in tc(8).
    @Test(arguments: [
        ("2s", 2_000_000_000), ("2sec", 2_000_000_000), ("2secs", 2_000_000_000), ("2S", 2_000_000_000),
        ("1.5ms", 1_500_000), ("2msec", 2_000_000), ("2msecs", 2_000_000), ("2MS", 2_000_000),
        ("2us", 2000), ("2usec", 2000), ("2usecs", 2000), ("20ns", 20), ("20nsec", 20), ("20nsecs", 20), ("0", 0),
    ]) func timesHaveTheUnitsOfTC(_ text: String, _ nanoseconds: Int64) throws {
        #expect(try NetemExpression.parse("delay \(text)").delay.count == nanoseconds)
    }
}
