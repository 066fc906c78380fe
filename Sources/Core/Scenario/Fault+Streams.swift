extension Scenario.Fault {
    /// The prefix of the names of the fault's random streams: its requests, device, point and effect. What a smaller
    /// scenario changes most often (how often a fault applies, and from which request on) is not a part of it.
    private var streamPrefix: String {
        let parts = [request.method ?? "any", request.row ?? "any", device ?? "any", point.rawValue, action.name]
        return "fault/" + parts.joined(separator: "/")
    }

    /// Returns the prefixes of the names of the random streams of faults. Equal ones get numbers, so that the removal of a
    /// fault changes the draws of later faults with the same prefix only.
    static func streamNames(_ faults: [Scenario.Fault]) -> [String] {
        var counts: [String: Int] = [:]
        return faults.map { fault in
            let prefix = fault.streamPrefix
            let number = counts[prefix, default: 0]
            counts[prefix] = number + 1
            return "\(prefix)/\(number)"
        }
    }
}
