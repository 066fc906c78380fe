/// The faults of a scenario and the requests that each has matched, counted over all devices.
///
/// A fault applies to one exchange: the match with number ``Scenario/Fault/nth``. Requests of writers never match,
/// because a writer has no link.
public struct FaultCounters: Sendable {
    private let faults: [Scenario.Fault]
    private let devices: Set<String>
    private var matches: [Int]
    private var isDisarmed = false

    /// Creates the counters of a scenario.
    public init(_ scenario: Scenario) {
        faults = scenario.faults
        devices = Set(scenario.devices.map(\.name))
        matches = faults.map { _ in 0 }
    }

    /// Counts a request for every fault that it matches. Returns the index of the first fault that applies to it; `nil`
    /// if none does.
    public mutating func requested(by actor: String, method: String, row: String?) -> Int? {
        guard !isDisarmed, devices.contains(actor) else { return nil }
        var found: Int?
        for (index, fault) in faults.enumerated() {
            guard fault.device == nil || fault.device == actor,
                fault.request.method == nil || fault.request.method == method,
                fault.request.row == nil || fault.request.row == row
            else { continue }
            matches[index] += 1
            if matches[index] == fault.nth, found == nil { found = index }
        }
        return found
    }

    /// Disarms all faults: later requests match none.
    public mutating func disarm() { isDisarmed = true }
}
