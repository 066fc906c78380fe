internal import Determinism
internal import LinkModel
internal import Scenario

/// Faults, steps and the workload.
extension ScenarioWriter {
    static func fault(_ fault: Scenario.Fault) -> YAMLTree {
        var entries = [entry("request", pattern(fault.request))]
        if let probability = fault.probability {
            entries.append(entry("probability", .word(QuantityText.percentage(probability))))
        } else if fault.nth != 1 {
            entries.append(entry("nth", fault.nth))
        }
        let (least, most) = (fault.times.lowerBound, fault.times.upperBound)
        if least == most, least > 0 {
            if least != 1 { entries.append(entry("times", least)) }
        } else {
            var values: [YAMLTree.Entry] = []
            if least != 1 { values.append(entry("min", least)) }
            if most != max(1, least) { values.append(entry("max", most)) }
            entries.append(entry("times", braces(values)))
        }
        if let device = fault.device { entries.append(entry("to", .word(device))) }
        entries.append(entry("point", .word(fault.point.rawValue)))
        entries.append(entry("then", then(fault.action)))
        return braces(entries)
    }

    private static func then(_ action: Scenario.Fault.Action) -> YAMLTree {
        switch action {
        case .reset, .close, .stall, .kill(nil): return .word(action.name)
        case .delay(let time): return braces([entry("delay", time)])
        case .kill(let device?): return braces([entry("kill", .word(device))])
        case .throttle(let rate): return braces([entry("throttle", rate)])
        case .respond(let reply):
            var entries = [entry("status", reply.status)]
            if !reply.headers.isEmpty { entries.append(entry("headers", arguments(reply.headers))) }
            if !reply.body.isEmpty { entries.append(entry("body", reply.body)) }
            return braces([entry("respond", braces(entries))])
        }
    }

    // MARK: Steps

    static func step(_ step: Scenario.Step, _ scenario: Scenario) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        switch step.trigger {
        case .at(let time): entries.append(entry("at", time))
        case .after(let mark, let delay):
            entries.append(entry("after", .word(mark)))
            if delay != .zero { entries.append(entry("delay", delay)) }
        case .when(let device, let condition, let within):
            entries.append(entry("when", braces([entry(device, state(condition))])))
            if within != Timeline.timeMax { entries.append(entry("within", within)) }
        }
        if let (actor, action) = step.action {
            let isWriter = scenario.writers.contains { $0.name == actor }
            entries.append(entry(actor, braces(self.action(action, isWriter: isWriter))))
        }
        if let mark = step.mark { entries.append(entry("mark", .word(mark))) }
        if step.isOptional { entries.append(entry("optional", .word("true"))) }
        return braces(entries)
    }

    private static func action(_ action: Scenario.Action, isWriter: Bool) -> [YAMLTree.Entry] {
        func word(_ key: String, _ word: String) -> [YAMLTree.Entry] { [entry(key, .word(word))] }
        let stale = [entry("stale", .word("true"))]
        switch action {
        case .create(let row, let title, let text): return word("create", row) + content(title: title, text: text)
        case .edit(let row, let title, let text): return word("edit", row) + content(title: title, text: text)
        case .editStale(let row, let title, let text):
            return word("edit", row) + content(title: title, text: text) + stale
        case .delete(let row): return word("delete", row)
        case .deleteStale(let row): return word("delete", row) + stale
        case .resolve(let row, let title, let text): return word("resolve", row) + content(title: title, text: text)
        case .choose(let row, let choice): return word("resolve", row) + word("with", choice.rawValue)
        case .keep(let row): return word("keep", row)
        case .pin(let row): return word("pin", row)
        case .open(let row): return word("open", row ?? "list")
        case .sync: return word("sync", "now")
        case .kill: return word("kill", "now")
        case .start: return word("start", "again")
        case .upgrade(let version): return [entry("upgrade", version)]
        case .clock(let shift): return [entry("clock", braces(word("wall", QuantityText.signedTime(shift))))]
        case .send(let request): return [entry(isWriter ? "raw" : "send", self.request(request))]
        case .call(let name, let arguments):
            return [entry("call", name)] + (arguments.isEmpty ? [] : [entry("with", self.arguments(arguments))])
        }
    }

    private static func request(_ request: Scenario.RawRequest) -> YAMLTree {
        var entries = [entry("method", .word(request.method)), entry("path", request.path)]
        if !request.headers.isEmpty { entries.append(entry("headers", arguments(request.headers))) }
        if !request.body.isEmpty { entries.append(entry("body", request.body)) }
        return braces(entries)
    }

    // MARK: The workload

    static func workload(_ workload: Scenario.Workload) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        switch workload.trigger {
        case .periodic(let from, let to, let every, let jitter):
            if from != .zero { entries.append(entry("from", from)) }
            entries += [entry("to", to), entry("every", every)]
            if jitter != .zero { entries.append(entry("jitter", .word(QuantityText.percentage(jitter)))) }
        case .when(let device, let condition, let delay):
            entries.append(entry("when", braces([entry(device, state(condition))])))
            if delay != .zero { entries.append(entry("delay", delay)) }
        }
        entries.append(entry("by", brackets(workload.actors.map { .word($0) })))
        if let notes = workload.notes { entries.append(entry("notes", notes)) }
        entries.append(entry("mix", braces(workload.mix.map { entry($0.kind.rawValue, $0.weight) })))
        return braces(entries)
    }
}
