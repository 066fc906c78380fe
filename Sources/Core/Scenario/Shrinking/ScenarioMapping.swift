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
            Scenario.Device(
                name: actor(device.name), user: device.user, startsSynced: device.startsSynced, client: device.client,
                settings: device.settings, network: device.network.map(entry), restartsAfter: device.restartsAfter,
                isRestored: device.isRestored,
                location: device.location)
        }
        result.writers = scenario.writers.map { Scenario.Writer(name: actor($0.name), user: $0.user) }
        result.faults = scenario.faults.map(fault)
        result.steps = scenario.steps.map(step)
        result.workload = scenario.workload.map(workload)
        result.expectations = scenario.expectations.map { Expectation(kind($0.kind), location: $0.location) }
        result.restoreAt = scenario.restoreAt.map(time)
        return result
    }

    private func entry(_ entry: Scenario.NetworkEntry) -> Scenario.NetworkEntry {
        Scenario.NetworkEntry(
            at: time(entry.start), entry.phase, signalling: entry.signalling, interface: entry.interface,
            location: entry.location)
    }

    private func fault(_ fault: Scenario.Fault) -> Scenario.Fault {
        var action = fault.action
        if case .kill(let device?) = action { action = .kill(device: actor(device)) }
        return Scenario.Fault(
            request: rows(fault.request), nth: fault.nth, probability: fault.probability, times: fault.times,
            device: fault.device.map(actor), point: fault.point, action: action, location: fault.location)
    }

    private func workload(_ entry: Scenario.Workload) -> Scenario.Workload {
        guard case .when(let device, let state, let delay) = entry.trigger else { return entry }
        return Scenario.Workload(
            trigger: .when(device: name(device), condition(state), delay: delay), actors: entry.actors.map(actor),
            notes: entry.notes, mix: entry.mix, location: entry.location)
    }

    private func step(_ step: Scenario.Step) -> Scenario.Step {
        let trigger: Scenario.Step.Trigger
        switch step.trigger {
        case .at(let planned): trigger = .at(time(planned))
        case .after: trigger = step.trigger
        case .when(let device, let state, let within):
            trigger = .when(
                device: name(device), condition(state), within: within < Timeline.timeMax ? time(within) : within)
        }
        return Scenario.Step(
            trigger: trigger, action: step.action.map { (actor: actor($0.actor), action: action($0.action)) },
            mark: step.mark, isOptional: step.isOptional, location: step.location)
    }

    private func action(_ action: Scenario.Action) -> Scenario.Action {
        switch action {
        case .create(let row, let title, let text):
            return .create(row: self.row(row), title: title.map(self.text), text: text.map(self.text))
        case .edit(let row, let title, let text):
            return .edit(row: self.row(row), title: title.map(self.text), text: text.map(self.text))
        case .editStale(let row, let title, let text):
            return .editStale(row: self.row(row), title: title.map(self.text), text: text.map(self.text))
        case .resolve(let row, let title, let text):
            return .resolve(row: self.row(row), title: title.map(self.text), text: text.map(self.text))
        case .delete(let row): return .delete(row: self.row(row))
        case .deleteStale(let row): return .deleteStale(row: self.row(row))
        case .choose(let row, let choice): return .choose(row: self.row(row), choice)
        case .keep(let row): return .keep(row: self.row(row))
        case .pin(let row): return .pin(row: self.row(row))
        case .open(let row): return .open(row: row.map(self.row))
        case .send(let request): return .send(self.request(request))
        case .call(let name, let arguments):
            return .call(
                name: name,
                arguments: arguments.map {
                    $0.name == "note" ? Scenario.Argument(name: $0.name, value: row($0.value)) : $0
                })
        case .sync, .kill, .start, .upgrade, .clock: return action
        }
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
        let checks = condition.checks.map { check -> StateCondition.Check in
            let isText = [.text, .title, .keeps].contains(check.key)
            let value = isText ? text(check.value) : check.key == .screen ? row(check.value) : check.value
            return StateCondition.Check(key: check.key, value: value, isNegated: check.isNegated)
        }
        return StateCondition(
            row: condition.row.map(row), checks: checks, since: condition.since.map(reference),
            until: condition.until.map(reference))
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
        Expectation.Traffic(
            request: rows(traffic.request), from: traffic.from.map(actor), seen: traffic.seen,
            between: traffic.between.map { (reference($0.from), reference($0.to)) }, count: traffic.count,
            responses: traffic.responses, same: traffic.same, during: traffic.during,
            order: traffic.order.map { $0.map(rows) }, duplicates: traffic.duplicates, bytesDown: traffic.bytesDown,
            bytesUp: traffic.bytesUp, attempts: traffic.attempts)
    }
}
