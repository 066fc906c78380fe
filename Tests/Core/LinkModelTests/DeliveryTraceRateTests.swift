import Determinism
import LinkModel
import Testing

@Suite struct DeliveryTraceRateTests {
    @Test func stepsBecomeOpportunitiesOfTheirRate() throws {
        let steps = [(0, 12_000_000), (10, 0), (20, 24_000_000)]
            .map { DeliveryTrace.Step(at: .milliseconds(Int64($0.0)), bitsPerSecond: Int64($0.1)) }
        let trace = try DeliveryTrace(steps: steps, until: .milliseconds(30))
        #expect(trace.milliseconds == Array(1...10) + (21...30).flatMap { [UInt32($0), UInt32($0)] })
        #expect(trace.rates(window: .milliseconds(10)) == [12_000_000, 0, 24_000_000])
        #expect(trace.longestGap == .milliseconds(11))
        // A slow rate adds up over several steps.
        let slow = (0..<10).map { DeliveryTrace.Step(at: .milliseconds($0 * 100), bitsPerSecond: 60_000) }
        #expect(try DeliveryTrace(steps: slow, until: .seconds(1)).milliseconds == [200, 400, 600, 800, 1000])
    }

    @Test func aTraceThatEndsSilentlyKeepsItsLength() throws {
        let steps = [(0, 12_000_000), (5, 0)]
            .map { DeliveryTrace.Step(at: .milliseconds(Int64($0.0)), bitsPerSecond: Int64($0.1)) }
        #expect(try DeliveryTrace(steps: steps, until: .milliseconds(50)).length == .milliseconds(50))
    }

    @Test func partsScalesAndRepetitionsKeepTheTimes() throws {
        let trace = try DeliveryTrace(milliseconds: [2, 4, 6, 8, 10])
        #expect(try trace.part(from: .milliseconds(3), to: .milliseconds(8)).milliseconds == [1, 3, 5])
        #expect(try trace.scaled(byThousandths: 500).milliseconds == [4, 8, 10])
        #expect(try trace.scaled(byThousandths: 2000).milliseconds == [2, 2, 4, 4, 6, 6, 8, 8, 10, 10])
        #expect(try trace.repeated(2).milliseconds == [2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
        #expect(throws: DeliveryTraceError.isEmpty) { try trace.part(from: .milliseconds(20), to: .milliseconds(30)) }
        #expect(throws: DeliveryTraceError.tooManyOpportunities) { try trace.repeated(.max) }
        #expect(throws: DeliveryTraceError.tooLate(index: 2)) {
            try DeliveryTrace(milliseconds: [1, 80_000_000]).repeated(2)
        }
    }

    @Test func extremesAreErrors() throws {
        let fast = [DeliveryTrace.Step(at: .zero, bitsPerSecond: .max)]
        #expect(throws: DeliveryTraceError.tooManyOpportunities) { try DeliveryTrace(steps: fast, until: .seconds(60)) }
        #expect(throws: DeliveryTraceError.tooLate(index: 1)) {
            try DeliveryTrace(steps: fast, until: Nanoseconds(.max))
        }
        #expect(throws: DeliveryTraceError.isEmpty) { try DeliveryTrace(steps: fast, until: .zero) }
        #expect(throws: DeliveryTraceError.isEmpty) { try DeliveryTrace(steps: [], until: .seconds(1)) }
    }
}
