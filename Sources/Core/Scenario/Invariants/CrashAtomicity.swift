/// I11: crash atomicity.
enum CrashAtomicity: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A kill at any point leads to the same end as no kill.",
        violations: "A device shows, after a restart, other notes, marks or texts than at its last report before the "
            + "kill, although it has committed nothing in between; or an app shows a form without the inputs that it "
            + "had; or the field app shows another screen. Two runs, one with a kill and one without, are compared by "
            + "the tests that generate kills.",
        worlds: "Simulated and live, for Slowlane's client. One run shows only the immediate losses of a kill.",
        blindSpots: "In one run, the effects of a kill that appear later; programs, whose commits are not known.",
        source: "tags s35, s36; the legacy client saved the responses to all writes at once")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !device.isProgram {
            if let found = lostInput(device, run) { return found }
            for stop in device.stops {
                guard let start = device.starts.first(where: { $0.index > stop.index }),
                    !isUpgrade(between: stop.index, start.index, device)
                else { continue }
                // What was committed after the last report is unknown, and the user may act at once.
                guard let found = firstChange(of: device, stop.index, start.index, run),
                    !device.commits.contains(where: { $0 < stop.index && $0 > found.lastReport }),
                    !device.commits.contains(where: { $0 > stop.index && $0 < found.change.index }),
                    !device.actions.contains(where: {
                        $0.moment.index > found.lastReport && $0.moment.index < found.change.index && !isRestart($0)
                    })
                else { continue }
                let change = found.change
                let what =
                    change.after == nil ? "has lost" : change.before == nil ? "has gained" : "shows another state of"
                return InvariantViolation(
                    "\(device.name) \(what) \(change.name) after the restart at \(RunFacts.text(start.time))",
                    at: change.index, of: device.name, change.name)
            }
        }
        return nil
    }

    /// Returns whether another version of the client follows a stop. The action is recorded before the stop.
    private static func isUpgrade(between stop: Int, _ start: Int, _ device: RunFacts.Device) -> Bool {
        let last = device.actions.last { $0.moment.index < stop }
        return device.actions.contains { action in
            (action.kind == .upgrade || action.kind == .signIn)
                && (action.moment.index > stop && action.moment.index < start
                    || action.moment.index == last?.moment.index)
        }
    }

    private static func isRestart(_ action: RunFacts.UserAction) -> Bool {
        switch action.kind {
        case .kill, .start, .upgrade, .signOut, .signIn: true
        default: false
        }
    }

    /// Returns the first difference of the first view after a stop, and the last report before.
    private static func firstChange(
        of device: RunFacts.Device, _ stop: Int, _ start: Int, _ run: RunFacts
    ) -> (change: RunFacts.RowChange, lastReport: Int)? {
        guard let first = firstView(of: device, stop, start, run) else { return nil }
        guard let change = device.changes.first(where: { $0.index == first }) else { return nil }
        let last = run.history.entries[..<stop].lastIndex { entry in
            if case .device(device.name, _) = entry.event { true } else { false }
        }
        return (change, last ?? -1)
    }

    /// Returns the index of the first view that a process reports, before it has received anything. A process may report it
    /// before its start is recorded.
    private static func firstView(of device: RunFacts.Device, _ stop: Int, _ start: Int, _ run: RunFacts) -> Int? {
        let own = Set(device.exchanges.map { run.exchanges[$0].id })
        // The looks of an app depend on connectivity: later views differ without a loss.
        let dependsOnConnectivity = device.device.client.app != nil
        for index in run.history.entries.indices[(stop + 1)...] {
            switch run.history.entries[index].event {
            case .belief(device.name, _) where dependsOnConnectivity: return nil
            case .device(device.name, _): return index
            case .stopped(device.name): return nil
            case .responseReceived(let id, _): if index > start, own.contains(id) { return nil }
            default: continue
            }
        }
        return nil
    }
}
