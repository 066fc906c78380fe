public import Determinism
public import LinkModel

extension Calibration {
    /// The conditions of the link. A figure that is not known is left out, so that the direction is unimpaired in it; each
    /// direction has half of the delay, because one end cannot tell them apart.
    public var conditions: Conditions { Conditions(up: conditions(.up), down: conditions(.down)) }

    private func conditions(_ direction: Direction) -> DirectionConditions {
        let figures = directions[direction]
        var conditions = DirectionConditions(
            rate: figures.rate.estimate.flatMap { Rate(bitsPerSecond: Self.whole($0.value)) },
            delay: oneWayDelay ?? .zero,
            loss: figures.loss.estimate.flatMap {
                Probability(partsPerMillion: Int32(Self.whole(min(1, max(0, $0.value)) * 1e6)))
            } ?? .zero)
        if let packets = figures.queuePackets.estimate?.value,
            let limit = QueueLimit(packets: min(Int(Self.whole(packets)), QueueLimit.packetsAllowed.upperBound))
        {
            conditions.queue = limit
        } else if let longest = queueSeen(direction), let limit = QueueLimit(packets: longest) {
            conditions.queue = limit
        }
        if let bursts = figures.bursts {
            conditions.bursts = bursts
            conditions.loss = .zero
        }
        if let deviation = figures.jitter.estimate?.value, deviation > 0 {
            let span = figures.jitterDistribution == .uniform ? deviation * 3.0.squareRoot() : deviation
            conditions.jitter = Jitter(span: Nanoseconds(Self.whole(span)), distribution: figures.jitterDistribution)
        }
        return conditions
    }

    /// The delay of one direction: half of both.
    public var oneWayDelay: Nanoseconds? {
        roundTrip.estimate.map { Nanoseconds(min(Self.whole($0.value / 2), DirectionConditions.delayMax.count)) }
    }

    /// Returns the packets that a queue held at least, if it was never seen full and held more than the standard queue.
    public func queueSeen(_ direction: Direction) -> Int? {
        let figures = directions[direction]
        guard figures.queuePackets.estimate == nil, let rate = figures.rate.estimate?.value else { return nil }
        let packets = Self.whole(figures.queueDelayMax / DirectionSeries.time(1500, at: rate)) + 1
        guard packets > 40 else { return nil }
        return min(Int(packets) * 2, QueueLimit.packetsAllowed.upperBound)
    }

    /// Returns the rate over time as a trace; `nil` if the rate did not change.
    ///
    /// Between busy times the last rate continues.
    public func trace(_ direction: Direction) -> DeliveryTrace? {
        let rates = directions[direction].rateOverTime
        guard let first = rates.first else { return nil }
        var steps = [DeliveryTrace.Step(at: .zero, bitsPerSecond: Self.whole(first.rate))]
        for part in rates.dropFirst() {
            steps.append(DeliveryTrace.Step(at: Nanoseconds(max(0, part.time)), bitsPerSecond: Self.whole(part.rate)))
        }
        let end = min(duration, Int64(DeliveryTrace.millisecondsMax) * 1_000_000)
        return try? DeliveryTrace(steps: steps, until: Nanoseconds(end))
    }

    /// The outages as entries of a timeline: the start and the end of each, in nanoseconds since the first packet.
    public var outageSpans: [(start: Int64, end: Int64)] {
        outages.map { (Self.whole($0.start.value), max(Self.whole($0.start.value) + 1, Self.whole($0.end.value))) }
    }

    /// Returns the nearest whole number, within 62 bits.
    static func whole(_ value: Double) -> Int64 {
        value.isFinite ? Int64(max(-4e18, min(4e18, value)).rounded()) : 0
    }
}
