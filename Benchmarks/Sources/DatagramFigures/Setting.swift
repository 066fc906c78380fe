import Determinism
import Foundation
import Impairment
import LinkModel
import NIOCore

/// A datagram that has left the link.
struct Arrival {
    let number: Int
    /// Nanoseconds from its entry to its arrival.
    let delay: Int64
    /// Nanoseconds on an arbitrary clock.
    let time: Int64
}

/// A setting of the link from the client to the server, and its formulas.
struct Setting: Sendable {
    enum Kind: Sendable {
        /// Independent losses.
        case loss(Double)
        /// Losses in bursts that change their state per datagram: the probabilities of becoming bad and good, and of a loss in
        /// either state.
        case bursts(Double, Double, bad: Double, good: Double)
        /// Losses in bursts with exponentially distributed durations in nanoseconds.
        case timedBursts(good: Double, bad: Double)
        case duplication(Double)
        case reordering(Double)
        /// A varying delay: its distribution function in spans.
        case jitter(span: Double, edges: [Double], @Sendable (Double) -> Double)
        /// Nanoseconds per datagram.
        case rate(Double, queue: Int)
    }

    let name: String
    let kind: Kind
    let conditions: DirectionConditions
    /// The direction in the syntax of profiles.
    let profile: String
    /// The interval between two datagrams.
    var interval = Nanoseconds.microseconds(50)

    static let payloadBytes = 100
    /// With the headers of IPv4 and UDP.
    static let packetBytes = payloadBytes + 28
    static let delay = Nanoseconds.milliseconds(20)

    // MARK: Settings

    static let all: [Setting] = [
        loss(10_000), loss(50_000),
        bursts(10_000, 250_000, bad: 1_000_000, good: 0), bursts(10_000, 250_000, bad: 700_000, good: 1_000),
        Setting(
            name: "bursts of 2 ms after 20 ms", kind: .timedBursts(good: 20e6, bad: 2e6),
            conditions: DirectionConditions(
                delay: delay,
                bursts: .timed(good: .milliseconds(20), bad: .milliseconds(2), lossInBad: .one, lossInGood: .zero)),
            profile: "delay: 20 ms, bursts: timed 20ms 2ms 100%"),
        Setting(
            name: "duplicate 3 %", kind: .duplication(0.03),
            conditions: DirectionConditions(delay: delay, duplication: share(30_000)),
            profile: "delay: 20 ms, duplicate: 3 %"),
        Setting(
            name: "reorder 3 %", kind: .reordering(0.03),
            conditions: DirectionConditions(delay: delay, reordering: share(30_000)),
            profile: "delay: 20 ms, reorder: 3 %"),
        jitter("uniform", .uniform, 5, stride(from: -0.95, to: 1, by: 0.1).map { $0 }) { min(1, max(0, ($0 + 1) / 2)) },
        jitter("normal", .normal, 3, stride(from: -3, through: 3, by: 0.25).map { $0 }, sumOfTwelve),
        // The excess over a Pareto distribution with exponent 3: mean 3/2, standard deviation sqrt(3/4), at most 4 of them.
        jitter("pareto", .pareto, 3, stride(from: -0.5, through: 3.5, by: 0.25).map { $0 }) { value in
            let excess = value * 0.75.squareRoot() + 1.5
            return value >= 4 ? 1 : excess <= 1 ? 0 : 1 - pow(excess, -3)
        },
        Setting(
            name: "rate 10.24 Mbit/s, 20.48 sent", kind: .rate(100e3, queue: 100),
            conditions: DirectionConditions(
                rate: Rate(bitsPerSecond: 10_240_000), delay: delay, queue: .packets(100)),
            profile: "rate: 10.24 Mbit/s, delay: 20 ms, queue: 100 packets"),
    ]

    static func share(_ partsPerMillion: Int32) -> Probability { Probability(partsPerMillion: partsPerMillion)! }

    private static func percent(_ partsPerMillion: Int32) -> String {
        String(format: "%g %%", Double(partsPerMillion) / 10_000)
    }

    private static func loss(_ parts: Int32) -> Setting {
        Setting(
            name: "loss \(percent(parts))", kind: .loss(Double(parts) / 1e6),
            conditions: DirectionConditions(delay: delay, loss: share(parts)),
            profile: "delay: 20 ms, loss: \(percent(parts))")
    }

    private static func bursts(_ becomesBad: Int32, _ becomesGood: Int32, bad: Int32, good: Int32) -> Setting {
        let values = [becomesBad, becomesGood, bad, good]
        let text =
            "gemodel " + values.map { percent($0).replacingOccurrences(of: " ", with: "") }.joined(separator: " ")
        let parts = values.map { Double($0) / 1e6 }
        return Setting(
            name: text, kind: .bursts(parts[0], parts[1], bad: parts[2], good: parts[3]),
            conditions: DirectionConditions(
                delay: delay,
                bursts: .gilbertElliott(
                    becomesBad: share(becomesBad), becomesGood: share(becomesGood), lossInBad: share(bad),
                    lossInGood: share(good))),
            profile: "delay: 20 ms, bursts: \(text)")
    }

    private static func jitter(
        _ name: String, _ distribution: Jitter.Distribution, _ span: Int64, _ edges: [Double],
        _ function: @escaping @Sendable (Double) -> Double
    ) -> Setting {
        Setting(
            name: "delay 20 ms ± \(span) ms \(name)", kind: .jitter(span: Double(span) * 1e6, edges: edges, function),
            conditions: DirectionConditions(
                delay: delay, jitter: Jitter(span: .milliseconds(span), distribution: distribution, mayOvertake: true)),
            profile: "delay: 20 ms, jitter: \(span) ms \(name) overtaking")
    }

    /// The distribution function of the sum of twelve uniform variables, less its mean (Irwin 1927, Hall 1927).
    @Sendable private static func sumOfTwelve(_ value: Double) -> Double {
        let x = min(12, max(0, value + 6))
        // The alternating sum is exact enough in the lower half.
        if x > 6 { return 1 - sumOfTwelve(-value) }
        var (sum, binomial) = (0.0, 1.0)
        for k in 0...12 where Double(k) <= x {
            sum += (k % 2 == 0 ? 1 : -1) * binomial * pow(x - Double(k), 12)
            binomial = binomial * Double(12 - k) / Double(k + 1)
        }
        return sum / (1...12).reduce(1.0) { $0 * Double($1) }
    }
}

/// Sends datagrams through the link in virtual time.
func simulate(_ setting: Setting, count: Int, seed: UInt64) -> [Arrival] {
    var link = SharedLink(Conditions(up: setting.conditions, down: .clear), seed: seed)
    let client = DatagramAddress(high: 0, low: 1, port: 1)
    let interval = setting.interval.count
    var arrivals: [Arrival] = []
    arrivals.reserveCapacity(count + count / 16)
    func take() {
        while let action = link.takeDatagramAction() {
            guard case .send(let payload, .up) = action.action else { continue }
            let number = Int(payload.getInteger(at: 0, as: UInt64.self) ?? 0)
            let time = action.time.sinceStart.count
            arrivals.append(Arrival(number: number, delay: time - Int64(number) * interval, time: time))
        }
    }
    var payload = ByteBuffer(repeating: 0, count: Setting.payloadBytes)
    for number in 0..<count {
        payload.setInteger(UInt64(number), at: 0)
        link.receiveDatagram(payload, from: client, at: .start + Nanoseconds(Int64(number) * interval))
        if number % 64 == 0 { take() }
    }
    link.advance(to: .start + Nanoseconds(Int64(count) * interval) + .seconds(60))
    while link.isBehind {
        take()
        link.advance(to: link.now)
    }
    take()
    return arrivals
}
