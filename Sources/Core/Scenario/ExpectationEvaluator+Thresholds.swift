internal import Determinism

/// Statistics of metrics.
///
/// Samples are taken from the whole run, of all devices:
///
/// - `save-to-screen`: the time from the start of a user's change to the moment at which it is stored and visible.
/// - `save-to-synced`: the time from the start of a user's change to the first moment at which the device shows the note
///   without a pending change, a conflict or an error, or has removed it, after it has shown one of them. A change that is
///   never synced exceeds every bound. A change that leaves nothing pending has no sample.
/// - `attempts-per-write`: the number of requests with one key, or without keys with one method, note and body.
extension ExpectationEvaluator {
    mutating func evaluate(_ threshold: Threshold) -> Verdict.Outcome {
        let samples = samples(of: threshold.metric).sorted()
        if samples.isEmpty { return .inconclusive("there is no sample") }
        for bound in threshold.bounds {
            guard let value = Self.value(of: bound.statistic, samples), value > bound.max else { continue }
            let count = "\(samples.count) \(samples.count == 1 ? "sample" : "samples")"
            return .fail("\(bound.statistic.rawValue) is \(Self.text(value, threshold.metric)) (\(count))")
        }
        return .pass
    }

    private static func text(_ value: Int64, _ metric: Threshold.Metric) -> String {
        if !metric.isTime { return "\(value)" }
        return value == .max ? "infinite: a change was never synced" : TimeFormat.duration(Nanoseconds(value))
    }

    /// Returns a statistic of ascending samples; `nil` without samples. A percentile is the nearest rank: the least sample
    /// that at least this part of the samples does not exceed.
    static func value(of statistic: Threshold.Statistic, _ samples: [Int64]) -> Int64? {
        let percent =
            switch statistic {
            case .p50: 50
            case .p90: 90
            case .p95: 95
            case .p99: 99
            case .max: 100
            }
        guard !samples.isEmpty else { return nil }
        return samples[max(0, (samples.count * percent + 99) / 100 - 1)]
    }

    private mutating func samples(of metric: Threshold.Metric) -> [Int64] {
        switch metric {
        case .saveToScreen: changes.map { (history.entries[$0.acceptedIndex].time - $0.start).count }
        case .saveToSynced: changes.compactMap(synced)
        case .attemptsPerWrite: attemptsPerWrite
        }
    }

    /// Returns the time from the start of a change until it is synced; `nil` if it leaves nothing pending.
    private func synced(_ change: Change) -> Int64? {
        var isPending = false
        for entry in history.entries[change.startIndex...] {
            guard case .device(change.device, let state) = entry.event else { continue }
            let row = state.rows.first { $0.name == change.row }
            if let row, row.icon != .plain || row.isDeleted {
                isPending = true
            } else if isPending {
                return (entry.time - change.start).count
            }
        }
        return isPending ? .max : nil
    }

    private var attemptsPerWrite: [Int64] {
        mutating get {
            var counts: [Write: Int64] = [:]
            for exchange in exchanges where Self.writeMethods.contains(exchange.method) {
                guard scenario.devices.contains(where: { $0.name == exchange.actor }) else { continue }
                counts[Write(exchange), default: 0] += 1
            }
            return Array(counts.values)
        }
    }
}
