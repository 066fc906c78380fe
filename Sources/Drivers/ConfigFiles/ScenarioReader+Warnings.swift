internal import Determinism
internal import Scenario

/// Warnings: what is valid, and has no effect or can never be reached.
extension ScenarioReader {
    func warn(of scenario: Scenario) {
        warnOfMarks(scenario)
        warnOfTimes(scenario)
        warnOfNames(scenario)
    }

    private func end(of scenario: Scenario) -> Nanoseconds {
        min(scenario.limit, scenario.restoreAt ?? scenario.limit)
    }

    // MARK: Marks

    private func warnOfMarks(_ scenario: Scenario) {
        var used: Set<String> = []
        func use(_ reference: TimeReference?) { if case .mark(let mark)? = reference { used.insert(mark) } }
        for step in scenario.steps {
            if case .after(let mark, _) = step.trigger { used.insert(mark) }
            if let mark = step.since { used.insert(mark) }
        }
        for expectation in scenario.expectations {
            switch expectation.kind {
            case .traffic(let traffic), .sometimesTraffic(let traffic):
                use(traffic.between?.from)
                use(traffic.between?.to)
            case .always(_, let condition), .sometimes(_, let condition), .finally(_, let condition):
                use(condition.since)
                use(condition.until)
            case .eventually(_, let condition, let window):
                use(condition.since)
                use(condition.until)
                if case .after(let mark, _) = window { used.insert(mark) }
            default: break
            }
        }
        for step in scenario.steps {
            guard let mark = step.mark, !used.contains(mark) else { continue }
            reader.warn("mark '\(mark)' is never used", at: step.location)
        }
        warnOfUnreachableMarks(scenario)
    }

    /// Warns of marks of steps that wait for a state that no step or network can bring about.
    private func warnOfUnreachableMarks(_ scenario: Scenario) {
        for step in scenario.steps {
            guard case .when(let device, let condition, let within) = step.trigger else { continue }
            let name = step.mark.map { "mark '\($0)'" } ?? "the step"
            if within == .zero {
                reader.warn("'within: 0s' leaves no time, so \(name) is unlikely to be reached", at: step.location)
            }
            if step.since == nil, within > end(of: scenario), within < .seconds(24 * 3600) {
                reader.warn(
                    "'within' is later than the end of the script, \(TimeFormat.short(end(of: scenario)))",
                    at: step.location)
            }
            let wantsConflict = condition.checks.contains {
                $0.key == .icon && $0.value == "conflict" && !$0.isNegated
            }
            if wantsConflict, !canConflict(condition.row, scenario) {
                reader.warn(
                    "\(name) cannot be reached: only one client changes \(condition.row ?? "any note"), so \(device) "
                        + "has no conflict", at: step.location)
            }
        }
    }

    /// Returns whether two clients change a note, or one client changes it while a fault may lose a response.
    private func canConflict(_ row: String?, _ scenario: Scenario) -> Bool {
        if !scenario.faults.isEmpty || !scenario.workload.isEmpty || scenario.server != .builtIn { return true }
        var actors: [String: Set<String>] = [:]
        for step in scenario.steps {
            guard let (actor, action) = step.action else { continue }
            if case .send = action { return true }
            if case .call = action { return true }
            if let changed = action.row { actors[changed, default: []].insert(actor) }
        }
        return actors.contains { (row == nil || $0.key == row) && $0.value.count > 1 }
    }

    // MARK: Times

    private func warnOfTimes(_ scenario: Scenario) {
        let end = end(of: scenario)
        let endText = "the end of the script, \(TimeFormat.short(end))"
        for device in scenario.devices {
            for entry in device.network where entry.start >= end {
                reader.warn("this entry is not before \(endText), so it never applies", at: entry.location)
            }
        }
        for entry in scenario.workload {
            guard case .periodic(let from, let to, _, _) = entry.trigger else { continue }
            if from >= end {
                reader.warn("'from' is not before \(endText), so there are no actions", at: entry.location)
            } else if to > end {
                reader.warn("'to' is later than \(endText); later actions are skipped", at: entry.location)
            }
        }
        for expectation in scenario.expectations {
            switch expectation.kind {
            case .traffic(let traffic), .sometimesTraffic(let traffic):
                warnOfWindow(traffic.between?.from, traffic.between?.to, "'between'", expectation)
                if traffic.seen == .proxy, let from = traffic.from, writerNames.contains(from) {
                    reader.warn(
                        "the requests of writers do not pass a proxy, so none of \(from) is seen there",
                        at: expectation.location)
                }
            case .always(_, let condition), .sometimes(_, let condition):
                warnOfWindow(condition.since, condition.until, "'since' to 'until'", expectation)
            case .eventually(_, let condition, let window):
                if condition.since != nil || condition.until != nil {
                    reader.warn(
                        "'since' and 'until' have no effect in 'eventually'; its window is 'by', or 'after' and "
                            + "'within'", at: expectation.location)
                }
                if case .by(let time) = window, time > end {
                    reader.warn("'by' is later than \(endText)", at: expectation.location)
                }
            case .finally(_, let condition) where condition.since != nil || condition.until != nil:
                reader.warn("'since' and 'until' have no effect in 'finally'", at: expectation.location)
            default: break
            }
        }
    }

    private func warnOfWindow(
        _ from: TimeReference?, _ to: TimeReference?, _ name: String, _ expectation: Expectation
    ) {
        let start = if case .time(let time)? = from { time } else { Nanoseconds.zero }
        // A window that ends earlier is an error.
        guard case .time(let end)? = to, end == start else { return }
        if case .mark? = from { return }
        reader.warn("\(name) is empty: it ends at \(TimeFormat.short(end))", at: expectation.location)
    }

    // MARK: Names

    private func warnOfNames(_ scenario: Scenario) {
        for writer in scenario.writers {
            let acts = scenario.steps.contains { $0.action?.actor == writer.name }
            if acts || scenario.workload.contains(where: { $0.actors.contains(writer.name) }) { continue }
            let location = scenario.locations["writers"] ?? SourceLocation(file: reader.file)
            reader.warn("the writer \(writer.name) does nothing", at: location)
        }
        for expectation in scenario.expectations {
            guard case .sometimesFault(let pattern) = expectation.kind else { continue }
            let isDeclared = scenario.faults.contains { fault in
                pattern.point == nil || fault.point == pattern.point || fault.point == .any
            }
            if !isDeclared {
                reader.warn(
                    "no fault has the point '\(pattern.point?.rawValue ?? "any")', so none is ever seen",
                    at: expectation.location)
            }
        }
        warnOfStaleChanges(scenario)
    }

    /// Warns of stale changes of notes that the writer has not read before.
    private func warnOfStaleChanges(_ scenario: Scenario) {
        for step in scenario.steps {
            guard let (actor, action) = step.action, case .at(let time) = step.trigger else { continue }
            switch action {
            case .editStale(let row, _, _), .deleteStale(let row):
                let hasRead = scenario.steps.contains { other in
                    guard other.action?.actor == actor, other.action?.action.row == row else { return false }
                    switch other.action?.action {
                    case .edit?, .delete?: break
                    default: return false
                    }
                    if case .at(let earlier) = other.trigger { return earlier <= time }
                    return true
                }
                if !hasRead {
                    reader.warn(
                        "\(actor) has not read \(row) before: a stale change needs an earlier 'edit' or 'delete' of it",
                        at: step.location)
                }
            default: break
            }
        }
    }
}
