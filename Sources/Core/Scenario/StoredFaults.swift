/// The faults at the point `stored`: the first commit of a device's store after the response to the exchange.
///
/// A commit of another cause between the response and its processing counts as the client's; nothing outside the client
/// tells them apart.
struct StoredFaults {
    /// A fault and its exchange.
    struct Entry: Equatable {
        let fault: Int
        let exchange: Int
    }

    /// Exchanges whose response has not been received, with their device and fault.
    private var armed: [Int: (device: String, fault: Int)] = [:]
    /// Exchanges whose response has been received, by device.
    private var received: [String: Entry] = [:]

    /// Applies a fault to an exchange of a device.
    mutating func arm(_ fault: Int, exchange: Int, of device: String) { armed[exchange] = (device, fault) }

    /// Records that the response has been received. Returns the fault that it supersedes: of an earlier exchange after
    /// which nothing was stored.
    mutating func responseReceived(_ exchange: Int) -> Int? {
        guard let (device, fault) = armed.removeValue(forKey: exchange) else { return nil }
        return received.updateValue(Entry(fault: fault, exchange: exchange), forKey: device)?.fault
    }

    /// Records that the exchange has failed. Returns its fault, which does not fire.
    mutating func failed(_ exchange: Int) -> Int? { armed.removeValue(forKey: exchange)?.fault }

    /// Records a commit of a device's store. Returns the fault that fires.
    mutating func committed(_ device: String) -> Entry? { received.removeValue(forKey: device) }

    /// Records that a device has nothing left to store: it has sent another request, has nothing to send or fetch, or
    /// has been killed. Returns the fault that does not fire.
    mutating func nothingLeft(_ device: String) -> Int? { received.removeValue(forKey: device)?.fault }

    /// Forgets all faults.
    mutating func disarm() {
        armed = [:]
        received = [:]
    }
}
