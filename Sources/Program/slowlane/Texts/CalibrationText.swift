internal import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Foundation
internal import LinkModel
internal import TCPModel
internal import Wire

/// The results of a calibration as text.
struct CalibrationText {
    let calibration: Calibration
    /// The name of the capture, without its folder.
    let source: String
    /// The paths of traces that replace rates.
    var traces = PerDirection<String?>(up: nil, down: nil)

    private var description: String {
        "\(source), \(Units.time(.milliseconds(calibration.duration / 1_000_000))), "
            + "\(TextTable.count(calibration.connectionCount, "connection")), captured at the "
            + "\(calibration.near == .client ? "client" : "server")"
    }

    // MARK: Profile

    /// The profile file.
    var profile: String {
        let conditions = calibration.conditions
        var lines = [
            "profile: \(Profile.formatVersion)",
            "name: \(JSONText.string("Calibrated from \(source)"))",
            "about: >-",
            "  Estimated from captured packets by 'slowlane calibrate'. The interval after each figure contains it with a probability",
            "  of some 95 %. One end cannot tell the delays of the directions apart, so each has half of the round trip.",
            "sources:",
            "  capture: \(JSONText.string(description))",
        ]
        lines += calibration.notes.map { "# \($0)" }
        for direction in [Direction.down, .up] {
            let figures = calibration.directions[direction]
            lines.append("\(direction):")
            lines += rate(figures, conditions[direction], direction)
            lines += figure(
                "delay", calibration.roundTrip, QuantityText.delay(Self.rounded(conditions[direction].delay)),
                interval: { Self.range($0, 2e6, "ms") })
            lines += jitter(figures, conditions[direction])
            lines += loss(figures, conditions[direction])
            lines += queue(figures, conditions[direction], direction)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func figure(
        _ key: String, _ figure: Calibration.Figure, _ value: String, interval: (Estimate) -> String
    ) -> [String] {
        switch figure {
        case .known(let estimate, let evidence):
            [
                "  # \(interval(estimate)): \(evidence)",
                "  \(key): { value: \(value), source: capture, grade: observed }",
            ]
        case .unknown(let reason): ["  # \(key) is not known: \(reason)"]
        }
    }

    private func rate(
        _ figures: Calibration.DirectionFigures, _ conditions: DirectionConditions, _ direction: Direction
    ) -> [String] {
        let text = conditions.rate.map { Self.rounded($0).description } ?? "none"
        var lines = figure("rate", figures.rate, text) { Self.range($0, 1e3, "kbit/s") }
        guard !figures.rateOverTime.isEmpty, lines.count == 2 else { return lines }
        lines.insert("  # the rate changes: \(Self.variation(figures.rateOverTime))", at: 1)
        if let path = traces[direction] {
            lines[2] = "  trace: { value: \(JSONText.string(path)), source: capture, grade: observed }"
        }
        return lines
    }

    private func jitter(_ figures: Calibration.DirectionFigures, _ conditions: DirectionConditions) -> [String] {
        var lines = figure(
            "jitter", figures.jitter,
            conditions.jitter.map { jitter in
                QuantityText.jitter(
                    Jitter(span: Self.rounded(jitter.span), distribution: jitter.distribution))
            } ?? "0 ms"
        ) { "standard deviation \(Self.range($0, 1e6, "ms"))" }
        if conditions.jitter == nil, lines.count == 2 { lines.removeLast() }
        return lines
    }

    private func loss(_ figures: Calibration.DirectionFigures, _ conditions: DirectionConditions) -> [String] {
        var lines = figure("loss", figures.loss, QuantityText.percentage(conditions.loss)) { Self.range($0, 0.01, "%") }
        if let bursts = conditions.bursts, lines.count == 2 {
            lines[1] = "  bursts: { value: \(QuantityText.bursts(bursts)), source: capture, grade: observed }"
        }
        return lines
    }

    private func queue(
        _ figures: Calibration.DirectionFigures, _ conditions: DirectionConditions, _ direction: Direction
    ) -> [String] {
        var lines = figure("queue", figures.queuePackets, "\(conditions.queue)") { packets in
            let bytes = figures.queueBytes.estimate.map { ", \(Self.range($0, 1000, "KB"))" } ?? ""
            return Self.range(packets, 1, "packets") + bytes
        }
        if calibration.queueSeen(direction) != nil {
            lines.append(
                "  # a queue of twice the longest one seen, so that it does not limit the transfers of the capture")
            lines.append("  queue: { value: \(conditions.queue), source: capture, grade: judgement }")
        }
        return lines
    }

    /// Returns the interval of an estimate in a unit.
    private static func range(_ estimate: Estimate, _ unit: Double, _ name: String) -> String {
        "\(number(estimate.low / unit)) to \(number(estimate.high / unit)) \(name)"
    }

    /// Returns a number with four significant digits.
    private static func number(_ value: Double) -> String {
        guard value != 0, value.isFinite else { return "0" }
        let digits = max(0, 3 - Int(log10(abs(value)).rounded(.down)))
        let text = String(format: "%.\(min(digits, 4))f", value)
        guard text.contains(".") else { return text }
        var trimmed = Substring(text)
        while trimmed.last == "0" { trimmed.removeLast() }
        if trimmed.last == "." { trimmed.removeLast() }
        return String(trimmed)
    }

    private static func variation(_ rates: [(time: Int64, rate: Double)]) -> String {
        let sorted = rates.map(\.rate).sorted()
        func share(_ part: Double) -> String { number(sorted[Int(Double(sorted.count - 1) * part)] / 1e3) }
        return
            "\(share(0.1)), \(share(0.5)) and \(share(0.9)) kbit/s are exceeded in 90, 50 and 10 % of \(rates.count) busy seconds"
    }

    /// Returns a rate with four significant digits.
    private static func rounded(_ rate: Rate) -> Rate {
        var unit: Int64 = 1
        while rate.bitsPerSecond / unit >= 100_000 { unit *= 10 }
        return Rate(bitsPerSecond: (rate.bitsPerSecond + unit / 2) / unit * unit) ?? rate
    }

    /// Returns a time in steps of 10 µs.
    private static func rounded(_ time: Nanoseconds) -> Nanoseconds {
        Nanoseconds((time.count + 5000) / 10_000 * 10_000)
    }

    // MARK: Timeline

    /// The timeline of the outages.
    ///
    /// - Parameter profile: The path of the profile, relative to the timeline.
    func timeline(profile: String) -> String {
        var lines = [
            "timeline: \(TimelineFile.formatVersion)", "name: \(JSONText.string("Outages of \(source)"))",
            "about: \(JSONText.string("Estimated from \(description) by 'slowlane calibrate'."))", "grade: observed",
            "at:",
        ]
        var end: Int64 = -1
        let path = JSONText.string(profile.contains("/") ? profile : "./\(profile)")
        if calibration.outageSpans.first?.start ?? 1 > 0 { lines.append("  0s: \(path)") }
        for (outage, span) in zip(calibration.outages, calibration.outageSpans) where span.start > end {
            lines.append(
                "  # starts at \(Self.range(outage.start, 1e9, "s")), ends at \(Self.range(outage.end, 1e9, "s"))")
            lines.append("  \(QuantityText.time(Nanoseconds(span.start))): 100-loss")
            lines.append("  \(QuantityText.time(Nanoseconds(span.end))): \(path)")
            end = span.end
        }
        return lines.joined(separator: "\n") + "\n"
    }

    // MARK: JSON

    /// The result as one JSON object.
    var json: String {
        JSONText.object([
            ("capture", JSONText.string(source)), ("seconds", JSONText.number(Double(calibration.duration) / 1e9)),
            ("connections", "\(calibration.connectionCount)"),
            ("captured_at", JSONText.string(calibration.near == .client ? "client" : "server")),
            ("round_trip_ms", Self.json(calibration.roundTrip, 1e6)),
            ("down", json(.down)), ("up", json(.up)),
            (
                "outages",
                JSONText.array(
                    calibration.outages.map { outage in
                        JSONText.object([
                            ("start_s", Self.json(outage.start, 1e9, evidence: nil)),
                            ("end_s", Self.json(outage.end, 1e9, evidence: nil)),
                        ])
                    })
            ),
            ("notes", JSONText.array(calibration.notes.map(JSONText.string))),
        ])
    }

    private func json(_ direction: Direction) -> String {
        let figures = calibration.directions[direction]
        return JSONText.object([
            ("packets", "\(figures.packets)"), ("rate_bps", Self.json(figures.rate, 1)),
            ("peak_bps", JSONText.number(figures.peakRate.rounded())),
            ("jitter_ms", Self.json(figures.jitter, 1e6)), ("loss_percent", Self.json(figures.loss, 0.01)),
            ("bursts", figures.bursts.map { JSONText.string(QuantityText.bursts($0)) } ?? "null"),
            ("queue_packets", Self.json(figures.queuePackets, 1)), ("queue_bytes", Self.json(figures.queueBytes, 1)),
            ("queue_delay_max_ms", JSONText.number(figures.queueDelayMax / 1e6)),
            (
                "rate_over_time",
                JSONText.array(
                    figures.rateOverTime.map { part in
                        JSONText.object([
                            ("start_s", JSONText.number(Double(part.time) / 1e9)),
                            ("rate_bps", JSONText.number(part.rate.rounded())),
                        ])
                    })
            ),
        ])
    }

    private static func json(_ figure: Calibration.Figure, _ unit: Double) -> String {
        switch figure {
        case .known(let estimate, let evidence): json(estimate, unit, evidence: evidence)
        case .unknown(let reason): JSONText.object([("value", "null"), ("reason", JSONText.string(reason))])
        }
    }

    private static func json(_ estimate: Estimate, _ unit: Double, evidence: String?) -> String {
        JSONText.object(
            [
                ("value", JSONText.number(estimate.value / unit)), ("low", JSONText.number(estimate.low / unit)),
                ("high", JSONText.number(estimate.high / unit)),
            ] + (evidence.map { [("evidence", JSONText.string($0))] } ?? []))
    }

    // MARK: Verdicts

    /// The figures that the capture does not show, with the reasons.
    var verdicts: [String] {
        var verdicts: [String] = []
        func add(_ name: String, _ figure: Calibration.Figure) {
            if case .unknown(let reason) = figure {
                verdicts.append("this capture does not show the \(name): \(reason)")
            }
        }
        add("delay", calibration.roundTrip)
        for (word, direction) in [("downlink", Direction.down), ("uplink", .up)] {
            let figures = calibration.directions[direction]
            add("\(word)'s rate", figures.rate)
            if figures.rate.estimate != nil { add("\(word)'s queue limit", figures.queuePackets) }
            add("\(word)'s loss", figures.loss)
            add("\(word)'s jitter", figures.jitter)
        }
        return verdicts + calibration.notes
    }

    // MARK: Check

    /// The table of the replayed transfers: the longest ones.
    static func table(_ replay: TransferReplay, width: Int?) -> [String] {
        let rowsMax = 20
        let largest = replay.comparisons.enumerated().sorted {
            ($0.element.captured, $1.offset) > ($1.element.captured, $0.offset)
        }.prefix(rowsMax).map(\.offset).sorted()
        let rows = largest.map { index in
            let item = replay.comparisons[index]
            return [
                Units.time(item.start), Units.bytes(item.bytes.up), Units.bytes(item.bytes.down),
                Units.milliseconds(item.captured), Units.milliseconds(item.modelled),
                String(format: "%+.1f %%", item.difference * 100),
            ]
        }
        let left = replay.comparisons.count - largest.count
        return TextTable.lines(
            [["START", "UP", "DOWN", "CAPTURED", "MODELLED", "DIFFERENCE"]] + rows, width: width)
            + (left > 0 ? ["and \(TextTable.count(left, "shorter transfer"))"] : [])
    }
}
