/// What the clients of a run can still learn from the server: whether each device has read the index since the last
/// change of the server's notes. Until the server's next change, a device that has read it learns nothing from a poll.
struct ServerKnowledge {
    private enum State: Equatable {
        /// The server may have changed, and the device has had something to send or fetch since then.
        case outdated
        /// The server has not changed since the device had nothing left to send or fetch.
        case settled
        /// The device is reading the index.
        case reading(exchange: Int)
        /// The device has read the index, and may be fetching what is new.
        case read
        /// The device has nothing to send or fetch after it has read the index.
        case current
    }

    private var states: [State]
    /// Requests that can change the server's notes.
    private var writes: Set<Int> = []

    init(devices: Int) { states = [State](repeating: .outdated, count: devices) }

    /// Returns whether a device learns nothing from the server before the server's notes change.
    func isCurrent(_ device: Int) -> Bool { states[device] == .current }

    /// Returns whether a request that can change the server's notes has had no response of the server.
    func isPendingWrite(_ exchange: Int) -> Bool { writes.contains(exchange) }

    /// Records a request. A device that had nothing to send or fetch reads the index first.
    ///
    /// - Parameter device: The device; `nil` for a writer.
    mutating func requested(_ exchange: Int, by device: Int?, method: String, row: String?) {
        if method != "GET" {
            writes.insert(exchange)
        } else if let device, row == nil, states[device] == .settled {
            states[device] = .reading(exchange: exchange)
        }
    }

    /// Records the server's response to a request.
    ///
    /// - Parameter isSettled: Returns whether a device has nothing to send or fetch.
    mutating func responded(to exchange: Int, isSettled: (Int) -> Bool) {
        guard writes.remove(exchange) != nil else { return }
        for device in states.indices { states[device] = isSettled(device) ? .settled : .outdated }
    }

    /// Records the end of an exchange.
    mutating func ended(_ exchange: Int, of device: Int?, isSuccess: Bool) {
        guard let device, states[device] == .reading(exchange: exchange) else { return }
        states[device] = isSuccess ? .read : .outdated
    }

    /// Records that a device has nothing to send or fetch.
    mutating func settled(_ device: Int) {
        switch states[device] {
        case .outdated: states[device] = .settled
        case .read: states[device] = .current
        case .settled, .reading, .current: break
        }
    }

    /// Records that a device's client has stopped.
    mutating func stopped(_ device: Int) { states[device] = .outdated }
}
