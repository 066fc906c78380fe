import Determinism
import TestSupport
import Testing

@testable import LinkModel

/// Quantities that come from outside or grow with time do not trap.
@Suite struct ArithmeticTests {
    private static let extremes: [Int64] = [
        .min, .min + 1, -1_000_000_007, -1, 0, 1, 2, 999_999_999, 1 << 31, 1 << 32, 1 << 62, .max - 1, .max,
    ]

    @Test func sumsDifferencesAndProductsSaturate() {
        for left in Self.extremes {
            for right in Self.extremes {
                let (sum, noSum) = left.addingReportingOverflow(right)
                #expect(left.addingSaturating(right) == (noSum ? (left < 0 ? .min : .max) : sum))
                let (difference, noDifference) = left.subtractingReportingOverflow(right)
                #expect(left.subtractingSaturating(right) == (noDifference ? (left < 0 ? .min : .max) : difference))
                let (product, noProduct) = left.multipliedReportingOverflow(by: right)
                #expect(
                    left.multipliedSaturating(by: right)
                        == (noProduct ? ((left < 0) == (right < 0) ? .max : .min) : product))
            }
        }
    }

    /// The reference for a b / c is long division.
    @Test(arguments: 0..<20) func scalingIsExactWhereTheResultFits(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let divisor = Int64.random(
                in: 1...Int64.max >> Int64.random(in: 0..<62, using: &generator), using: &generator)
            let value =
                Int64.random(in: .min...(.max), using: &generator) >> Int64.random(in: 0..<63, using: &generator)
            let factor = Int64.random(in: 0...divisor, using: &generator)
            // value * factor / divisor, bit by bit.
            var quotient: UInt64 = 0
            var rest: UInt64 = 0
            for bit in stride(from: 63, through: 0, by: -1) {
                // quotient = floor(magnitude's upper bits * factor / divisor)
                quotient = quotient << 1
                let doubled = rest.addingReportingOverflow(rest)
                var high: UInt64 = doubled.overflow ? 1 : 0
                var low = doubled.partialValue
                if value.magnitude >> UInt64(bit) & 1 == 1 {
                    let more = low.addingReportingOverflow(factor.magnitude)
                    high += more.overflow ? 1 : 0
                    low = more.partialValue
                }
                let (digits, remainder) = divisor.magnitude.dividingFullWidth((high, low))
                quotient += digits
                rest = remainder
            }
            let expected = quotient > UInt64(Int64.max) ? Int64.max : Int64(quotient)
            let scaled = value.scaledSaturating(by: factor, over: divisor)
            #expect(scaled == (value < 0 ? -expected : expected), "seed \(seed): \(value) * \(factor) / \(divisor)")
        }
        for value in Self.extremes {
            for factor in Self.extremes { _ = value.scaledSaturating(by: factor, over: 1) }
        }
    }

    @Test func timesSaturate() {
        #expect(Nanoseconds(Duration.seconds(Int64.max)).count == .max)
        #expect(Nanoseconds(Duration.seconds(Int64.min)).count == .min)
        #expect(Nanoseconds(Duration(secondsComponent: 2, attosecondsComponent: 3_000_000_000)).count == 2_000_000_003)
        for count in Self.extremes {
            for span in [Nanoseconds.seconds(count), .milliseconds(count), .microseconds(count)] {
                #expect((span.count < 0) == (count < 0) && span.count.magnitude >= count.magnitude)
            }
            for other in Self.extremes {
                _ = Nanoseconds(count) + Nanoseconds(other)
                _ = Instant(Nanoseconds(count)) - Instant(Nanoseconds(other))
            }
        }
        #expect(Instant.never + .seconds(1) == .never)
        #expect(Instant(.seconds(1)) + Nanoseconds(.max) == .never)
    }

    @Test func serializationTimesAreMonotonicForAnyNumberOfBytes() throws {
        for bits in Self.extremes where !Rate.allowed.contains(bits) { #expect(Rate(bitsPerSecond: bits) == nil) }
        for rate in [try #require(Rate(bitsPerSecond: 100)), try #require(Rate(bitsPerSecond: 100_000_000_000))] {
            var last = Nanoseconds(-1)
            for bytes in [0, 1, 1500, 999_999_999, 1_000_000_000, 1_000_000_001, 1 << 40, Int.max - 1, Int.max] {
                let span = rate.serializationTime(ofBytes: bytes)
                #expect(span >= last, "\(bytes) bytes at \(rate)")
                last = span
            }
        }
        #expect(QueueLimit.packets(.max).approximateBytes == .max)
    }

    @Test func randomNumbersKeepTheirBoundsForEverySpan() {
        var stream = RandomStream(seed: 5, "draws")
        for span in Self.extremes where span >= 0 {
            for _ in 0..<100 {
                #expect((-span...span).contains(stream.integer(upToMagnitude: span)))
                for distribution in Jitter.Distribution.allCases {
                    _ = Jitter(span: Nanoseconds(span), distribution: distribution).draw(&stream)
                }
                let drawn = stream.exponential(mean: max(1, span))
                #expect((0...Int64.max / 4).contains(drawn))
            }
        }
        for probability in [Double.nan, .infinity, -.infinity, -0.0, .greatestFiniteMagnitude, .leastNonzeroMagnitude] {
            #expect(stream.bool(probability: probability) == (probability >= 1))
            var losses = CorrelatedLoss(rate: probability, correlation: probability, random: stream)
            #expect((0...1).contains(losses.rate) && (0...1).contains(losses.correlation))
            _ = losses.losesNext()
        }
    }
}
