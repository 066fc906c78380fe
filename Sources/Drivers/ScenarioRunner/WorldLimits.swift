internal import LinkModel
internal import Scenario

/// Approximations of a run, and checks that it skips.
enum WorldLimits {
    /// Returns a line per limit.
    static func lines(_ run: PlannedRun) -> [String] {
        var lines: [String] = []
        switch run.world {
        case .simulated:
            if let reason = run.scenario.realTimeReason { lines.append("not possible in simulation: \(reason)") }
        case .live: lines += live(run.scenario)
        }
        for expectation in run.scenario.expectations {
            guard let reason = run.scenario.impossibility(of: expectation) else { continue }
            lines.append("not possible: \(expectation.description): \(reason)")
        }
        return lines.isEmpty ? ["nothing to report"] : lines
    }

    private static func live(_ scenario: Scenario) -> [String] {
        var lines = ["times differ from run to run by milliseconds, and by pauses of the host, which are recorded"]
        let faultKills = scenario.faults.contains { $0.action.name == "kill" }
        if faultKills || scenario.steps.contains(where: { $0.action?.action == .kill }) {
            lines.append("kill: between two turns of a client's event loop, not between any two of its actions")
        }
        for device in scenario.devices {
            lines += device.runsProgram ? program(device, scenario) : reference(device, scenario)
        }
        switch scenario.server {
        case .builtIn: break
        case .run: lines.append("server: a program; its notes are not read, and its work is not modelled")
        case .url(let url): lines.append("server: \(url); its notes are not read, and others may use it meanwhile")
        }
        return lines
    }

    private static func reference(_ device: Scenario.Device, _ scenario: Scenario) -> [String] {
        guard device.network.contains(where: { $0.phase.links.contains { $0.conditions.connectionPolicy == .dns } })
        else {
            return []
        }
        return ["\(device.name): 'dns' is told to the client, whose lookups fail; no name server is asked"]
    }

    private static func program(_ device: Scenario.Device, _ scenario: Scenario) -> [String] {
        var lines: [String] = []
        let name = device.name
        let links = device.network.flatMap(\.phase.links).map(\.conditions)
        if links.contains(where: { $0.connectionPolicy == .dns }) {
            lines.append("\(name): 'dns' resets connections, because the program looks up no name")
        }
        if links.contains(where: \.isOutage) || links.contains(where: { $0.connectionPolicy != .open }) {
            lines.append("\(name): attempts to connect are not seen; 'budget' counts requests only")
        }
        if device.network.contains(where: {
            $0.isSignalled && $0.phase.links.contains(where: \.conditions.canBeSignalled)
        }) {
            lines.append(
                device.lacksAdapter
                    ? "\(name): the program is not told that the interface is down"
                    : "\(name): the program is told that the interface is down by a line, not by its system")
        }
        if scenario.steps.contains(where: { $0.action?.actor == name && isClock($0.action?.action) }) {
            lines.append("\(name): 'clock' is an act; the clock of the system does not change")
        }
        let mayStore = scenario.faults.contains { fault in
            (fault.point == .stored || fault.point == .any) && (fault.device == nil || fault.device == name)
        }
        if mayStore {
            lines.append("\(name): no fault at 'stored' applies, because the program does not report what it stores")
        }
        let keys = screenKeys(name, scenario)
        if !keys.isEmpty, !device.lacksAdapter {
            lines.append(
                "\(name): checks of \(keys.joined(separator: ", ")) are possible only if the program publishes them")
        }
        if device.lacksAdapter {
            lines.append("\(name): without an adapter, one second without requests means that it has settled")
        }
        return lines
    }

    /// Returns the values that only some programs publish, and that checks of a device need.
    private static func screenKeys(_ device: String, _ scenario: Scenario) -> [String] {
        var found: Set<StateCondition.Check.Key> = []
        for expectation in scenario.expectations {
            switch expectation.kind {
            case .always(let name, let condition), .sometimes(let name, let condition),
                .eventually(let name, let condition, _), .finally(let name, let condition):
                if name == device || name == Scenario.anyDevice { found.formUnion(condition.checks.map(\.key)) }
            default: break
            }
        }
        return StateCondition.screenKeys.filter(found.contains).map { "'\($0.rawValue)'" }
    }

    private static func isClock(_ action: Scenario.Action?) -> Bool { if case .clock? = action { true } else { false } }
}
