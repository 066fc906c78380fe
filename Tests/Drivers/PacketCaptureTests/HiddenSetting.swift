import Determinism
import Foundation
import LinkModel
import PacketCapture
import TCPModel
import TestSupport

/// A link and a workload that the calibration does not know, from a seed: short requests, a download and an upload, captured at
/// one end as a pcapng file.
struct HiddenSetting {
    let seed: UInt64
    let conditions: Conditions
    let near: Side
    private let jobs: [(start: Int64, up: Int, down: Int)]

    private static let requests = 30
    private static let length = Nanoseconds.seconds(60)

    /// Creates a known setting.
    init(_ conditions: Conditions, near: Side, jobs: [(start: Int64, up: Int, down: Int)], seed: UInt64 = 1) {
        (self.conditions, self.near, self.jobs, self.seed) = (conditions, near, jobs, seed)
    }

    /// Creates a setting from a seed.
    ///
    /// - Parameter bytesMax: The size of the largest transfer.
    init(seed: UInt64, bytesMax: Int) {
        var random = RandomStream(seed: seed, "hidden setting")
        func between(_ low: Int64, _ high: Int64) -> Int64 { low + random.integer(below: high - low + 1) }
        /// A number whose logarithm is uniform.
        func scaled(_ low: Double, _ high: Double) -> Int64 {
            Int64(exp(log(low) + (log(high) - log(low)) * Double(between(0, 1_000_000)) / 1e6))
        }
        func probability(_ low: Int64, _ high: Int64) -> Probability {
            Probability(partsPerMillion: Int32(between(low, high))) ?? .zero
        }
        let down = scaled(200_000, 60_000_000)
        let up = scaled(max(100_000, Double(down) / 20), Double(down))
        let delay = between(1, 200)
        var jitter: Jitter?
        if delay > 10, between(0, 2) == 0 {
            jitter = Jitter(
                span: .milliseconds(between(2, min(delay - 1, 20))),
                distribution: between(0, 1) == 0 ? .uniform : .normal)
        }
        let kind = between(0, 3)
        func direction(_ rate: Int64) -> DirectionConditions {
            var conditions = DirectionConditions(
                rate: Rate(bitsPerSecond: rate), delay: .milliseconds(delay),
                queue: .packets(Int(scaled(8, 300))), jitter: jitter)
            if kind == 1 { conditions.loss = probability(1000, 30_000) }
            if kind == 2 {
                conditions.bursts = .gilbertElliott(
                    becomesBad: probability(1000, 8000), becomesGood: probability(150_000, 500_000),
                    lossInBad: probability(500_000, 1_000_000), lossInGood: .zero)
            }
            return conditions
        }
        self.seed = seed
        conditions = Conditions(up: direction(up), down: direction(down))
        near = between(0, 1) == 0 ? .client : .server
        var jobs: [(start: Int64, up: Int, down: Int)] = []
        var start: Int64 = 0
        for _ in 0..<Self.requests {
            jobs.append((start, 150, 300))
            start += between(300_000_000, 600_000_000)
        }
        jobs.append((start + 1_000_000_000, 100, min(bytesMax, Int(down) / 8 * 15)))
        jobs.append((start + 25_000_000_000, min(bytesMax, Int(up) / 8 * 15), 10))
        self.jobs = jobs
    }

    /// Runs the workload on the modelled link, and writes the capture.
    ///
    /// - Parameter outage: The time of an outage in nanoseconds since the start.
    func capture(to path: String, outage: ClosedRange<Int64>? = nil) throws {
        let capture = try LinkCapture(path, at: near, application: "test", interface: "link")
        var link = TCPLink(conditions, seed: seed, recordsPackets: true)
        var waiting = jobs
        var flows: [FlowID: (job: Int, up: Int, isDone: Bool)] = [:]
        var changes = outage.map { [($0.lowerBound, true), ($0.upperBound, false)] } ?? []
        let base = Instant(.seconds(1))
        while true {
            let job = waiting.first.map { base + Nanoseconds($0.start) } ?? .never
            let change = changes.first.map { base + Nanoseconds($0.0) } ?? .never
            let now = min(link.nextDeadline ?? .never, min(job, change))
            guard now <= base + Self.length else { break }
            if change <= now {
                let begins = changes.removeFirst().1
                link.setOutage(PerDirection(up: begins, down: begins))
            }
            if job <= now {
                waiting.removeFirst()
                flows[link.open(at: now)] = (jobs.count - waiting.count - 1, 0, false)
            }
            _ = link.advance(to: now)
            while let event = link.takeEvent() {
                guard let flow = flows[event.flow] else { continue }
                switch event.event {
                case .established(.client): link.send(jobs[flow.job].up, on: event.flow, .up, at: now)
                case .delivered(let bytes, .up):
                    flows[event.flow]?.up += bytes
                    if flow.up + bytes == jobs[flow.job].up {
                        link.send(jobs[flow.job].down, on: event.flow, .down, at: now)
                        link.finish(event.flow, .down, at: now)
                    }
                case .finished(.down): link.finish(event.flow, .up, at: now)
                default: break
                }
            }
            while let record = link.takeRecord() {
                capture.append(
                    record, payload: nil, cause: nil,
                    ports: PerDirection(up: UInt16(50_000 + record.connectionNumber), down: 443),
                    startUnixNanoseconds: 0)
            }
        }
        _ = capture.close()
    }
}

/// How many figures of calibrations agree with the links.
struct CalibrationScore {
    private(set) var lines: [String] = []
    private(set) var correct = 0
    private(set) var known = 0
    private(set) var unknown = 0

    /// The share of known figures that differ by at most 10 % or have the truth in their interval.
    var share: Double { Double(correct) / Double(max(1, known)) }

    mutating func add(_ setting: HiddenSetting, _ calibration: Calibration) {
        let truth = setting.conditions
        add("\(setting.seed) round trip", Double(truth.up.delay.count + truth.down.delay.count), calibration.roundTrip)
        for direction in Direction.allCases {
            let (figures, truth) = (calibration.directions[direction], truth[direction])
            let name = "\(setting.seed) \(direction)"
            add("\(name) rate", Double(truth.rate?.bitsPerSecond ?? 0), figures.rate)
            if case .packets(let packets) = truth.queue { add("\(name) queue", Double(packets), figures.queuePackets) }
            add("\(name) loss", truth.meanLoss, figures.loss)
            let jitter = truth.jitter.map {
                Double($0.span.count) / ($0.distribution == .uniform ? 3.0.squareRoot() : 1)
            }
            add("\(name) jitter", jitter ?? 0, figures.jitter)
        }
    }

    private mutating func add(_ name: String, _ truth: Double, _ figure: Calibration.Figure) {
        switch figure {
        case .unknown(let reason):
            unknown += 1
            lines.append("\(name): \(truth), unknown: \(reason)")
        case .known(let estimate, _):
            known += 1
            let isCorrect =
                (estimate.low...estimate.high).contains(truth) || truth > 0 && abs(estimate.value / truth - 1) <= 0.1
            correct += isCorrect ? 1 : 0
            lines.append(
                "\(name): \(truth), estimated \(estimate.value) (\(estimate.low) to \(estimate.high))\(isCorrect ? "" : " WRONG")"
            )
        }
    }
}

extension DirectionConditions {
    /// The mean probability of a loss outside full queues.
    fileprivate var meanLoss: Double {
        guard case .gilbertElliott(let toBad, let toGood, let inBad, _) = bursts else {
            return Double(loss.partsPerMillion) / 1e6
        }
        let bad = Double(toBad.partsPerMillion) / Double(toBad.partsPerMillion + toGood.partsPerMillion)
        return bad * Double(inBad.partsPerMillion) / 1e6
    }
}
