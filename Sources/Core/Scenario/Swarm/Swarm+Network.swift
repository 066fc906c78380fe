internal import Determinism
internal import LinkModel

/// The network of a seed.
extension Swarm {
    private typealias Entry = Scenario.NetworkEntry

    /// The shortest time between a departure and the restore phase: requests on their way have ended by then.
    private static let departureMin: Int64 = 120

    /// Returns the links of a device that work: one to three.
    func workingLinks(of device: String, _ draws: SwarmDraws) -> [Timeline.NamedConditions] {
        var random = draws.stream("links/\(device)")
        return (0...random.integer(below: 3)).map { _ in random.pick(links.working) }
    }

    /// Returns the network of each device.
    func networks(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [[Scenario.NetworkEntry]] {
        var networks = base.devices.map { episodes(of: $0.name, configuration, draws) }
        if configuration.classes.contains(.swizzle) { swizzle(&networks, draws) }
        if let departed = configuration.departed,
            let index = base.devices.firstIndex(where: { $0.name == departed })
        {
            var random = draws.stream("departure/link")
            let seconds = Self.length.count / 1_000_000_000
            let time = seconds / 3 + random.integer(below: seconds * 2 / 3 - Self.departureMin)
            let link = random.pick([links.silent] + links.oneWay)
            networks[index] = Self.overlay(
                networks[index], from: .seconds(time), to: Self.length, link,
                isSignalled: random.bool(probability: 0.5))
        }
        return networks
    }

    /// Returns the network of a device without what concerns several devices.
    private func episodes(
        of device: String, _ configuration: SwarmConfiguration, _ draws: SwarmDraws
    ) -> [Scenario.NetworkEntry] {
        let working = workingLinks(of: device, draws)
        var entries: [Entry] = []
        var time = Nanoseconds.zero
        while time < Self.length {
            var random = draws.stream("network/\(device)/\(entries.count)")
            let length = Nanoseconds.seconds(5 + random.integer(below: 1 + (8 << random.integer(below: 4))))
            let link = random.pick(working)
            let broken = random.pick(links.broken)
            let oneWay = random.pick(links.oneWay)
            let isSignalled = random.bool(probability: 0.5)
            let up = Nanoseconds.seconds(2 + random.integer(below: 8))
            let down = Nanoseconds.seconds(1 + random.integer(below: 5))
            var phase = Timeline.Phase.hold(link)
            switch random.integer(below: 10) {
            case 5, 6: if configuration.classes.contains(.outages) { phase = .hold(broken) }
            case 7: if configuration.classes.contains(.oneWay) { phase = .hold(oneWay) }
            case 8, 9:
                let fails = random.bool(probability: 0.25) ? oneWay : broken
                if configuration.classes.contains(.flapping) {
                    phase = .flap(
                        [Timeline.Interval(link, up), Timeline.Interval(fails, down)],
                        jitter: Probability(partsPerMillion: 500_000) ?? .zero)
                }
            default: break
            }
            var entry = Entry(at: time, phase, isSignalled: isSignalled)
            // Policies of apps distinguish kinds of interfaces. In the end, all may be used.
            if !base.apps.isEmpty {
                let isMetered = random.bool(probability: 0.25) && time + length < Self.length
                entry.interface = isMetered ? .cellular : .wifi
            }
            entries.append(entry)
            time = time + length
        }
        return entries
    }

    /// Cuts the links one after the other, and restores them in another order.
    private func swizzle(_ networks: inout [[Scenario.NetworkEntry]], _ draws: SwarmDraws) {
        var random = draws.stream("swizzle")
        let start = 20 + random.integer(below: Self.length.count / 1_000_000_000 - 200)
        let (step, pause) = (1 + random.integer(below: 10), 1 + random.integer(below: 30))
        let cuts = Self.permutation(networks.count, &random)
        let restores = Self.permutation(networks.count, &random)
        let restoreStart = start + step * Int64(networks.count) + pause
        let isSignalled = random.bool(probability: 0.5)
        for index in networks.indices {
            networks[index] = Self.overlay(
                networks[index], from: .seconds(start + step * Int64(cuts[index])),
                to: .seconds(min(restoreStart + step * Int64(restores[index]), Self.length.count / 1_000_000_000)),
                links.silent, isSignalled: isSignalled)
        }
    }

    private static func permutation(_ count: Int, _ random: inout RandomStream) -> [Int] {
        var values = Array(0..<count)
        for index in values.indices.dropLast() {
            values.swapAt(index, index + Int(random.integer(below: Int64(count - index))))
        }
        return values
    }

    /// Returns a network with a link in place of others for a time.
    private static func overlay(
        _ entries: [Scenario.NetworkEntry], from: Nanoseconds, to: Nanoseconds, _ link: Timeline.NamedConditions,
        isSignalled: Bool
    ) -> [Scenario.NetworkEntry] {
        var result = entries.filter { $0.start < from }
        result.append(Entry(at: from, .hold(link), isSignalled: isSignalled))
        if to < length, let resumed = entries.last(where: { $0.start <= to }) {
            result.append(
                Entry(at: to, resumed.phase, signalling: resumed.signalling, interface: resumed.interface))
        }
        return result + entries.filter { $0.start > to }
    }
}
