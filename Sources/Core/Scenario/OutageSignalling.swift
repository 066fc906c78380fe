internal import Determinism

/// Whether the outages of a device's network, and the times in which it is offline, are signalled: whether its interface is reported down in them.
///
/// With `signalled: sometimes`, each outage of an entry draws from the entry's own random stream
/// `link/DEVICE/signalled/ENTRY`.
struct OutageSignalling {
    /// The entry, and its random stream if it draws.
    private var entry: Int?
    private var random: RandomStream?
    private var isOutage = false
    private var isSignalled = true

    /// Updates the state for new conditions. Returns whether an outage is signalled.
    mutating func update(
        _ device: Scenario.Device, isOutage: Bool, at time: Nanoseconds, seed: UInt64
    ) -> Bool {
        guard let current = device.network.lastIndex(where: { $0.start <= time }) else { return true }
        if current != entry {
            entry = current
            random = RandomStream(seed: seed, "link/\(device.name)/signalled/\(current)")
            self.isOutage = false
        }
        defer { self.isOutage = isOutage }
        switch device.network[current].signalling {
        case .always: isSignalled = true
        case .never: isSignalled = false
        case .sometimes:
            if isOutage, !self.isOutage { isSignalled = random?.bool(probability: 0.5) ?? true }
        }
        return isSignalled
    }
}
