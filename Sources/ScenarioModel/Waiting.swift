public import LinkModel

extension Scenario {
    /// Until when something happens by itself: links change, windows of expectations end.
    public func knownEnd(_ history: History) -> Nanoseconds {
        var end = devices.flatMap(\.network).map(\.start).max() ?? .zero
        for expectation in expectations {
            if case .traffic(let traffic) = expectation.kind, case .time(let time)? = traffic.between?.to {
                end = max(end, time)
            }
        }
        return end
    }

    /// Whether something may yet come true.
    public func awaits(_ history: History, at now: Nanoseconds) -> Bool {
        var judge = Judge(self, history)
        for expectation in expectations {
            guard case .eventually(_, _, let window) = expectation.kind else { continue }
            let end: Nanoseconds
            switch window {
            case .by(let time): end = time
            case .after(let mark, let within):
                guard let time = history.time(of: mark) else { continue }
                end = time + within
            }
            if now < end, case .fail = judge.outcome(of: expectation) { return true }
        }
        return false
    }
}

extension History {
    /// Whether a device looks like this at the moment.
    public func isNow(_ device: String, _ condition: StateCondition) -> Bool {
        guard let state = lastState(of: device) else { return false }
        return Judge.objection(to: state, condition).objection == nil
    }

    private func lastState(of device: String) -> DeviceState? {
        for entry in entries.reversed() {
            if case .device(device, let state) = entry.event { return state }
        }
        return nil
    }
}

extension Timeline.Phase {
    /// The conditions it names.
    public var links: [Timeline.NamedConditions] {
        switch self {
        case .hold(let link), .ramp(let link, _): [link]
        case .flap(let intervals, _): intervals.map(\.link)
        }
    }
}
