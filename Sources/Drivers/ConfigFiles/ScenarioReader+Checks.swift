internal import Determinism
internal import LinkModel
internal import Scenario

/// Checks of a scenario as a whole: steps and faults that can never take effect.
extension ScenarioReader {
    /// Reports steps that are never due, steps that contradict the state of their device, and faults that never apply.
    ///
    /// Only what is certain is reported: the times of steps with `when`, and of those that follow them, are not known.
    func check(_ scenario: Scenario) {
        let order = StepOrder(scenario.steps)
        for (index, step) in scenario.steps.enumerated() {
            guard let earliest = order.earliest[index] else {
                reader.report("the step waits for a mark that is set only after the step", at: step.location)
                continue
            }
            if earliest >= scenario.limit {
                reader.report(
                    "the step is due at \(TimeFormat.short(earliest)) or later, but the limit is "
                        + TimeFormat.short(scenario.limit), at: step.location)
            } else if let restoreAt = scenario.restoreAt, earliest >= restoreAt {
                reader.report(
                    "the step is due at \(TimeFormat.short(earliest)) or later, but 'restore' is at "
                        + TimeFormat.short(restoreAt), at: step.location)
            }
        }
        checkRecords(scenario)
        if order.earliest.contains(nil) { return }
        checkWindows(scenario, order)
        checkOwners(scenario)
        for device in scenario.devices where device.restartsAfter == nil {
            checkClient(of: device.name, scenario, order)
        }
        // A program sends what it likes.
        let hasProgram = scenario.devices.contains(where: \.runsProgram)
        for fault in scenario.faults where !hasProgram && !Self.canMatch(fault, scenario) {
            reader.report(
                "no step of \(fault.device ?? "a device") leads to a request '\(fault.request)', so the fault never "
                    + "applies", at: fault.location)
        }
    }

    // MARK: Records of apps

    /// Reports actions on an app's records by writers and by clients that know other records only.
    private func checkRecords(_ scenario: Scenario) {
        var owners: [String: Scenario.App] = [:]
        for record in scenario.records { owners[record.row] = record.app }
        for step in scenario.steps {
            guard let (actor, action) = step.action, case .create(let row, _, _) = action else { continue }
            if let app = apps[actor] { owners[row] = app }
        }
        for step in scenario.steps {
            guard let (actor, action) = step.action, let row = action.row, let owner = owners[row],
                apps[actor] != owner, !programNames.contains(actor)
            else { continue }
            let isWriter = writerNames.contains(actor)
            // A writer changes what the service has at the start, as another client of its user would.
            if isWriter, action.kind != .create, scenario.records.contains(where: { $0.row == row }) { continue }
            let client = isWriter ? "a writer" : "the \(apps[actor]?.vocabulary.title ?? "reference client")"
            report(
                "'\(row)' is a record of the \(owner.vocabulary.title), which \(client) does not have; let a device with "
                    + "'client: \(owner.rawValue)' act\(isWriter ? ", or send a request with 'raw'" : "")", step)
        }
    }

    // MARK: Kills and starts

    private func checkClient(of device: String, _ scenario: Scenario, _ order: StepOrder) {
        let steps = scenario.steps
        let acting = steps.indices.filter { steps[$0].action?.actor == device && !steps[$0].isOptional }
        // A client that signs in starts, whether it runs or not.
        let hasAccounts = acting.contains { [.signIn, .signOut].contains(steps[$0].action?.action.kind) }
        if hasAccounts { return }
        let changes = acting.filter { steps[$0].action?.action == .kill || steps[$0].action?.action == .start }
        // When a fault kills the client is not known.
        if scenario.faults.contains(where: { $0.mayKill(device) }) { return }
        func isStart(_ step: Int) -> Bool { steps[step].action?.action == .start }
        guard changes.contains(where: { !isStart($0) }) else {
            for step in changes { report("\(device) is running already", steps[step]) }
            return
        }
        func isTimed(_ step: Int) -> Bool { if case .at = steps[step].trigger { true } else { false } }
        guard changes.allSatisfy(isTimed) else {
            // Without a start the device stays killed, so a step that follows a kill through marks is an error whatever
            // the times of both.
            let kills = Set(changes)
            guard !changes.contains(where: isStart) else { return }
            for step in acting where order.ancestors(of: step).contains(where: kills.contains) {
                report("\(device) has been killed", steps[step])
            }
            return
        }
        var isRunning = true
        var lastChange = Nanoseconds.zero
        for step in acting.filter(isTimed).sorted(by: { order.key($0) < order.key($1) }) {
            switch steps[step].action?.action {
            case .kill?:
                if !isRunning { report("\(device) has been killed", steps[step]) }
                (isRunning, lastChange) = (false, order.earliest[step] ?? .zero)
            case .start?:
                if isRunning { report("\(device) is running already", steps[step]) }
                (isRunning, lastChange) = (true, order.earliest[step] ?? .zero)
            default: if !isRunning { report("\(device) has been killed", steps[step]) }
            }
        }
        for step in acting where !isTimed(step) && !isRunning && (order.earliest[step] ?? .zero) > lastChange {
            report("\(device) has been killed", steps[step])
        }
    }

    private func report(_ reason: String, _ step: Scenario.Step) {
        guard let (actor, action) = step.action else { return }
        reader.report("'\(actor) \(action)' is impossible: \(reason)", at: step.location)
    }

    // MARK: Faults

    /// Returns whether a device can send a request that a fault matches. Any device may fetch any note.
    private static func canMatch(_ fault: Scenario.Fault, _ scenario: Scenario) -> Bool {
        let devices = scenario.devices.map(\.name).filter { fault.device == nil || $0 == fault.device }
        guard let method = fault.request.method, method != "GET" else { return !devices.isEmpty }
        let apps = scenario.devices.filter { devices.contains($0.name) }.compactMap(\.client.app)
        if fault.request.row == nil, apps.contains(where: { $0.vocabulary.ownMethods.contains(method) }) { return true }
        if scenario.workload.contains(where: { $0.actors.contains(where: devices.contains) }) { return true }
        return scenario.steps.contains { step in
            guard let (actor, action) = step.action, devices.contains(actor) else { return false }
            if case .send(let request) = action { return request.method == method }
            if case .call = action { return true }
            switch action {
            case .create, .edit: if method == "DELETE" { return false }
            case .delete: if method != "DELETE" { return false }
            // A resolution may send any change.
            default: if action.row == nil { return false }
            }
            return fault.request.row == nil || fault.request.row == action.row
        }
    }
}

/// The order of steps that follows from their times and marks.
struct StepOrder {
    /// The earliest time of each step; `nil` if the step waits for a mark that is set only after itself.
    private(set) var earliest: [Nanoseconds?]
    /// The step that sets the mark that each step waits for.
    private var previous: [Int?]

    init(_ steps: [Scenario.Step]) {
        var setters: [String: Int] = [:]
        for (index, step) in steps.enumerated() {
            if let mark = step.mark { setters[mark] = index }
        }
        previous = steps.map { step in
            if case .after(let mark, _) = step.trigger { setters[mark] } else { nil }
        }
        earliest = steps.map { _ in nil }
        for first in steps.indices {
            var path = [first]
            // A path longer than the number of steps is a cycle.
            while let last = path.last, path.count <= steps.count, earliest[last] == nil, let next = previous[last] {
                path.append(next)
            }
            if path.count > steps.count { continue }
            for step in path.reversed() where earliest[step] == nil {
                switch steps[step].trigger {
                case .at(let time): earliest[step] = time
                case .when: earliest[step] = .zero
                case .after(_, let delay): earliest[step] = (previous[step].flatMap { earliest[$0] } ?? .zero) + delay
                }
            }
        }
    }

    /// Returns the steps that precede a step in its chain of marks, the nearest first.
    func ancestors(of step: Int) -> [Int] {
        var found: [Int] = []
        var next = previous[step]
        while let current = next, found.count < previous.count {
            found.append(current)
            next = previous[current]
        }
        return found
    }

    /// The sort key of a step at a fixed time: time, then position.
    func key(_ step: Int) -> (Nanoseconds, Int) { (earliest[step] ?? .zero, step) }
}
