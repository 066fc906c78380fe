internal import Determinism

/// The windows of expectations that have not ended, so that events of the script phase can still decide the
/// expectations. Times count from 0 s.
struct OpenExpectations {
    private struct Window {
        enum Kind {
            /// Open until the state is reached.
            case state(device: String, StateCondition)
            /// Open while one of the devices has something to send or fetch.
            case work(devices: [String])
        }

        let kind: Kind
        /// The mark at which the window starts; `nil` if that is 0 s, or has happened.
        var mark: String?
        var start = Nanoseconds.zero
        /// The first time after the window.
        var end: Nanoseconds
    }

    private var windows: [Window] = []
    /// The devices of expectations that the script phase must decide, and whose window has no other end. They are
    /// undecided while one of these has something to send or fetch.
    private var undecided: Set<String> = []
    private var awaited: AwaitedRequests
    private var states: [String: History.DeviceState] = [:]

    /// Returns the devices that a condition is about: all if it is one of any device.
    private static func devices(_ subject: String, _ scenario: Scenario) -> [String] {
        subject == Scenario.anyDevice ? scenario.devices.map(\.name) : [subject]
    }

    init(_ scenario: Scenario) {
        let all = scenario.devices.map(\.name)
        awaited = AwaitedRequests(scenario)
        for expectation in scenario.expectations {
            switch expectation.kind {
            case .eventually(let device, let condition, .by(let time)):
                windows.append(Window(kind: .state(device: device, condition), end: time + Nanoseconds(1)))
            case .eventually(let device, let condition, .after(let mark, let within)):
                windows.append(
                    Window(kind: .state(device: device, condition), mark: mark, end: within + Nanoseconds(1)))
            case .traffic(let traffic), .sometimesTraffic(let traffic):
                let devices = traffic.from.map { [$0] } ?? all
                if traffic.between == nil { undecided.formUnion(devices) }
                guard case .time(let end)? = traffic.between?.to else { continue }
                windows.append(Window(kind: .work(devices: devices), end: end))
            case .always(let device, let condition), .sometimes(let device, let condition):
                guard case .time(let end)? = condition.until else { continue }
                windows.append(Window(kind: .work(devices: Self.devices(device, scenario)), end: end))
            case .threshold(let threshold) where threshold.metric == .saveToSynced:
                undecided.formUnion(all)
            case .serverRow, .serverCount, .finally, .agree, .sometimesFault, .threshold: break
            }
        }
    }

    /// Records an event of an exchange.
    mutating func recorded(_ event: History.Event) { awaited.recorded(event) }

    /// Records a change of a device's state.
    mutating func stateChanged(_ device: String, _ state: History.DeviceState) {
        states[device] = state
        closeReached()
    }

    /// Records that a mark was set.
    mutating func markSet(_ mark: String, at time: Nanoseconds) {
        for index in windows.indices where windows[index].mark == mark {
            windows[index].mark = nil
            windows[index].start = time
            windows[index].end = time + windows[index].end
        }
        closeReached()
    }

    private mutating func closeReached() {
        let states = states
        windows.removeAll { window in
            guard window.mark == nil, case .state(let device, let condition) = window.kind else { return false }
            return states.contains { name, state in
                (name == device || device == Scenario.anyDevice) && state.satisfies(condition)
            }
        }
    }

    /// Advances the time: closes each window whose end has passed, with the delay that lateness can cause added.
    mutating func advance(to now: Nanoseconds, _ lateness: Lateness) {
        windows.removeAll { $0.mark == nil && now >= Self.end($0, lateness) }
    }

    private static func end(_ window: Window, _ lateness: Lateness) -> Nanoseconds {
        window.end + lateness.delay(from: window.start, to: window.end)
    }

    /// Returns whether an expectation whose window has no end is undecided.
    ///
    /// - Parameters:
    ///   - hasWork: Returns whether a device or writer has something to send or fetch.
    ///   - isRunning: Returns whether the client of a device runs.
    func isUndecided(hasWork: (String) -> Bool, isRunning: (String) -> Bool) -> Bool {
        awaited.isOpen(isRunning: isRunning) || undecided.contains(where: hasWork)
    }

    /// Returns the earliest time at which an open window is over; `nil` if none is open.
    ///
    /// - Parameter hasWork: Returns whether a device or writer has something to send or fetch.
    func nextEnd(_ lateness: Lateness, hasWork: (String) -> Bool) -> Nanoseconds? {
        var next: Nanoseconds?
        for window in windows where window.mark == nil {
            if case .work(let devices) = window.kind, !devices.contains(where: hasWork) { continue }
            let end = Self.end(window, lateness)
            next = next.map { min($0, end) } ?? end
        }
        return next
    }
}
