import Foundation
import LinkModel

/// How many packets a second the model carries, and what more connections cost.
@main struct LinkBenchmark {
    static func main() {
        if CommandLine.arguments.count == 3, let count = Int(CommandLine.arguments[2]), (1...1_000_000).contains(count) {
            // For counting instructions: one scene, so many downloads, the packets on standard output.
            guard let scene = Scene.all.first(where: { $0.name == CommandLine.arguments[1] }) else { return usage() }
            print(scene.downloads(count))
            return
        }
        guard CommandLine.arguments.count == 1 else { return usage() }
        print("1 MB downloads, one after the other; the best of 5 rounds of 200")
        for scene in Scene.all {
            let best = (0..<5).map { _ in time { scene.downloads(200) } }.min { $0.nanoseconds < $1.nanoseconds }!
            print("  \(padded(scene.name, 12)) \(String(format: "%.2f", Double(best.packets) * 1e3 / Double(best.nanoseconds))) million packets/s")
        }
        print("connections at once over one link, some 1.5 million packets in all; the best of 3")
        var one = 0.0
        for count in [1, 100, 10_000] {
            let best = (0..<3).map { _ in time { Scene.atOnce(count) } }.min { $0.nanoseconds < $1.nanoseconds }!
            let each = Double(best.nanoseconds) / Double(best.packets)
            if count == 1 { one = each }
            print("  \(padded("\(count)", 12)) \(String(format: "%.0f ns a packet, %.2f x", each, each / one)) one connection")
        }
    }

    static func usage() {
        print("usage: LinkBenchmark [\(Scene.all.map(\.name).joined(separator: "|")) DOWNLOADS]")
    }

    struct Figure {
        let packets: Int
        let nanoseconds: Int64
    }

    static func time(_ body: () -> Int) -> Figure {
        let start = ContinuousClock.now
        let packets = body()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Figure(packets: packets, nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}

/// A link to measure on.
struct Scene: Sendable {
    let name: String
    let conditions: Conditions

    static let all = [
        Scene(
            name: "lte-q1000",
            conditions: Conditions(
                up: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(65), queue: .packets(1000)),
                down: DirectionConditions(rate: .kilobits(50_000), delay: .milliseconds(50), queue: .packets(1000)))),
        Scene(
            name: "3g-loss5",
            conditions: Conditions(
                up: DirectionConditions(
                    rate: .kilobits(330), delay: .milliseconds(100), loss: Probability(partsPerMillion: 50_000)!),
                down: DirectionConditions(
                    rate: .kilobits(780), delay: .milliseconds(100), loss: Probability(partsPerMillion: 50_000)!))),
    ]

    /// Downloads of 1 MB one after the other; gives the packets offered to the link.
    func downloads(_ count: Int) -> Int {
        var link = TCPLink(conditions, seed: 1)
        var now = Instant.start
        for _ in 0..<count {
            let flow = link.open(at: now)
            link.send(100, on: flow, .up, at: now)
            link.send(1 << 20, on: flow, .down, at: now)
            while let due = link.nextDeadline {
                now = due
                _ = link.advance(to: due)
                while link.takeEvent() != nil {}
            }
            link.remove(flow)
        }
        return offered(link)
    }

    /// Downloads at the same time.
    static func atOnce(_ count: Int) -> Int {
        let direction = DirectionConditions(
            rate: .kilobits(10_000_000), delay: .milliseconds(20), queue: .packets(100_000))
        var link = TCPLink(Conditions(up: direction, down: direction), seed: 1)
        for _ in 0..<count {
            let flow = link.open(at: .start)
            link.send(1_448_000_000 / count, on: flow, .down, at: .start)
        }
        while let due = link.nextDeadline {
            _ = link.advance(to: due)
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
