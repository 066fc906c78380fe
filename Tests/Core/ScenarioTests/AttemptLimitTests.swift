import Determinism
import Testing

@testable import Scenario

@Suite struct AttemptLimitTests {
    /// Returns the number of the first attempt that exceeds the limit; `nil` if none of the given number does.
    private static func first(of count: Int64, every span: Nanoseconds, steps: Int = 0, fill: Int? = nil) -> Int64? {
        var scenario = Scenario(name: "attempts")
        scenario.fill = fill.map { Scenario.Fill(notes: $0, bytes: 1) }
        let step = Scenario.Step(
            trigger: .at(.zero), action: nil, mark: "m", location: SourceLocation(file: "a.yaml", line: 1, column: 1))
        scenario.steps = [Scenario.Step](repeating: step, count: steps)
        var limit = AttemptLimit(scenario)
        return (1...count).first { limit.attempted(at: Instant(Nanoseconds(span.count * $0))) != nil }
    }

    @Test func aClientWithDelaysStaysWithinTheLimit() {
        #expect(Self.first(of: 100_000, every: .seconds(1)) == nil)
        #expect(Self.first(of: 100_000, every: .milliseconds(50)) == nil)
    }

    @Test func attemptsAtOnceExceedTheLimit() {
        #expect(Self.first(of: 10_000, every: .zero) == 1001)
        #expect(Self.first(of: 10_000, every: .zero, steps: 10) == 1201)
        #expect(Self.first(of: 10_000, every: .zero, fill: 100) == 3001, "generated notes are fetched too")
        // 25 per second are 5 above the rate.
        #expect(Self.first(of: 10_000, every: .milliseconds(40)) == 4997)
    }

    @Test func thePauseAfterABurstIsMadeUpFor() throws {
        var limit = AttemptLimit(Scenario(name: "attempts"))
        for burst in 0..<10 as Range<Int64> {
            for _ in 0..<1000 { #expect(limit.attempted(at: Instant(.seconds(60 * burst))) == nil) }
        }
        let excess = try #require((0...1000).compactMap { _ in limit.attempted(at: Instant(.seconds(600))) }.first)
        #expect(excess.count == 1001)
    }
}
