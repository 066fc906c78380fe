internal import LinkModel

/// Times in which the ends sent and no packet passed.
struct OutageSearch {
    /// The outages in order of time.
    private(set) var outages: [Calibration.Outage] = []

    /// The shortest outage that is reported, in round trips under load: retransmission timers leave gaps as well.
    private static let roundTripsMin: Int64 = 3
    private static let spanMin: Int64 = 1_000_000_000
    private static let lossesMin = 3
    /// The most outages that are reported.
    private static let countMax = 1000

    /// - Parameter loadedRoundTrip: The longest round trip without losses.
    init(_ extraction: PassageExtraction, near: Side, loadedRoundTrip: Int64) {
        let shortest = max(Self.spanMin, loadedRoundTrip * Self.roundTripsMin)
        let outbound = extraction.series(near.sendDirection).passages
        let inbound = extraction.series(near.opposite.sendDirection).passages
        let arrivals = inbound.filter { !$0.isLost }.sorted { $0.exit < $1.exit }
        var found = Self.sentInVain(outbound, arrivals.map(\.exit), shortest: shortest)
        for silence in Self.silences(
            arrivals, shortest: max(2 * shortest, 2 * Self.spanMin), roundTrip: loadedRoundTrip)
        where !found.contains(where: { $0.start.low <= silence.end.high && $0.end.high >= silence.start.low }) {
            found.append(silence)
        }
        outages = Array(found.sorted { $0.start.value < $1.start.value }.prefix(Self.countMax))
    }

    /// Finds times in which every transmission of this end was lost, and nothing arrived.
    private static func sentInVain(_ passages: [Passage], _ arrivals: [Int64], shortest: Int64) -> [Calibration.Outage]
    {
        let trials = passages.filter(\.isTrial)
        // The probability that a packet is lost elsewhere, so that several in a row are no chance.
        var found: [Calibration.Outage] = []
        var index = 0
        while index < trials.count {
            guard trials[index].isLost else {
                index += 1
                continue
            }
            var last = index
            while last + 1 < trials.count, trials[last + 1].isLost { last += 1 }
            defer { index = last + 1 }
            let times = Set(trials[index...last].map(\.sent)).sorted()
            guard times.count >= lossesMin, last + 1 < trials.count else { continue }
            // The first arrival after the last transmission in vain.
            let later = Statistic.firstIndex(above: times[times.count - 1], in: arrivals)
            let next = later < arrivals.count ? arrivals[later] : trials[last + 1].sent
            let end = min(next, trials[last + 1].sent)
            guard end - times[0] >= shortest else { continue }
            let before = later > 0 ? arrivals[later - 1] : times[0]
            // Packets in flight still arrive after the first loss.
            guard end - max(before, times[0]) >= shortest / 2 else { continue }
            let start = Estimate(
                Double(times[0]), low: Double(index > 0 ? trials[index - 1].sent : times[0]), high: Double(times[0]))
            let lastLost = times[times.count - 1]
            found.append(
                Calibration.Outage(
                    start: start,
                    end: Estimate(Double(lastLost / 2 + end / 2), low: Double(lastLost), high: Double(end))))
        }
        return found
    }

    /// Finds silences that end with a repeated packet, or with a single one as after a retransmission timeout.
    private static func silences(_ arrivals: [Passage], shortest: Int64, roundTrip: Int64) -> [Calibration.Outage] {
        var found: [Calibration.Outage] = []
        for index in arrivals.indices.dropFirst() {
            let (before, after) = (arrivals[index - 1], arrivals[index])
            guard after.exit - before.exit >= shortest, after.bytes > 500, before.bytes > 500,
                after.connection == before.connection
            else { continue }
            let isAlone =
                index + 1 < arrivals.count && arrivals[index + 1].exit - after.exit > roundTrip / 4
                && arrivals[index + 1].connection == after.connection
            guard after.isRetransmission || isAlone else { continue }
            let length = Double(after.exit - before.exit)
            // The timeout doubles, so that the attempt before this one was in the first half.
            found.append(
                Calibration.Outage(
                    start: Estimate(
                        Double(before.exit), low: Double(before.exit), high: Double(before.exit) + length / 4),
                    end: Estimate(
                        Double(before.exit) + 0.75 * length, low: Double(before.exit) + length / 2,
                        high: Double(after.exit))))
        }
        return found
    }
}
