public import Determinism
public import LinkModel

extension Scenario {
    /// The time of the last planned change of a link's conditions. Windows of expectations do not prolong a run.
    public var plannedEnd: Nanoseconds { devices.flatMap(\.network).map(\.start).max() ?? .zero }

    /// Returns whether an `eventually` expectation that does not hold yet can still be met.
    public func hasOpenExpectations(_ history: History, at now: Nanoseconds) -> Bool {
        var evaluator = ExpectationEvaluator(self, history)
        for expectation in expectations {
            guard case .eventually(_, _, let window) = expectation.kind else { continue }
            let end: Nanoseconds
            switch window {
            case .by(let time): end = time
            case .after(let mark, let within):
                guard let time = history.time(of: mark) else { continue }
                end = time + within
            }
            if now < end, evaluator.outcome(of: expectation) != .pass { return true }
        }
        return false
    }

    /// Returns whether a link of a device, given by its name, has a captive portal.
    func isPortal(_ device: String, _ link: String) -> Bool {
        conditions(of: device, named: link)?.connectionPolicy == .portal
    }

    /// Returns the conditions of a device's link by their name; `nil` if its network does not contain them.
    func conditions(of device: String, named name: String) -> Conditions? {
        guard let device = devices.first(where: { $0.name == device }) else { return nil }
        for entry in device.network {
            switch entry.phase {
            case .hold(let link), .ramp(let link, _): if link.name == name { return link.conditions }
            case .flap(let intervals, _):
                if let found = intervals.first(where: { $0.link.name == name }) { return found.link.conditions }
            }
        }
        return nil
    }
}

extension Conditions {
    /// Whether all packets of both directions are lost.
    public var isOutage: Bool { up.loss == .one && down.loss == .one }

    /// Whether the device's system may report its interface as down: no packet passes, or the interface is down.
    public var canBeSignalled: Bool { isOutage || connectionPolicy == .offline }

    /// Whether no exchange with the server can be completed: a direction is dead, connections are refused, the
    /// server's name does not resolve, or a captive portal responds.
    public var preventsExchanges: Bool { up.loss == .one || down.loss == .one || connectionPolicy != .open }
}
