internal import Determinism
internal import LinkModel

/// The faults of a scenario and the requests that each has matched, counted over all devices.
///
/// A fault applies to the matches from number ``Scenario/Fault/nth`` on, or with a probability to each of them, until it
/// has applied as often as it may. Requests of writers never match, because a writer has no link.
public struct FaultCounters: Sendable {
    /// A fault that applies to an exchange.
    struct Application: Equatable {
        /// The index of the fault.
        let fault: Int
        /// The point, never ``Scenario/Fault/Point/any``.
        let point: Scenario.Fault.Point
    }

    private let faults: [Scenario.Fault]
    private let devices: Set<String>
    /// The devices whose clients are programs: nobody knows when they store a result.
    private let programs: Set<String>
    private var matches: [Int]
    private var applied: [Int]
    /// A stream for each fault.
    private var streams: [RandomStream]
    /// A stream of points for each fault.
    private var points: [RandomStream]
    private var isDisarmed = false

    /// Creates the counters of a scenario.
    public init(_ scenario: Scenario, seed: UInt64) {
        faults = scenario.faults
        devices = Set(scenario.devices.map(\.name))
        programs = Set(scenario.devices.filter(\.runsProgram).map(\.name))
        matches = faults.map { _ in 0 }
        applied = matches
        let names = Scenario.Fault.streamNames(faults)
        streams = names.map { RandomStream(seed: seed, $0) }
        points = names.map { RandomStream(seed: seed, "\($0)/point") }
    }

    /// Counts a request for every fault that it matches. Returns the first fault that applies to it; `nil` if none does.
    mutating func requested(by actor: String, method: String, row: String?) -> Application? {
        guard !isDisarmed, devices.contains(actor) else { return nil }
        var found: Int?
        for (index, fault) in faults.enumerated() {
            guard fault.device == nil || fault.device == actor,
                fault.request.method == nil || fault.request.method == method,
                fault.request.row == nil || fault.request.row == row,
                fault.point != .stored || !programs.contains(actor)
            else { continue }
            matches[index] += 1
            // Drawn for each match, so that other faults do not change what this one draws.
            let isDrawn =
                fault.probability.map { streams[index].integer(below: 1_000_000) < Int64($0.partsPerMillion) }
                ?? (matches[index] >= fault.nth)
            if isDrawn, applied[index] < fault.times.upperBound, found == nil {
                found = index
                applied[index] += 1
            }
        }
        return found.map { Application(fault: $0, point: point(of: $0, isProgram: programs.contains(actor))) }
    }

    /// Returns the point of a fault, drawn if it may be any.
    private mutating func point(of fault: Int, isProgram: Bool) -> Scenario.Fault.Point {
        guard faults[fault].point == .any else { return faults[fault].point }
        let possible = faults[fault].points.filter { $0 != .stored || !isProgram }
        return possible[Int(points[fault].integer(below: Int64(possible.count)))]
    }

    /// Records that a fault has not fired in an exchange, so that it may apply to a later match.
    public mutating func missed(_ fault: Int) {
        if applied.indices.contains(fault), applied[fault] > 0 { applied[fault] -= 1 }
    }

    /// Disarms all faults: later requests match none.
    public mutating func disarm() { isDisarmed = true }
}
