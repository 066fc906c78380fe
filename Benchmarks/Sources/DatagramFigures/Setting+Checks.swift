import Foundation

/// The verdicts about a setting.
extension Setting {
    /// The checks of what arrived, without its times.
    func countChecks(_ arrivals: [Arrival], count: Int) -> Checks {
        var checks = Checks()
        var copies = [Int](repeating: 0, count: count)
        for arrival in arrivals where arrival.number < count { copies[arrival.number] += 1 }
        let isLost = copies.map { $0 == 0 }
        let lost = isLost.count { $0 }
        let total = Double(count)
        switch kind {
        case .loss(let probability):
            checks.normal(
                "lost", Double(lost), mean: total * probability,
                deviation: (total * probability * (1 - probability)).squareRoot())
            checks.chiSquare(
                "lengths of loss runs", Statistics.runs(isLost, of: true, classes: 4),
                Statistics.geometric(1 - probability, classes: 4))
            let classes = Int(4 / probability)
            checks.chiSquare(
                "lengths between losses", Statistics.runs(isLost, of: false, classes: classes),
                Statistics.geometric(probability, classes: classes))
        case .bursts(let becomesBad, let becomesGood, let bad, let good):
            let shareOfBad = becomesBad / (becomesBad + becomesGood)
            let mean = shareOfBad * bad + (1 - shareOfBad) * good
            let spread = (bad - good) * (bad - good) * shareOfBad * (1 - shareOfBad)
            let correlation = 1 - becomesBad - becomesGood
            let variance = mean * (1 - mean) + 2 * spread * correlation / (1 - correlation)
            checks.normal("lost", Double(lost), mean: total * mean, deviation: (total * variance).squareRoot())
            if bad == 1 && good == 0 {
                checks.chiSquare(
                    "lengths of loss runs", Statistics.runs(isLost, of: true, classes: 40),
                    Statistics.geometric(becomesGood, classes: 40))
                checks.chiSquare(
                    "lengths between losses", Statistics.runs(isLost, of: false, classes: 400),
                    Statistics.geometric(becomesBad, classes: 400))
            }
            for distance in [1, 3] {
                let pairs = zip(isLost, isLost.dropFirst(distance)).map { $0 && $1 ? 1.0 : 0.0 }
                let block = Statistics.blockMean(pairs)
                checks.normal(
                    "lost with the one \(distance) later", block.mean * total,
                    mean: total * (mean * mean + spread * pow(correlation, Double(distance))),
                    deviation: block.deviation * total)
            }
        case .timedBursts(let good, let bad):
            let share = bad / (good + bad)
            let time = total * Double(interval.count)
            let variance = 2 * share * (1 - share) / ((1 / good + 1 / bad) * time)
            checks.normal("lost", Double(lost), mean: total * share, deviation: total * variance.squareRoot())
        case .duplication(let probability):
            let isDouble = copies.map { $0 == 2 }
            checks.exact("lost", "0", "\(lost)", lost == 0)
            checks.normal(
                "duplicated", Double(isDouble.count { $0 }), mean: total * probability,
                deviation: (total * probability * (1 - probability)).squareRoot())
            checks.chiSquare(
                "lengths between duplicates", Statistics.runs(isDouble, of: false, classes: 130),
                Statistics.geometric(probability, classes: 130))
        case .reordering(let probability):
            let isEarly = early(arrivals, count: count)
            checks.exact("lost", "0", "\(lost)", lost == 0)
            checks.normal(
                "early", Double(isEarly.count { $0 }), mean: total * probability,
                deviation: (total * probability * (1 - probability)).squareRoot())
            checks.chiSquare(
                "lengths between early ones", Statistics.runs(isEarly, of: false, classes: 130),
                Statistics.geometric(probability, classes: 130))
        case .jitter: checks.exact("lost", "0", "\(lost)", lost == 0 && arrivals.count == count)
        case .rate(let each, _):
            let span = Double((arrivals.map(\.time).max() ?? 0) - (arrivals.map(\.time).min() ?? 0))
            let bits = Double(8 * Self.packetBytes) * Double(max(1, arrivals.count) - 1)
            let (rate, found) = (Double(8 * Self.packetBytes) / each * 1e3, bits / max(1, span) * 1e3)
            checks.exact(
                "rate", Checks.text(rate, 3) + " Mbit/s", Checks.text(found, 3) + " Mbit/s",
                abs(found / rate - 1) < 0.01)
            let inOrder = zip(arrivals, arrivals.dropFirst()).allSatisfy { $0.number < $1.number }
            checks.exact("order", "kept", inOrder ? "kept" : "lost", inOrder)
        }
        return checks
    }

    /// Whether each datagram has skipped the delay.
    private func early(_ arrivals: [Arrival], count: Int) -> [Bool] {
        var isEarly = [Bool](repeating: false, count: count)
        for arrival in arrivals where arrival.number < count {
            isEarly[arrival.number] = arrival.delay < Self.delay.count / 2
        }
        return isEarly
    }

    /// All checks of a simulated run.
    func checks(_ arrivals: [Arrival], count: Int) -> Checks {
        var checks = countChecks(arrivals, count: count)
        switch kind {
        case .jitter(let span, let edges, let function):
            var counts = [Int](repeating: 0, count: edges.count + 1)
            for arrival in arrivals {
                let offset = Double(arrival.delay - Self.delay.count) / span
                counts[edges.firstIndex { offset < $0 } ?? edges.count] += 1
            }
            checks.chiSquare("delays", counts, Statistics.classes(edges, function))
        case .rate(let each, let queue):
            // The queue is full all the time: each departure makes room for one datagram.
            let gaps = zip(arrivals, arrivals.dropFirst()).map { Double($1.time - $0.time) }
            checks.exact(
                "gaps", "all \(Checks.text(each / 1e3, 1)) µs", Set(gaps) == [each] ? "all" : "others",
                Set(gaps) == [each])
            let longest = Double(queue) * each + Double(Self.delay.count)
            let found = Double(arrivals.map(\.delay).max() ?? 0)
            checks.exact(
                "longest delay",
                "\(Checks.text((longest - Double(interval.count)) / 1e6, 2)) to \(Checks.text(longest / 1e6, 2)) ms",
                Checks.text(found / 1e6, 2) + " ms", found <= longest && found >= longest - Double(interval.count))
        case .reordering:
            let others = arrivals.count { $0.delay != 0 && $0.delay != Self.delay.count }
            checks.exact("delays", "0 or 20 ms", others == 0 ? "exact" : "\(others) others", others == 0)
        default:
            let others = arrivals.count { $0.delay != Self.delay.count }
            checks.exact("delays", "20 ms", others == 0 ? "exact" : "\(others) others", others == 0)
        }
        return checks
    }

    /// Compares a live run with the simulated one of the same seed.
    func comparison(_ simulated: [Arrival], _ run: LiveRun) -> Checks {
        var checks = Checks()
        checks.exact("payloads damaged", "0", "\(run.damaged)", run.damaged == 0)
        switch kind {
        case .timedBursts, .rate: return checks
        default: break
        }
        // The fates are those of the seed and the number, so they must be the same ones.
        let (expected, found) = (fates(simulated, run.count), fates(run.arrivals, run.count))
        let differing = zip(expected, found).count { $0.count != $1.count }
        checks.exact("datagrams with another fate", "0", "\(differing)", differing == 0)
        var lateness = zip(expected, found).flatMap { zip($0, $1).map { $1 - $0 } }
        lateness.sort()
        guard !lateness.isEmpty else { return checks }
        let (first, middle, most) = (lateness[0], lateness[lateness.count / 2], lateness[lateness.count * 99 / 100])
        checks.exact(
            "later than the model", "0 to 0.3 ms at the median",
            "\(Checks.text(Double(middle) / 1e6, 3)) ms, p99 \(Checks.text(Double(most) / 1e6, 3)) ms, least \(Checks.text(Double(first) / 1e6, 3)) ms",
            first >= 0 && middle <= 300_000)
        return checks
    }

    /// The delays of the copies of each datagram, in ascending order.
    private func fates(_ arrivals: [Arrival], _ count: Int) -> [[Int64]] {
        var result = [[Int64]](repeating: [], count: count)
        for arrival in arrivals where arrival.number < count { result[arrival.number].append(arrival.delay) }
        return result.map { $0.count > 1 ? $0.sorted() : $0 }
    }
}
