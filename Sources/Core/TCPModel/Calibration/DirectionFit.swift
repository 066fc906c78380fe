internal import LinkModel

/// The estimates of one direction.
struct DirectionFit {
    private let series: DirectionSeries
    private let direction: Direction
    private let isOutbound: Bool
    private(set) var figures = Calibration.DirectionFigures()
    /// The mean time of packets in an empty queue beyond that of the fastest packet, if it is jitter.
    private(set) var meanExcess = 0.0

    private var word: String { direction == .up ? "uplink" : "downlink" }

    /// The packets below which no loss and no jitter is given.
    private static let trialsMin = 30
    private static let jitterSamplesMin = 20
    /// The packets below which the distribution of the jitter is not judged.
    private static let shapeSamplesMin = 100
    /// The smallest standard deviation of the delay that counts as jitter, beyond the resolution of the times.
    private static let jitterMin = 500_000.0
    /// The length of the parts of busy times whose rates are compared, and how far they differ when the rate changes.
    private static let changeSpan: Int64 = 1_000_000_000
    private static let changeFactor = 1.4

    init(_ series: DirectionSeries, direction: Direction, isOutbound: Bool) {
        self.series = series
        self.direction = direction
        self.isOutbound = isOutbound
        figures.packets = series.passages.count
        figures.peakRate = series.peakRate
    }

    /// The variation of the delay that was assumed, in nanoseconds.
    private(set) var spread = 0.0

    /// Computes all figures.
    ///
    /// - Parameter otherSpread: The variation in the other direction, which is assumed if too few packets show that of this one.
    mutating func fit(outages: [Calibration.Outage], otherSpread: Double) {
        var jitter: JitterSamples?
        var times: [DirectionSeries.BusyTime] = []
        var rate: Double?
        // The time of transmission matters for the jitter, and the jitter for the busy times.
        for _ in 0..<2 {
            jitter = jitterSamples(rate: rate)
            spread = jitter.map { $0.high - min(0, $0.low) } ?? 0
            if jitter?.count ?? 0 < Self.jitterSamplesMin { spread = max(spread, otherSpread) }
            (times, spread) = consistentTimes(spread, jitter)
            rate = DirectionSeries.rate(times, edgeNoise: edgeNoise(jitter?.deviation ?? 0))?.rate.value
        }
        setRate(times, edgeNoise: edgeNoise(jitter?.deviation ?? 0))
        setJitter(rate: rate, jitter)
        let levels = series.levels()
        let delays = series.passages.indices.filter { series.isTimed(series.passages[$0]) }.map { levels[$0] }.sorted()
        figures.queueDelayMax = Double(Statistic.quantile(0.999, ofSorted: delays) ?? 0)
        let queue = setQueue(levels, rate: rate)
        setLoss(levels, queue, outages)
    }

    /// Returns the busy times for the smallest variation of the delay, from the given one on, whose rate does not change with
    /// a larger one; of a delay that varies more than assumed, late packets look like a queue.
    private func consistentTimes(
        _ spread: Double, _ jitter: JitterSamples?
    ) -> (times: [DirectionSeries.BusyTime], spread: Double) {
        let noise = edgeNoise(jitter?.deviation ?? 0)
        var spread = max(spread, Self.spreadMin)
        var times = series.busyTimes(spread: spread)
        for _ in 0..<Self.doublingsMax {
            let wider = series.busyTimes(spread: 2 * spread)
            guard let rate = DirectionSeries.rate(times, edgeNoise: noise)?.rate else { return (times, spread) }
            guard let other = DirectionSeries.rate(wider, edgeNoise: noise)?.rate else {
                let isReliable =
                    jitter?.count ?? 0 >= Self.jitterSamplesMin || spread <= Double(series.noise) + 1_000_000
                return (isReliable ? times : [], spread)
            }
            if abs(other.value - rate.value) < max(0.03 * rate.value, (other.high - other.low) / 2) {
                return (times, spread)
            }
            spread *= 2
            times = wider
        }
        return (times, spread)
    }

    /// The smallest variation that is assumed, in nanoseconds, and how often it is doubled.
    private static let spreadMin = 300_000.0
    private static let doublingsMax = 6

    private func edgeNoise(_ deviation: Double) -> Double {
        deviation + Double(series.noise) / 3 + (series.usesDelayedACKs ? Double(DirectionSeries.delayedACK) / 3 : 0)
    }

    // MARK: Rate

    private mutating func setRate(_ times: [DirectionSeries.BusyTime], edgeNoise: Double) {
        guard let (rate, busy, packets) = DirectionSeries.rate(times, edgeNoise: edgeNoise) else {
            let count = times.reduce(0) { $0 + $1.packets }
            figures.rate = .unknown(
                figures.packets == 0
                    ? "no packet was sent in this direction"
                    : count < 20
                        ? "no period of the \(word) was saturated; it carried up to \(Self.rate(figures.peakRate))"
                        : "the \(Calibration.count(count, "packet")) that left a queue of the \(word) that was not empty do not agree "
                            + "on a rate; it carried up to \(Self.rate(figures.peakRate))")
            return
        }
        figures.rate = .known(
            rate,
            evidence:
                "\(Calibration.count(packets, "packet")) in \(Calibration.rounded(Double(busy) / 1e9)) s in which the "
                + "queue was not empty")
        var windows: [(time: Int64, rate: Double)] = []
        var part: [DirectionSeries.BusyTime] = []
        var span: Int64 = 0
        for time in times {
            part.append(time)
            span += time.end - time.start
            guard span >= Self.changeSpan, let first = part.first else { continue }
            let bytes = part.reduce(0) { $0 + $1.bytes }
            windows.append((first.start, Double(bytes) * 8e9 / Double(span)))
            part = []
            span = 0
        }
        let rates = windows.map(\.rate).sorted()
        if rates.count >= 5, let low = Statistic.quantile(0.1, ofSorted: rates),
            let high = Statistic.quantile(0.9, ofSorted: rates), high > Self.changeFactor * low,
            low * Double(Self.changeSpan) / 8e9 > 10 * 1500
        {
            figures.rateOverTime = windows
        }
    }

    /// Returns a rate with its unit.
    static func rate(_ bitsPerSecond: Double) -> String {
        bitsPerSecond >= 1e6
            ? "\(Calibration.rounded(bitsPerSecond / 1e6)) Mbit/s"
            : "\(Calibration.rounded(bitsPerSecond / 1e3)) kbit/s"
    }

    // MARK: Jitter

    /// The delays of packets that found the queue empty.
    private struct JitterSamples {
        /// The 1st and the 97th percentile.
        let low: Double
        let high: Double
        let mean: Double
        let deviation: Double
        let count: Int
    }

    private func jitterSamples(rate: Double?) -> JitterSamples? {
        let all = series.unqueuedExcess(rate: rate)
        guard all.count >= 5, let low = Statistic.quantile(0.01, ofSorted: all),
            let high = Statistic.quantile(0.97, ofSorted: all), let top = Statistic.quantile(0.99, ofSorted: all),
            // Single delays have other causes, such as a host that was busy.
            let moments = Statistic.moments(all.map { min(top, max(low, $0)) })
        else { return nil }
        return JitterSamples(
            low: low, high: high, mean: moments.mean, deviation: moments.deviation, count: all.count)
    }

    private mutating func setJitter(
        rate: Double?, _ jitter: JitterSamples?
    ) {
        guard let jitter, jitter.count >= Self.jitterSamplesMin else {
            figures.jitter = .unknown(
                "only \(Calibration.count(jitter?.count ?? 0, "packet")) of the \(word) with a known time found an empty queue"
            )
            return
        }
        // The resolution of the times varies them as well, evenly.
        let resolution = Double(series.noise) / 3.46
        let deviation = max(0, jitter.deviation * jitter.deviation - resolution * resolution).squareRoot()
        let count = Double(jitter.count)
        guard deviation > Self.jitterMin else {
            figures.jitter = .known(
                Estimate(0, low: 0, high: max(Self.jitterMin, deviation)),
                evidence: "\(jitter.count) packets found an empty queue; their delays differ by "
                    + Calibration.milliseconds(jitter.high - jitter.low))
            return
        }
        let samples = series.unqueuedExcess(rate: rate)
        let shape = samples.reduce(into: (skew: 0.0, kurtosis: 0.0)) { sums, sample in
            let scaled = (sample - jitter.mean) / jitter.deviation
            sums.skew += scaled * scaled * scaled / count
            sums.kurtosis += scaled * scaled * scaled * scaled / count
        }
        // The moments of a uniform and of a normal distribution are 0 and 1.8, and 0 and 3.
        if jitter.count >= Self.shapeSamplesMin {
            figures.jitterDistribution = shape.skew > 0.8 ? .pareto : shape.kurtosis > 2.4 ? .normal : .uniform
        }
        let margin = 2.5 * deviation * ((shape.kurtosis - 1) / (4 * count)).squareRoot() + resolution * 0.3
        figures.jitter = .known(
            Estimate(deviation, low: max(0, deviation - margin), high: deviation + margin),
            evidence: "\(jitter.count) packets found an empty queue; the standard deviation of their delays is "
                + Calibration.milliseconds(deviation))
        meanExcess = max(0, jitter.mean - Double(series.noise) / 2)
    }

    // MARK: Queue

    private mutating func setQueue(_ levels: [Int64], rate: Double?) -> DirectionSeries.FullQueue? {
        guard let rate else {
            figures.queuePackets = .unknown("the rate is not known")
            figures.queueBytes = figures.queuePackets
            return nil
        }
        let packetTime = DirectionSeries.time(1500, at: rate)
        let fastest = DirectionSeries.time(series.fastestBytes, at: rate)
        guard let queue = series.fullQueue(levels: levels, packetTime: packetTime, spread: spread) else {
            let packets = (figures.queueDelayMax + fastest) / packetTime
            figures.queuePackets = .unknown(
                "no queue of the \(word) was seen full; it held up to \(Calibration.whole(packets)) packets "
                    + "(\(Calibration.milliseconds(figures.queueDelayMax)))")
            figures.queueBytes = figures.queuePackets
            return nil
        }
        // A packet arrives no earlier than its predecessors, so that in a full queue the longest of several delays counts.
        let overlapping = spread / packetTime
        let jitter = spread > 1_000_000 + Double(series.noise) ? spread * overlapping / (overlapping + 1) : 0
        let late = series.usesDelayedACKs ? Double(DirectionSeries.delayedACK) / 2 : 0
        let length = max(packetTime, queue.excess + fastest - jitter - late - Double(series.noise) / 2)
        let margin =
            packetTime + Double(series.noise) / 2 + 0.35 * jitter + late + 0.01 * length
        let evidence =
            "\(Calibration.count(queue.drops, "packet")) dropped at \(Calibration.count(queue.peaks, "peak")) of the queueing "
            + "delay, \(Calibration.milliseconds(queue.excess))"
        // Small packets take a place as well.
        let placeTime = DirectionSeries.time(
            series.meanBytes(levels: levels, from: queue.zone, fastest: fastest), at: rate)
        figures.queuePackets = .known(
            Estimate(
                max(1, (length / placeTime).rounded()), low: max(1, ((length - margin) / placeTime).rounded(.down)),
                high: ((length + margin) / placeTime).rounded(.up)), evidence: evidence)
        figures.queueBytes = .known(
            Estimate(
                max(1500, (length * rate / 8e9).rounded()), low: max(0, (length - margin) * rate / 8e9),
                high: (length + margin) * rate / 8e9), evidence: evidence)
        return queue
    }

    // MARK: Loss

    private mutating func setLoss(
        _ levels: [Int64], _ queue: DirectionSeries.FullQueue?, _ outages: [Calibration.Outage]
    ) {
        var fates: [Bool?] = []
        for (index, passage) in series.passages.enumerated() where passage.isTrial {
            let isDropZone = queue.map { levels[index] >= $0.zone } ?? false
            let isInOutage = outages.contains {
                Double(passage.sent) >= $0.start.low && Double(passage.sent) <= $0.end.high
            }
            fates.append(isDropZone || isInOutage ? nil : passage.isLost)
        }
        let known = fates.compactMap { $0 }
        let losses = known.count { $0 }
        guard known.count >= Self.trialsMin, let share = Statistic.share(losses, of: known.count) else {
            figures.loss = .unknown(
                "only \(Calibration.count(known.count, "packet")) of the \(word) would show a loss"
                    + (isOutbound ? "" : ": others followed in the same flight"))
            return
        }
        if queue == nil, isConcentrated(levels) {
            figures.loss = .unknown(
                "\(losses) of \(known.count) packets of the \(word) were lost, more of them at longer queueing delays: drops of a "
                    + "queue whose length is not known")
            return
        }
        let fit = BurstFit(fates)
        var evidence =
            "\(losses) of \(known.count) packets" + (queue == nil ? "" : " outside full queues")
        guard let chain = fit.chain else {
            figures.loss = .known(share, evidence: evidence)
            return
        }
        let mean = Statistic.share(losses, of: known.count, inflation: fit.inflation) ?? share
        evidence += "; bursts fit better than independent losses"
        figures.loss = .known(mean, evidence: evidence)
        func probability(_ share: Double) -> Probability {
            Probability(partsPerMillion: Int32((min(1, max(0, share)) * 1e6).rounded())) ?? .zero
        }
        figures.bursts = .gilbertElliott(
            becomesBad: probability(chain.becomesBad), becomesGood: probability(chain.becomesGood),
            lossInBad: probability(chain.lossInBad), lossInGood: probability(chain.lossInGood))
    }

    /// Returns whether losses are more frequent at longer queueing delays: the mean rank of their delays (Wilcoxon, 1945).
    private func isConcentrated(_ levels: [Int64]) -> Bool {
        let trials = series.passages.indices.filter { series.passages[$0].isTrial }
            .map { (level: levels[$0], isLost: series.passages[$0].isLost) }.sorted { $0.level < $1.level }
        var (sum, count) = (0.0, 0.0)
        for (rank, trial) in trials.enumerated() where trial.isLost {
            sum += (Double(rank) + 0.5) / Double(trials.count)
            count += 1
        }
        return count >= 3 && (sum / count - 0.5) * (12 * count).squareRoot() > 2.6
    }
}
