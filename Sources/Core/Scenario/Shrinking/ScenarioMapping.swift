internal import Determinism
internal import LinkModel

/// A change of all names, times and texts of a scenario.
struct ScenarioMapping {
    /// Returns the new name of a note.
    var row: (String) -> String = { $0 }
    /// Returns the new name of a device or writer.
    var actor: (String) -> String = { $0 }
    /// Returns the new time of a time from the start.
    var time: (Nanoseconds) -> Nanoseconds = { $0 }
    /// Returns the new text or title of a note.
    var text: (String) -> String = { $0 }

    private func rows(_ pattern: RequestPattern) -> RequestPattern {
        RequestPattern(method: pattern.method, row: pattern.row.map(row))
    }

    private func name(_ device: String) -> String {
        [Scenario.anyDevice, "server"].contains(device) ? device : actor(device)
    }

    // MARK: Parts

    func callAsFunction(_ scenario: Scenario) -> Scenario {
        var result = scenario
        result.notes = scenario.notes.map { note in
            Scenario.SeedNote(
                row: row(note.row), title: note.title.map(text), text: note.text.map(text), revision: note.revision)
        }
        result.records = scenario.records.map { record in
            Scenario.SeedRecord(
                row: row(record.row), kind: record.kind, parent: record.parent.map(row), title: record.title.map(text),
                text: record.text.map(text), isApproved: record.isApproved, fields: record.fields)
        }
        result.devices = scenario.devices.map { device in
            device.replacing(\.name, actor(device.name)).replacing(
                \.network, device.network.map { $0.replacing(\.start, time($0.start)) })
        }
        result.writers = scenario.writers.map { Scenario.Writer(name: actor($0.name), user: $0.user) }
        result.faults = scenario.faults.map(fault)
        result.steps = scenario.steps.map(step)
        result.workload = scenario.workload.map(workload)
        result.expectations = scenario.expectations.map { Expectation(kind($0.kind), location: $0.location) }
        result.restoreAt = scenario.restoreAt.map(time)
        return result
    }

    private func fault(_ fault: Scenario.Fault) -> Scenario.Fault {
        var result = fault
        result.request = rows(fault.request)
        result.device = fault.device.map(actor)
        if case .kill(let device?) = fault.action { result.action = .kill(device: actor(device)) }
        return result
    }

    private func workload(_ entry: Scenario.Workload) -> Scenario.Workload {
        guard case .when(let device, let state, let delay) = entry.trigger else { return entry }
        return entry.replacing(\.trigger, .when(device: name(device), condition(state), delay: delay)).replacing(
            \.actors, entry.actors.map(actor))
    }

    private func step(_ step: Scenario.Step) -> Scenario.Step {
        var result = step
        switch step.trigger {
        case .at(let planned): result.trigger = .at(time(planned))
        case .after: break
        case .when(let device, let state, let within):
            result.trigger = .when(
                device: name(device), condition(state), within: within < Timeline.timeMax ? time(within) : within)
        }
        result.action = step.action.map { (actor: actor($0.actor), action: action($0.action)) }
        return result
    }

    private func action(_ action: Scenario.Action) -> Scenario.Action {
        var result = action
        result.row = action.row.map(row)
        result.content = action.content.map { ($0.title.map(text), $0.text.map(text)) }
        switch action {
        case .open(let row): result = .open(row: row.map(self.row))
        case .send(let request): result = .send(self.request(request))
        case .call(let name, let arguments):
            result = .call(
                name: name,
                arguments: arguments.map { $0.name == "note" ? .init(name: $0.name, value: row($0.value)) : $0 })
        default: break
        }
        return result
    }

    private func request(_ request: Scenario.RawRequest) -> Scenario.RawRequest {
        let path = request.target(identifier: { "{\(row($0))}" }) ?? request.path
        // The names in header fields have a suffix: `{n1.revision}`.
        let headers = request.headers(revision: { "{\(row($0)).revision}" }) ?? request.headers
        let body = request.body(identifier: { "{\(row($0))}" })
        return Scenario.RawRequest(method: request.method, path: path, headers: headers, body: body)
    }

    // MARK: Expectations

    private func reference(_ reference: TimeReference) -> TimeReference {
        if case .time(let planned) = reference { .time(time(planned)) } else { reference }
    }

    private func condition(_ condition: StateCondition) -> StateCondition {
        var result = condition
        result.row = condition.row.map(row)
        for (index, check) in condition.checks.enumerated() {
            switch check.key {
            case .text, .title, .keeps: result.checks[index].value = text(check.value)
            case .screen: result.checks[index].value = row(check.value)
            default: break
            }
        }
        result.since = condition.since.map(reference)
        result.until = condition.until.map(reference)
        return result
    }

    private func kind(_ kind: Expectation.Kind) -> Expectation.Kind {
        switch kind {
        case .traffic(let traffic): return .traffic(self.traffic(traffic))
        case .sometimesTraffic(let traffic): return .sometimesTraffic(self.traffic(traffic))
        case .always(let device, let state): return .always(device: name(device), condition(state))
        case .sometimes(let device, let state): return .sometimes(device: name(device), condition(state))
        case .finally(let device, let state): return .finally(device: name(device), condition(state))
        case .eventually(let device, let state, .by(let end)):
            return .eventually(device: name(device), condition(state), .by(time(end)))
        case .eventually(let device, let state, let window):
            return .eventually(device: name(device), condition(state), window)
        case .sometimesFault(let pattern):
            return .sometimesFault(.init(point: pattern.point, request: pattern.request.map(rows)))
        case .serverRow(let row, let revision, let title, let text):
            return .serverRow(
                row: self.row(row), revision: revision, title: title.map(self.text), text: text.map(self.text))
        case .agree(let names): return .agree(names.map(name))
        case .serverCount, .threshold: return kind
        }
    }

    private func traffic(_ traffic: Expectation.Traffic) -> Expectation.Traffic {
        var result = traffic
        result.request = rows(traffic.request)
        result.from = traffic.from.map(actor)
        result.between = traffic.between.map { (reference($0.from), reference($0.to)) }
        result.order = traffic.order.map { $0.map(rows) }
        return result
    }
}
