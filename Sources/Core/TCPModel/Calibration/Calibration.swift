public import LinkModel

/// The conditions of a link, estimated from the packets of a capture at one of its ends. A figure that the capture does not
/// show has a reason instead of a value.
public struct Calibration: Sendable {
    /// A figure with its evidence, or the reason why it is not known.
    public enum Figure: Hashable, Sendable {
        /// The estimate, and what it was computed from.
        case known(Estimate, evidence: String)
        /// The reason why the capture does not show the figure.
        case unknown(String)

        /// The estimate, if it is known.
        public var estimate: Estimate? {
            if case .known(let estimate, _) = self { estimate } else { nil }
        }

        /// The evidence or the reason.
        public var text: String {
            switch self {
            case .known(_, let text), .unknown(let text): text
            }
        }
    }

    /// The figures of one direction.
    public struct DirectionFigures: Sendable {
        /// The rate in bit/s.
        public var rate = Figure.unknown("")
        /// The queue limit in full packets.
        public var queuePackets = Figure.unknown("")
        /// The queue limit in bytes.
        public var queueBytes = Figure.unknown("")
        /// The probability that a packet is lost although the queue is not full.
        public var loss = Figure.unknown("")
        /// Losses in bursts, which replace ``loss``.
        public var bursts: BurstLoss?
        /// The standard deviation of the delay in nanoseconds.
        public var jitter = Figure.unknown("")
        /// The distribution of the jitter.
        public var jitterDistribution = Jitter.Distribution.uniform
        /// The highest rate over 100 ms in bit/s.
        public var peakRate = 0.0
        /// The longest queueing delay in nanoseconds.
        public var queueDelayMax = 0.0
        /// The rates of busy seconds, if they differ: the start in nanoseconds, and bit/s.
        public var rateOverTime: [(time: Int64, rate: Double)] = []
        /// The packets offered in this direction.
        public var packets = 0
    }

    /// A time in which no packet passed, in nanoseconds since the first packet.
    public struct Outage: Hashable, Sendable {
        /// The start: the last packet that passed, or the first one that did not.
        public var start: Estimate
        /// The end.
        public var end: Estimate
    }

    /// The end at which the packets were captured.
    public let near: Side
    /// The figures of both directions.
    public internal(set) var directions: PerDirection<DirectionFigures>
    /// The delay of both directions together, in nanoseconds, without transmission and queueing.
    public internal(set) var roundTrip = Figure.unknown("")
    /// The times without packets.
    public internal(set) var outages: [Outage] = []
    /// Remarks about the capture.
    public internal(set) var notes: [String] = []
    /// The number of connections.
    public let connectionCount: Int
    /// The length of the capture in nanoseconds.
    public let duration: Int64

    /// The maximum number of passages, of all packets and the segments in them.
    public static let passagesMax = 3_000_000

    /// The reason why a capture gives no figures.
    public struct AnalysisError: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// Analyses the packets of a capture.
    ///
    /// - Parameters:
    ///   - packets: The packets in order of time.
    ///   - end: The end at which they were captured; `nil` to find it from the handshakes.
    public init(_ packets: [CapturedPacket], at end: Side? = nil) throws(AnalysisError) {
        guard let last = packets.last else { throw AnalysisError(description: "no packet of a TCP connection") }
        let vantage = CaptureVantage(packets)
        guard let near = end ?? vantage.near else {
            throw AnalysisError(
                description:
                    "no complete handshake, so that the end of the capture is unknown; start the capture before "
                    + "the connections, or name the end with --at")
        }
        self.near = near
        duration = last.time
        directions = PerDirection(up: DirectionFigures(), down: DirectionFigures())
        var extraction = PassageExtraction(packets, vantage, near: near)
        connectionCount = extraction.connectionCount
        extraction.align()
        addNotes(extraction, vantage)
        let outages = OutageSearch(extraction, near: near, loadedRoundTrip: extraction.loadedRoundTrip).outages
        self.outages = outages
        var excess = PerDirection(up: 0.0, down: 0.0)
        var spread = 0.0
        for direction in [near.opposite.sendDirection, near.sendDirection] {
            let series = extraction.series(direction)
            var fit = DirectionFit(series, direction: direction, isOutbound: direction == near.sendDirection)
            fit.fit(outages: outages, otherSpread: spread)
            spread = fit.figures.jitter.estimate.map { $0.value > 0 ? fit.spread : 0 } ?? 0
            directions[direction] = fit.figures
            excess[direction] = fit.meanExcess
        }
        roundTrip = delay(extraction, vantage, excess: excess)
    }

    /// Returns the delay of both directions: the shortest round trip without the times of transmission, with the mean jitter.
    private func delay(
        _ extraction: PassageExtraction, _ vantage: CaptureVantage, excess: PerDirection<Double>
    ) -> Figure {
        guard let floor = extraction.roundTripFloor else {
            return .unknown("no packet of the capturing end was acknowledged at once, so that no round trip is known")
        }
        var transmission = 0.0
        for direction in Direction.allCases {
            transmission += DirectionSeries.time(
                extraction.fastestBytes[direction], at: directions[direction].rate.estimate?.value)
        }
        let trips = vantage.roundTrips(from: near).map(Double.init)
        if excess.up + excess.down > 0, trips.count >= Self.handshakesMin, let spread = Statistic.moments(trips),
            let median = Statistic.quantile(0.5, ofSorted: trips)
        {
            // Of varying round trips, the mean is the sum of the delays.
            let margin = 2.5 * spread.deviation / Double(trips.count).squareRoot() + 50_000
            return .known(
                Estimate(max(0, median - transmission), plusMinus: margin),
                evidence:
                    "the median of the round trips of \(trips.count) handshakes is \(Self.milliseconds(median)); the "
                    + "shortest round trip is \(Self.milliseconds(Double(floor)))")
        }
        let sum = max(0, Double(floor) - transmission + excess.up + excess.down)
        let resolution = Double(extraction.noise[near.opposite.sendDirection])
        let margin = max(0.01 * sum, 0.6 * resolution + 0.3 * (excess.up + excess.down)) + 50_000
        return .known(
            Estimate(sum, plusMinus: margin),
            evidence: "the shortest of \(extraction.roundTripCount) round trips is \(Self.milliseconds(Double(floor)))"
                + (vantage.handshakeCount > 0 ? ", \(Self.count(vantage.handshakeCount, "handshake"))" : "")
                + (excess.up + excess.down > 0 ? "; with the mean jitter" : ""))
    }

    /// The handshakes from which the median round trip is used if round trips vary.
    private static let handshakesMin = 8

    private mutating func addNotes(_ extraction: PassageExtraction, _ vantage: CaptureVantage) {
        if let trips = vantage.roundTrips {
            let (short, long) = (min(trips.up, trips.down), max(trips.up, trips.down))
            if short > 1_000_000, short * 10 > long {
                notes.append(
                    "the capture was taken between the ends: \(Self.milliseconds(Double(trips.down))) from the client and "
                        + "\(Self.milliseconds(Double(trips.up))) from the server; losses and queues of the part towards the "
                        + "\(near == .client ? "client" : "server") are not seen as such")
            }
        }
        if extraction.missingPackets > 0 {
            notes.append(
                "the capture misses \(Self.count(extraction.missingPackets, "packet")) that arrived; they do not count as lost"
            )
        }
        if extraction.isIncomplete {
            notes.append("only the first \(Self.passagesMax) packets of the capture were used")
        }
        if !extraction.hasTimestamps {
            notes.append(
                "the \(near == .client ? "server" : "client") sends no TCP timestamps, so that the queue of the direction towards "
                    + "the capture is not visible")
        }
        if let others = extraction.otherRoundTrips {
            notes.append(
                "the peers have round trips from \(Self.milliseconds(Double(others.lowerBound))) to "
                    + "\(Self.milliseconds(Double(others.upperBound))); the delay is that of the peer with the most bytes"
            )
        }
    }

    /// Returns a time in milliseconds.
    static func milliseconds(_ nanoseconds: Double) -> String { "\(rounded(nanoseconds / 1e6)) ms" }

    /// Returns a number with three significant digits, or as a whole number.
    static func rounded(_ value: Double) -> String {
        let magnitude = abs(value)
        let scale: Double = magnitude >= 100 ? 1 : magnitude >= 10 ? 10 : magnitude >= 1 ? 100 : 1000
        let number = (value * scale).rounded() / scale
        guard abs(number) < 1e15 else { return "\(number)" }
        return number == number.rounded() ? "\(Int(number))" : "\(number)"
    }

    /// Returns a count with its noun.
    static func count(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
