import LinkModel
import Testing

@testable import ConfigFiles

@Suite struct NetemExpressionTests {
    @Test func readsTheUsualWords() throws {
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
        let strange = try NetemExpression.parse("delay 10ms 5ms distribution pareto duplicate 1% reorder 25%")
        #expect(strange.jitter == Jitter(span: .milliseconds(5), distribution: .pareto))
        #expect(strange.duplication.partsPerMillion == 10_000)
        #expect(strange.reordering.partsPerMillion == 250_000)
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
        ("loss 1% 25%", 9, "a correlation of losses is not modelled"),
        ("delay 1ms 1ms 25%", 15, "a correlation is not modelled"),
        ("delay 1ms 1ms distribution paretonormal", 28, "'paretonormal' is not modelled"),
        ("rate -1kbit", 6, "'-1kbit' is negative"),
        ("limit many", 7, "'many' is not a number of packets"),
        ("delay 1ms delay 2ms", 11, "'delay' is given twice"),
        ("duplicate", 1, "'duplicate' needs a value"),
        ("reorder 5%", 1, "'reorder' needs a delay"),
        ("delay 9ms reorder 5% 50%", 22, "a correlation"),
        ("delay 9ms reorder 5% gap 5", 22, "'gap' is not modelled"),
        ("loss timed 2s", 6, "'timed' needs"),
        ("corrupt 1%", 1, "'corrupt' is not modelled"),
        ("loss state 1%", 6, "'loss state' is not modelled"),
        ("rate nan", 6, "'nan' is not a number"),
    ]) func pointsAtTheWord(_ text: String, _ column: Int, _ message: String) {
        let refusal = #expect(throws: NetemExpression.Refusal.self) { try NetemExpression.parse(text) }
        #expect(refusal?.column == column)
        #expect(refusal?.message.hasPrefix(message) == true, "\(refusal?.message ?? "")")
    }
}
