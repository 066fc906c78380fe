internal import LinkModel

/// The passages of all connections in one direction of the link, and the figures that follow from them.
///
/// A packet that enters the link before its predecessor has left waits behind it; between two such exits the link was
/// busy, and the bytes of that time are its rate. A packet that enters an empty queue shows the variation of the delay.
struct DirectionSeries {
    /// The passages in the order in which they were sent.
    let passages: [Passage]
    /// Those that arrived, in the order in which they left the queue.
    private let arrived: [Passage]
    /// The resolution of the times in nanoseconds.
    let noise: Int64
    /// The bytes of the fastest packet, to which ``Passage/excess`` is relative.
    let fastestBytes: Int
    /// Whether delayed ACKs are the only ones that show the times of packets, so that times are uncertain by the timer.
    let usesDelayedACKs: Bool

    /// The longest delay of an ACK, and the resolution of the timer.
    static let delayedACK: Int64 = 45_000_000

    init(_ passages: [Passage], noise: Int64, fastestBytes: Int) {
        // Packets of the same time keep their order.
        self.passages = passages.enumerated()
            .sorted { ($0.element.sent, $0.offset) < ($1.element.sent, $1.offset) }.map(\.element)
        arrived = self.passages.filter { !$0.isLost }.sorted { ($0.exit, $0.sent) < ($1.exit, $1.sent) }
        self.noise = noise
        self.fastestBytes = fastestBytes
        var (exact, delayed) = (0, 0)
        for passage in passages {
            if passage.timing == .exact { exact += 1 }
            if passage.timing == .delayedACK { delayed += 1 }
        }
        usesDelayedACKs = delayed > 2 * exact
    }

    /// Whether the time of a passage is known well enough for the queue.
    func isTimed(_ passage: Passage) -> Bool {
        !passage.isLost && (passage.timing == .exact || usesDelayedACKs && passage.timing == .delayedACK)
    }

    /// The time to transmit bytes at a rate, in nanoseconds.
    static func time(_ bytes: Int, at rate: Double?) -> Double { rate.map { Double(bytes) * 8e9 / $0 } ?? 0 }

    // MARK: Jitter

    /// Returns the times beyond that of the fastest packet, of packets that found the queue empty, in order.
    ///
    /// - Parameter rate: The rate, which removes the time of transmission; `nil` if it is not known.
    func unqueuedExcess(rate: Double?) -> [Double] {
        var samples: [Double] = []
        var busyUntil = Int64.min
        let fastest = Self.time(fastestBytes, at: rate)
        for passage in passages where !passage.isLost {
            if passage.timing == .exact, busyUntil == .min || busyUntil + noise <= passage.sent {
                samples.append(Double(passage.excess) - Self.time(Int(passage.bytes), at: rate) + fastest)
            }
            busyUntil = max(busyUntil, passage.exit)
        }
        return samples.sorted()
    }

    // MARK: Rate

    /// A time in which the link was busy without interruption.
    struct BusyTime {
        var start: Int64
        var end: Int64
        var bytes: Int
        var packets: Int
    }

    /// Returns the busy times, each between the exits of two consecutive timed packets.
    ///
    /// - Parameter spread: The largest variation of the delay, in nanoseconds.
    func busyTimes(spread: Double) -> [BusyTime] {
        // A packet waits behind late ones as well, which in a dense stream are the latest of many.
        let threshold = Calibration.whole(min(2 * spread, 1e18)) + 2 * noise + 1_000_000
        let lateness = spread > Double(noise) + 1_000_000 ? Calibration.whole(min(spread, 1e18)) : 0
        var times: [BusyTime] = []
        var last: Passage?
        var (bytes, packets) = (0, 0)
        for passage in arrived {
            bytes += Int(passage.bytes)
            packets += 1
            guard isTimed(passage) else { continue }
            defer {
                last = passage
                (bytes, packets) = (0, 0)
            }
            guard let last else { continue }
            let allowance = passage.timing == .delayedACK ? Self.delayedACK : 0
            let lastAllowance = last.timing == .delayedACK ? Self.delayedACK : 0
            guard passage.excess > threshold + allowance, passage.sent + noise + lateness <= last.exit - lastAllowance
            else {
                continue
            }
            times.append(BusyTime(start: last.exit, end: passage.exit, bytes: bytes, packets: packets))
        }
        return times
    }

    /// Returns the rate of busy times in bit/s, and their length in nanoseconds; `nil` if they are too short to tell.
    ///
    /// - Parameter edgeNoise: The standard deviation of an exit.
    static func rate(_ times: [BusyTime], edgeNoise: Double) -> (rate: Estimate, busy: Int64, packets: Int)? {
        let busy = times.reduce(0) { $0 + ($1.end - $1.start) }
        let bytes = times.reduce(0) { $0 + $1.bytes }
        let packets = times.reduce(0) { $0 + $1.packets }
        guard busy > 0, packets >= packetsMin else { return nil }
        let rate = Double(bytes) * 8e9 / Double(busy)
        var runs = 0
        var previousEnd = Int64.min
        for time in times {
            if time.start != previousEnd { runs += 1 }
            previousEnd = time.end
        }
        let blocks = blockRates(times, length: max(1, busy / Int64(min(40, max(4, packets / 25)))))
        let spread = Statistic.moments(blocks).map { $0.deviation / Double(max(1, blocks.count)).squareRoot() } ?? rate
        let edges = rate * edgeNoise * Double(2 * runs).squareRoot() / Double(busy)
        let margin = 2.2 * (spread * spread + edges * edges).squareRoot() + 0.003 * rate
        guard margin < uncertaintyMax * rate else { return nil }
        return (Estimate(rate, plusMinus: margin), busy, packets)
    }

    /// The packets in busy times below which no rate is given, and the largest margin as a share of the rate.
    private static let packetsMin = 20
    private static let uncertaintyMax = 0.15

    /// Returns the rates of consecutive parts of busy times, each of about the given length.
    static func blockRates(_ times: [BusyTime], length: Int64) -> [Double] {
        var rates: [Double] = []
        var (span, bytes) = (Int64(0), 0)
        for time in times {
            span += time.end - time.start
            bytes += time.bytes
            if span >= length {
                rates.append(Double(bytes) * 8e9 / Double(span))
                (span, bytes) = (0, 0)
            }
        }
        return rates
    }

    /// The highest rate at which bytes arrived over 100 ms, in bit/s: a lower bound of the link's rate.
    var peakRate: Double {
        let window: Int64 = 100_000_000
        var (first, bytes, peak) = (0, 0, 0)
        for passage in arrived {
            bytes += Int(passage.bytes)
            while arrived[first].exit <= passage.exit - window {
                bytes -= Int(arrived[first].bytes)
                first += 1
            }
            peak = max(peak, bytes)
        }
        return Double(peak) * 8e9 / Double(window)
    }

    // MARK: Queue

    /// The excess of the queue that each passage found: its own, or the larger one of the timed packets around it.
    func levels() -> [Int64] {
        var levels = [Int64](repeating: 0, count: passages.count)
        var last: Int64 = 0
        for (index, passage) in passages.enumerated() {
            if isTimed(passage) { last = passage.excess }
            levels[index] = last
        }
        last = 0
        for (index, passage) in passages.enumerated().reversed() {
            if isTimed(passage) {
                last = passage.excess
            } else {
                levels[index] = max(levels[index], last)
            }
        }
        return levels
    }

    /// A queue that was full.
    struct FullQueue {
        /// The excess of a packet that finds the last free place.
        var excess: Double
        /// The excess from which losses count as drops of the full queue.
        var zone: Int64
        var drops: Int
        var peaks: Int
    }

    /// Finds the length at which the queue drops packets: the longest one, if losses are far more frequent there.
    ///
    /// - Parameters:
    ///   - packetTime: The time of a full packet.
    ///   - spread: The largest variation of the delay.
    func fullQueue(levels: [Int64], packetTime: Double, spread: Double) -> FullQueue? {
        let timed = passages.filter(isTimed).map(\.excess).sorted()
        guard timed.count >= 20, let top = Statistic.quantile(0.999, ofSorted: timed) else { return nil }
        let zone = top - max(Calibration.whole(min(2.5 * packetTime + spread, 1e18)) + 2 * noise, top / 8)
        guard Double(zone) > spread + Double(noise) else { return nil }
        var (drops, arrivals, losses, others, peaks) = (0, 0, 0, 0, 0)
        var isInside = false
        for (index, passage) in passages.enumerated() where passage.isTrial {
            if levels[index] >= zone {
                if passage.isLost { drops += 1 } else { arrivals += 1 }
                if !isInside { peaks += 1 }
                isInside = true
            } else {
                if passage.isLost { losses += 1 } else { others += 1 }
                if levels[index] < zone - Calibration.whole(min(4 * packetTime, 1e18)) { isInside = false }
            }
        }
        // A likelihood ratio: as many losses by chance have a probability of some 1 %.
        let expected = Double(losses + 1) / Double(losses + others + 2) * Double(drops + arrivals)
        let count = Double(drops)
        guard drops >= 3, count > expected,
            2 * (count * Statistic.logarithm(count / expected) - (count - expected)) > 8
        else { return nil }
        return FullQueue(excess: Double(top), zone: zone, drops: drops, peaks: peaks)
    }

    /// Returns the mean size of the packets in the queue when packets are dropped: 1500 bytes if it cannot be seen.
    ///
    /// - Parameters:
    ///   - zone: The excess from which losses are drops.
    ///   - fastest: The time of the fastest packet.
    func meanBytes(levels: [Int64], from zone: Int64, fastest: Double) -> Int {
        var (bytes, packets, drops) = (0, 0, 0)
        for (index, passage) in passages.enumerated() where passage.isLost && passage.isTrial && levels[index] >= zone {
            drops += 1
            if drops > Self.dropsMax { break }
            // Packets leave in order, so that all of the queue entered within its length.
            var before = index - 1
            while before >= 0, passage.sent - passages[before].sent <= levels[index] {
                defer { before -= 1 }
                if passages[before].isLost { continue }
                let leaves = passages[before].sent + levels[before] + Calibration.whole(min(fastest, 1e18))
                if leaves > passage.sent {
                    bytes += Int(passages[before].bytes)
                    packets += 1
                }
            }
        }
        return packets > 0 ? max(1, bytes / packets) : 1500
    }

    /// The drops whose queue is counted.
    private static let dropsMax = 100
}
