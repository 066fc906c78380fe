import Determinism
import Foundation
import LinkModel
import TCPModel
import TestSupport
import Testing

@testable import ConfigFiles

/// Extreme quantities: each is rejected, or is within the limits of the model.
@Suite(.timeLimit(.minutes(20))) struct QuantityExtremesTests {
    private static let numbers = [
        "0", "1", "0.000000000001", "999999999999", "1000000000000", "99999999999.9", "0.1", "1.", ".5", "-1", "+1",
        "1e400",
        "nan", "inf", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
        "18446744073709551616", "99999999999999999999999999999999", "0x7fffffffffffffff", "²", "٣", "1_000", "",
    ]
    private static let units = [
        "", " ", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "gbit", "us", "µs", "ms", "s", "m", "h", "%", " %", "packets",
        "B", "KB", "MB", "KiB", "MiB", "mbps", "tibit", "KiBps", "usecs", "h59m59s999ms", "s1h", "ms ms",
    ]

    private static func quantity(_ generator: inout SeededGenerator) -> String {
        numbers.randomElement(using: &generator)! + (Bool.random(using: &generator) ? " " : "")
            + units.randomElement(using: &generator)!
    }

    @Test(arguments: randomSeeds(20)) func everyQuantityIsRejectedOrWithinLimits(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let text = Self.quantity(&generator)
            if let rate = try? Quantity.rate(text) {
                #expect(Rate.allowed.contains(rate.bitsPerSecond), "\(text), seed \(seed)")
            }
            if let delay = try? Quantity.delay(text) {
                #expect(delay >= .zero && delay <= DirectionConditions.delayMax, "\(text), seed \(seed)")
            }
            if let loss = try? Quantity.probability(text) {
                #expect((0...1_000_000).contains(loss.partsPerMillion), "\(text), seed \(seed)")
            }
            if let time = try? Quantity.time(text) {
                #expect(time >= .zero && time <= Timeline.timeMax, "\(text), seed \(seed)")
            }
            if let queue = try? Quantity.queue(text) { #expect(queue.approximateBytes > 0, "\(text), seed \(seed)") }
            _ = try? Quantity.jitter(text + [" normal", " pareto overtaking", ""].randomElement(using: &generator)!)
            _ = try? Quantity.bursts("timed \(text) \(Self.quantity(&generator))")
            _ = try? Quantity.packetNumbers("\(text)-\(Self.quantity(&generator)), \(Self.quantity(&generator))")
            _ = try? Quantity.connectionPolicy(text)
        }
    }

    @Test(arguments: randomSeeds(20)) func everyExpressionIsRejectedOrRuns(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func compact() -> String { Self.quantity(&generator).filter { $0 != " " } }
        for _ in 0..<40 {
            let parts = [
                "delay \(compact()) \(compact())", "delay 600s 600s distribution pareto", "loss \(compact())",
                "loss gemodel \(compact()) \(compact())", "loss timed \(compact()) \(compact())",
                "duplicate \(compact())",
                "reorder \(compact())", "rate \(compact())", "limit \(compact())", "rate 100gbit", "limit 100000",
            ]
            let text = parts.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator))
                .joined(separator: " ")
            guard let conditions = try? NetemExpression.parse(text) else { continue }
            // Accepted conditions can be run.
            var link = TCPLink(Conditions(up: conditions, down: conditions), seed: seed)
            let flow = link.open(at: .start)
            link.send(100_000, on: flow, .up, at: .start)
            for _ in 0..<500 where !link.advance(to: Instant(.seconds(1_000_000))) { break }
        }
        for _ in 0..<20 {
            let text = "0s: 3g, \(Self.quantity(&generator)): {ramp: edge, over: \(Self.quantity(&generator))}"
            guard let file = try? TimelineFile(inline: text, source: "test") else { continue }
            var link = TCPLink(.clear, seed: seed)
            link.startTimeline(file.timeline, from: Timeline.timeMax, at: .start)
        }
    }

    @Test func timestampsOfATraceAreRejectedOrWithinLimits() {
        for text in Self.numbers {
            for lines in [text, "0\n\(text)", "\(text)\n\(text)\n86400000"] {
                guard let trace = try? TraceFile.parse(Data(lines.utf8), file: "t") else { continue }
                #expect(trace.length > .zero && trace.averageBitsPerSecond >= 0)
            }
        }
    }
}
