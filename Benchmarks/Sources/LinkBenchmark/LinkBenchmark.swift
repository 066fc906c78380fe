import Determinism
import Foundation
import LinkModel
import TCPModel

/// Measures the packets per second of the model and the cost of concurrent connections.
@main struct LinkBenchmark {
    static func main() {
        if CommandLine.arguments.count == 3, let count = Int(CommandLine.arguments[2]), (1...1_000_000).contains(count) {
            // A run for counting instructions: a number of downloads under one set of conditions. Prints the number of
            // packets.
            guard let workload = Workload.all.first(where: { $0.name == CommandLine.arguments[1] }) else { return usage() }
            print(workload.downloads(count))
            return
        }
        guard CommandLine.arguments.count == 1 else { return usage() }
        print("1 MB downloads in sequence, best of 5 rounds of 200")
        for workload in Workload.all {
            let best = (0..<5).map { _ in time { workload.downloads(200) } }.min { $0.nanoseconds < $1.nanoseconds }!
            print("  \(padded(workload.name, 12)) \(String(format: "%.2f", Double(best.packets) * 1e3 / Double(best.nanoseconds))) million packets/s")
        }
        print("concurrent connections on one link, some 1.5 million packets in total, best of 3 rounds")
        var one = 0.0
        for count in [1, 100, 10_000] {
            let best = (0..<3).map { _ in time { Workload.concurrentDownloads(count) } }.min { $0.nanoseconds < $1.nanoseconds }!
            let each = Double(best.nanoseconds) / Double(best.packets)
            if count == 1 { one = each }
            print("  \(padded("\(count)", 12)) \(String(format: "%.0f ns/packet, %.2f x", each, each / one)) one connection")
        }
    }

    static func usage() {
        print("usage: LinkBenchmark [\(Workload.all.map(\.name).joined(separator: "|")) DOWNLOADS]")
    }

    struct Measurement {
        let packets: Int
        let nanoseconds: Int64
    }

    static func time(_ body: () -> Int) -> Measurement {
        let start = ContinuousClock.now
        let packets = body()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Measurement(packets: packets, nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

/// A measurement: a name and the conditions of the link.
struct Workload: Sendable {
    let name: String
    let conditions: Conditions

    static let all = [
        Workload(
            name: "lte-q1000",
            conditions: Conditions(
                up: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(65), queue: .packets(1000)),
                down: DirectionConditions(rate: .kilobits(50_000), delay: .milliseconds(50), queue: .packets(1000)))),
        Workload(
            name: "3g-loss5",
            conditions: Conditions(
                up: DirectionConditions(
                    rate: .kilobits(330), delay: .milliseconds(100), loss: Probability(partsPerMillion: 50_000)!),
                down: DirectionConditions(
                    rate: .kilobits(780), delay: .milliseconds(100), loss: Probability(partsPerMillion: 50_000)!))),
    ]

    /// Runs downloads of 1 MB in sequence. Returns the packets offered to the link.
    func downloads(_ count: Int) -> Int {
        var link = TCPLink(conditions, seed: 1)
        var now = Instant.start
        for _ in 0..<count {
            let flow = link.open(at: now)
            link.send(100, on: flow, .up, at: now)
            link.send(1 << 20, on: flow, .down, at: now)
            while let deadline = link.nextDeadline {
                now = deadline
                _ = link.advance(to: deadline)
                while link.takeEvent() != nil {}
            }
            link.remove(flow)
        }
        return offered(link)
    }

    /// Runs concurrent downloads. Returns the packets offered to the link.
    static func concurrentDownloads(_ count: Int) -> Int {
        let direction = DirectionConditions(
            rate: .kilobits(10_000_000), delay: .milliseconds(20), queue: .packets(100_000))
        var link = TCPLink(Conditions(up: direction, down: direction), seed: 1)
        for _ in 0..<count {
            let flow = link.open(at: .start)
            link.send(1_448_000_000 / count, on: flow, .down, at: .start)
        }
        while let deadline = link.nextDeadline {
            _ = link.advance(to: deadline)
            while link.takeEvent() != nil {}
        }
        return offered(link)
    }
}

private func offered(_ link: borrowing TCPLink) -> Int {
    var sum = 0
    for direction in Direction.allCases {
        let counters = link.counters(direction)
        sum += counters.packets + counters.packetsLost + counters.packetsDropped
    }
    return sum
}
