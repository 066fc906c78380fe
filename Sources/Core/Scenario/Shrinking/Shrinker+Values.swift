internal import Determinism
internal import Impairment
internal import LinkModel

/// Simpler networks, times and values.
extension Shrinker {
    // MARK: Networks

    /// Merges neighbouring entries, and replaces links by simpler ones.
    mutating func simplifyNetworks() -> Bool {
        var hasChanged = false
        for device in current.devices.indices {
            hasChanged =
                Self.removeChunks(
                    count: { $0.current.devices[device].network.count - 1 }, &self,
                    attempt: { shrinker, range in
                        // An entry lasts until the next one that is left.
                        var network = shrinker.current.devices[device].network
                        network.removeSubrange(range.lowerBound + 1..<range.upperBound + 1)
                        return shrinker.attempt(shrinker.replacing(network, of: device))
                    }) || hasChanged
            hasChanged = removeFirstEntry(of: device) || hasChanged
            var index = 0
            while index < current.devices[device].network.count {
                for entry in simplerEntries(current.devices[device].network[index]) {
                    var network = current.devices[device].network
                    network[index] = entry
                    if attempt(replacing(network, of: device)) {
                        hasChanged = true
                        break
                    }
                }
                index += 1
            }
        }
        return hasChanged
    }

    private func replacing(_ network: [Scenario.NetworkEntry], of device: Int) -> Scenario {
        var candidate = current
        candidate.devices[device].network = network
        return candidate
    }

    /// Lets the second entry begin at 0 s.
    private mutating func removeFirstEntry(of device: Int) -> Bool {
        var hasChanged = false
        while current.devices[device].network.count > 1 {
            var network = Array(current.devices[device].network.dropFirst())
            network[0].start = .zero
            guard attempt(replacing(network, of: device)) else { break }
            hasChanged = true
        }
        return hasChanged
    }

    /// Returns simpler entries, the simplest first.
    private func simplerEntries(_ entry: Scenario.NetworkEntry) -> [Scenario.NetworkEntry] {
        var phases: [Timeline.Phase] = []
        switch entry.phase {
        case .hold(let link):
            if link != wifi {
                phases.append(.hold(wifi))
                if let profile = environment.profile(link.name), profile != link { phases.append(.hold(profile)) }
            }
        case .ramp(let link, _): phases = [.hold(wifi), .hold(link)]
        case .flap(let intervals, let jitter):
            phases = [.hold(wifi)] + intervals.map { .hold($0.link) }
            if jitter != .zero { phases.append(.flap(intervals, jitter: .zero)) }
        }
        var found = phases.map { Scenario.NetworkEntry(at: entry.start, $0, isSignalled: true) }
        guard entry.signalling != .always || entry.interface != nil else { return found }
        found.append(Scenario.NetworkEntry(at: entry.start, entry.phase, isSignalled: true))
        found += phases.map { entry.replacing(\.phase, $0) }
        if entry.signalling != .always, entry.interface != nil {
            found.append(Scenario.NetworkEntry(at: entry.start, entry.phase, signalling: entry.signalling))
        }
        return found
    }

    // MARK: Times

    /// The durations of a readable scenario.
    private static let durations: [Nanoseconds] = [.seconds(1), .seconds(5), .seconds(30), .seconds(60)]

    /// The times of steps and entries of networks, without 0 s, in order.
    private var times: [Nanoseconds] {
        var found: Set<Nanoseconds> = []
        for step in current.steps { if case .at(let time) = step.trigger { found.insert(time) } }
        for device in current.devices { found.formUnion(device.network.map(\.start)) }
        return found.filter { $0 > .zero }.sorted()
    }

    /// Replaces the spans between steps and changes of networks by readable ones, and those of faults and delays.
    mutating func shortenTimes() -> Bool {
        var hasChanged = false
        for duration in Self.durations {
            let gaps = spans(between: times)
            let shorter = gaps.map { Self.durations.contains($0) ? min($0, duration) : duration }
            if shorter != gaps, attempt(replacing(gaps: shorter)) {
                hasChanged = true
                break
            }
        }
        var index = 0
        while index < times.count {
            let gaps = spans(between: times)
            for duration in Self.durations {
                // A readable span is replaced by a shorter one only.
                if Self.durations.contains(gaps[index]), duration >= gaps[index] { break }
                var shorter = gaps
                shorter[index] = duration
                if attempt(replacing(gaps: shorter)) {
                    hasChanged = true
                    break
                }
            }
            index += 1
        }
        return shortenSpans() || hasChanged
    }

    private func spans(between times: [Nanoseconds]) -> [Nanoseconds] {
        zip(times, [.zero] + times).map { $0 - $1 }
    }

    /// Returns the scenario with other spans between its times. Other times keep their distance to the time before.
    private func replacing(gaps: [Nanoseconds]) -> Scenario {
        let old = [.zero] + times
        var new: [Nanoseconds] = [.zero]
        for gap in gaps { new.append((new.last ?? .zero) + gap) }
        let mapping = ScenarioMapping(time: { time in
            let index = (old.firstIndex { $0 > time } ?? old.count) - 1
            guard index >= 0 else { return time }
            let moved = new[index] + (time - old[index])
            return index + 1 < new.count ? min(moved, new[index + 1]) : moved
        })
        return mapping(current)
    }

    /// Replaces the spans of faults, and delays of steps, by readable ones.
    private mutating func shortenSpans() -> Bool {
        var hasChanged = false
        for index in current.faults.indices {
            guard case .link(.delay(let span)) = current.faults[index].action, !Self.durations.contains(span) else {
                continue
            }
            for duration in Self.durations {
                var candidate = current
                candidate.faults[index].action = .link(.delay(duration))
                if attempt(candidate) {
                    hasChanged = true
                    break
                }
            }
        }
        for index in current.steps.indices {
            guard case .after(let mark, let delay) = current.steps[index].trigger, delay != .zero,
                !Self.durations.contains(delay)
            else { continue }
            for duration in [.zero] + Self.durations {
                var candidate = current
                candidate.steps[index].trigger = .after(mark, delay: duration)
                if attempt(candidate) {
                    hasChanged = true
                    break
                }
            }
        }
        return hasChanged
    }

    // MARK: Values

    /// Replaces values by defaults and short ones.
    mutating func simplifyValues() -> Bool {
        var hasChanged = false
        func attempt(_ change: (inout Scenario) -> Bool, _ shrinker: inout Shrinker) {
            var candidate = shrinker.current
            if change(&candidate), shrinker.attempt(candidate) { hasChanged = true }
        }
        attempt({ $0.removeUnusedNotes() }, &self)
        attempt({ $0.removeUnusedMarks() }, &self)
        attempt({ $0.removeFill() }, &self)
        attempt({ $0.shortenTexts() }, &self)
        attempt({ $0.removeTitles() }, &self)
        attempt({ $0.renameRows() }, &self)
        attempt({ $0.renameActors() }, &self)
        attempt({ $0.resetRevisions() }, &self)
        attempt({ $0.set(\.restoreAt, nil) }, &self)
        attempt({ $0.set(\.limit, .seconds(600)) }, &self)
        attempt({ $0.set(\.tokenLife, nil) }, &self)
        attempt({ $0.set(\.contract, "compat") }, &self)
        attempt({ $0.useOneUser() }, &self)
        attempt({ $0.makeStepsMandatory() }, &self)
        if current.seed > 1 { attempt({ $0.set(\.seed, 0) }, &self) }
        if current.seed > 1 { attempt({ $0.set(\.seed, 1) }, &self) }
        for index in current.faults.indices {
            for fault in simplerFaults(current.faults[index]) {
                var candidate = current
                candidate.faults[index] = fault
                if self.attempt(candidate) {
                    hasChanged = true
                    break
                }
            }
        }
        return hasChanged
    }

    /// Returns simpler faults, the simplest first.
    private func simplerFaults(_ fault: Scenario.Fault) -> [Scenario.Fault] {
        var found: [Scenario.Fault] = []
        if fault.nth > 1, fault.probability == nil { found.append(fault.replacing(\.nth, 1)) }
        if fault.nth > 2, fault.probability == nil { found.append(fault.replacing(\.nth, fault.nth / 2)) }
        if fault.times != 1...1 { found.append(fault.replacing(\.times, 1...1)) }
        if fault.times.upperBound > 2 {
            let most = fault.times.upperBound / 2
            found.append(fault.replacing(\.times, min(fault.times.lowerBound, most)...most))
        }
        // A single device needs no name.
        if fault.device != nil, current.devices.count == 1 { found.append(fault.replacing(\.device, nil)) }
        if fault.bytes != nil { found.append(fault.replacing(\.bytes, nil)) }
        if fault.side != nil { found.append(fault.replacing(\.side, nil)) }
        switch fault.action {
        case .link(.close), .link(.stall), .link(.throttle): found.append(fault.replacing(\.action, .link(.reset)))
        case .link, .kill: break
        }
        return found
    }
}
