internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// Reads steps and the workload.
extension ScenarioReader {
    /// Collects the notes and marks of all steps, because earlier keys may refer to them.
    func collectNames(_ node: Node?) {
        for step in node?.sequence ?? [] {
            if let node = step.mapping?["mark"], let mark = node.scalar?.string {
                if !marks.insert(mark).inserted {
                    reader.report("mark '\(mark.prefix(40))' is set twice", at: node)
                } else if mark == TimeReference.endName {
                    reader.report("'\(mark)' is the end of the run; choose another name for the mark", at: node)
                } else if !Self.isMark(mark) {
                    reader.report(
                        "'\(mark.prefix(40))': expected a mark of lower-case ASCII letters, digits and '-' that begins "
                            + "with a letter", at: node)
                }
            }
            for (_, value) in step.mapping ?? [:] {
                if let row = value.mapping?["create"]?.scalar?.string { rows.insert(row) }
            }
        }
    }

    private static func isMark(_ name: String) -> Bool {
        guard let first = name.utf8.first, (97...122).contains(first) else { return false }
        return name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    }

    func step(_ node: Node) -> Scenario.Step? {
        let actors = deviceNames + writerNames
        guard let fields = fields(node, "step", names: actors) else { return nil }
        let acting = actors.filter { fields[$0] != nil }
        // A step without an action sets a mark.
        guard acting.count == 1 || (acting.isEmpty && fields["mark"] != nil) else {
            if acting.isEmpty && fields.values.count < node.mapping?.count ?? 0 { return nil }
            reader.report(
                "a step needs an action of one device or writer (\(actors.prefix(20).joined(separator: ", ")))",
                at: node)
            return nil
        }
        let triggers = fields.object.exactlyOne
        guard
            let trigger = only(fields, of: triggers, expected: "a step needs one of 'at', 'after' and 'when'")
                .flatMap({ self.trigger($0, fields) })
        else { return nil }
        for (key, owner) in [("delay", "after"), ("within", "when")] where fields[key] != nil && fields[owner] == nil {
            reader.report("'\(key)' has no effect without '\(owner)'", at: fields[key])
        }
        var step: (actor: String, action: Scenario.Action)?
        if let actor = acting.first, let actionNode = fields[actor] {
            guard let action = action(actionNode, by: actor) else { return nil }
            step = (actor, action)
        }
        return Scenario.Step(
            trigger: trigger, action: step, mark: fields["mark"]?.scalar?.string,
            isOptional: fields.boolean("optional") ?? false, location: location(node))
    }

    private func trigger(_ name: String, _ fields: ScenarioFields) -> Scenario.Step.Trigger? {
        switch name {
        case "at": return fields.time("at").map { .at($0) }
        case "after":
            return fields["after"].flatMap(knownMark).map { .after($0, delay: fields.time("delay") ?? .zero) }
        default:
            let within = fields.time("within")
            guard let node = fields["when"], let state = oneState(node, in: "'when'") else { return nil }
            return .when(device: state.device, state.condition, within: within ?? Timeline.timeMax)
        }
    }

    /// Reads the state of one device.
    private func oneState(_ node: Node, in context: String) -> (device: String, condition: StateCondition)? {
        let states = states(node, in: context)
        if states.count > 1 { reader.report("\(context) has the state of one device; write a step for each", at: node) }
        if let node = node.mapping?.first?.value.mapping?.first(where: { $0.key.scalar?.string == "since" })?.key {
            reader.report("\(context) has no 'since'", at: node)
        }
        return states.first
    }

    // MARK: Workload

    func workload(_ node: Node) -> Scenario.Workload? {
        guard let fields = fields(node, "workload") else { return nil }
        let actors = fields.list("by").compactMap(knownActor)
        let notes = fields.integer("notes")
        let shares = fields["mix"].map { mix($0, isReaction: fields["when"] != nil, actors) } ?? []
        guard
            let kind = only(fields, of: ["every", "when"], expected: "an entry of 'workload' needs 'every' or 'when'")
        else { return nil }
        let trigger: Scenario.Workload.Trigger
        if kind == "when" {
            for key in ["from", "to", "jitter"] where fields[key] != nil {
                reader.report("'\(key)' has no effect with 'when'", at: fields[key])
            }
            guard let node = fields["when"], let state = oneState(node, in: "'when'") else { return nil }
            trigger = .when(device: state.device, state.condition, delay: fields.time("delay") ?? .zero)
        } else {
            if fields["delay"] != nil { reader.report("'delay' has no effect without 'when'", at: fields["delay"]) }
            guard let window = window(fields) else { return nil }
            trigger = window
        }
        guard !actors.isEmpty, !shares.isEmpty else { return nil }
        return Scenario.Workload(trigger: trigger, actors: actors, notes: notes, mix: shares, location: location(node))
    }

    private func window(_ fields: ScenarioFields) -> Scenario.Workload.Trigger? {
        guard let toNode = fields["to"] else {
            reader.report("an entry of 'workload' with 'every' needs 'to'", at: fields.node)
            return nil
        }
        let from = fields["from"] == nil ? Nanoseconds.zero : fields.time("from")
        guard let from, let to = time(toNode), let every = fields.time("every") else { return nil }
        let jitter = fields["jitter"] == nil ? Probability.zero : fields.percentage("jitter")
        guard every > .zero else {
            reader.report("'every' must not be zero", at: fields["every"])
            return nil
        }
        guard from < to else {
            reader.report("'to' must be later than 'from'", at: toNode)
            return nil
        }
        guard (to - from).count / every.count < Int64(Scenario.Workload.actionsMax) else {
            reader.report(
                "the window has more than \(Scenario.Workload.actionsMax) periods; expected a longer period",
                at: fields["every"])
            return nil
        }
        return jitter.map { .periodic(from: from, to: to, every: every, jitter: $0) }
    }

    private func mix(_ node: Node, isReaction: Bool, _ actors: [String]) -> [Scenario.Workload.Share] {
        guard let fields = fields(node, "mix") else { return [] }
        var shares: [Scenario.Workload.Share] = []
        for kind in Scenario.Workload.Kind.allCases {
            guard let weight = fields.integer(kind.rawValue), weight > 0 else { continue }
            let place = fields[kind.rawValue]
            if kind == .resolve && !isReaction {
                reader.report("'resolve' needs 'when', because only a conflict can be resolved", at: place)
            } else if kind == .resolve || kind == .sync, let writer = actors.first(where: writerNames.contains) {
                reader.report("the writer \(writer) cannot \(kind.rawValue)", at: place)
            }
            shares.append(Scenario.Workload.Share(kind, weight: weight))
        }
        if shares.isEmpty && fields.values.count == node.mapping?.count {
            reader.report("'mix' needs an action with a weight, such as '{ create: 2, edit: 6 }'", at: node)
        }
        return shares
    }
}
