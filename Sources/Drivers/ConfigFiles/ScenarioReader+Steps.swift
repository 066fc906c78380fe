internal import Determinism
internal import Scenario
internal import Yams

/// Checks of steps and the workload.
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

    /// Reports a step without an action or mark, without a trigger, and keys without an effect.
    func check(_ step: Scenario.Step, _ fields: ScenarioFields) -> Bool {
        let actors = deviceNames + writerNames
        let count = actors.count { fields[$0] != nil }
        // A step without an action sets a mark.
        guard count == 1 || (count == 0 && fields["mark"] != nil) else {
            if count > 0 || fields.knowsAllKeys {
                fields.report(
                    "a step needs an action of one device or writer (\(actors.prefix(20).joined(separator: ", ")))")
            }
            return false
        }
        let triggers = fields.object.exactlyOne
        guard fields.only(of: triggers, expected: "a step needs one of 'at', 'after' and 'when'") != nil else {
            return false
        }
        for (key, owner) in [("delay", "after"), ("within", "when"), ("since", "when")]
        where fields[key] != nil && fields[owner] == nil {
            reader.report("'\(key)' has no effect without '\(owner)'", at: fields[key])
        }
        return true
    }

    // MARK: Workload

    /// Reports an entry without a trigger, keys without an effect, and actions that an actor does not have.
    func check(_ workload: Scenario.Workload, _ fields: ScenarioFields) -> Bool {
        checkMix(workload, fields)
        let expected = "an entry of 'workload' needs 'every' or 'when'"
        guard let kind = fields.only(of: fields.object.exactlyOne, expected: expected) else { return false }
        if kind == "when" {
            for key in ["from", "to", "jitter"] where fields[key] != nil {
                reader.report("'\(key)' has no effect with 'when'", at: fields[key])
            }
        } else {
            if fields["delay"] != nil { reader.report("'delay' has no effect without 'when'", at: fields["delay"]) }
            guard isWindow(workload.trigger, fields) else { return false }
        }
        return !workload.actors.isEmpty
    }

    private func isWindow(_ trigger: Scenario.Workload.Trigger, _ fields: ScenarioFields) -> Bool {
        guard fields["to"] != nil else {
            fields.report("an entry of 'workload' with 'every' needs 'to'")
            return false
        }
        guard fields.isWhole, case .periodic(let from, let to, let every, _) = trigger else { return false }
        guard every > .zero else {
            reader.report("'every' must not be zero", at: fields["every"])
            return false
        }
        guard from < to else {
            reader.report("'to' must be later than 'from'", at: fields["to"])
            return false
        }
        guard (to - from).count / every.count < Int64(Scenario.Workload.actionsMax) else {
            reader.report(
                "the window has more than \(Scenario.Workload.actionsMax) periods; expected a longer period",
                at: fields["every"])
            return false
        }
        return true
    }

    private func checkMix(_ workload: Scenario.Workload, _ fields: ScenarioFields) {
        for kind in workload.mix.map(\.kind) {
            let node = fields["mix"]?.mapping?[Node(kind.rawValue)]
            if kind == .resolve && fields["when"] == nil {
                reader.report("'resolve' needs 'when', because only a conflict can be resolved", at: node)
            } else if kind == .resolve || kind == .sync, let writer = workload.actors.first(where: writerNames.contains)
            {
                reader.report("the writer \(writer) cannot \(kind.rawValue)", at: node)
            }
        }
    }
}
