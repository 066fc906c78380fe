internal import Determinism
internal import LinkModel

/// Simpler values of a scenario. Each function returns whether it has changed anything.
extension Scenario {
    mutating func set<Value: Equatable>(_ path: WritableKeyPath<Scenario, Value>, _ value: Value) -> Bool {
        if self[keyPath: path] == value { return false }
        self[keyPath: path] = value
        return true
    }

    /// Removes notes that nothing refers to.
    mutating func removeUnusedNotes() -> Bool {
        let used = Set(referencedRows)
        let count = notes.count
        if workload.isEmpty { notes.removeAll { !used.contains($0.row) } }
        return notes.count < count
    }

    /// Removes marks that nothing waits for, and writers without actions.
    mutating func removeUnusedMarks() -> Bool {
        let marks = referencedMarks
        let isUsed = { (step: Step) in step.mark.map(marks.contains) ?? true }
        let actors = Set(steps.compactMap(\.action?.actor) + workload.flatMap(\.actors))
        if steps.allSatisfy(isUsed), writers.allSatisfy({ actors.contains($0.name) }) { return false }
        writers.removeAll { !actors.contains($0.name) }
        steps = steps.filter { isUsed($0) || $0.action != nil }.map { isUsed($0) ? $0 : $0.replacing(\.mark, nil) }
        return true
    }

    /// Replaces generated notes by the notes that something refers to.
    mutating func removeFill() -> Bool {
        guard let fill, workload.isEmpty else { return false }
        let used = Set(referencedRows)
        notes += fill.rows.filter(used.contains).map { SeedNote(row: $0, title: nil, text: "a", revision: 1) }
        self.fill = nil
        return true
    }

    /// Returns the scenario with steps that may be left out where their actions are not possible.
    func makingStepsOptional() -> Scenario {
        var result = self
        result.steps = steps.map { $0.replacing(\.isOptional, true) }
        return result
    }

    /// Lets no step be left out.
    mutating func makeStepsMandatory() -> Bool {
        guard steps.contains(where: \.isOptional) else { return false }
        steps = steps.map { $0.replacing(\.isOptional, false) }
        return true
    }

    /// Replaces texts by single letters; equal texts stay equal.
    mutating func shortenTexts() -> Bool {
        var texts: [String] = []
        var seen: Set<[UInt8]> = []
        // The first pass collects the texts in the order of their occurrence.
        var collector = ScenarioMapping()
        var found: [String] = []
        collector.text = { text in
            found.append(text)
            return text
        }
        _ = collector(self)
        for text in found where seen.insert(Array(text.utf8)).inserted { texts.append(text) }
        let letters = texts.indices.map { index -> String in
            let letter = String(UnicodeScalar(UInt8(97 + index % 26)))
            return index < 26 ? letter : "\(letter)\(index / 26)"
        }
        if texts.elementsEqual(letters, by: { $0.utf8.elementsEqual($1.utf8) }) { return false }
        var names: [[UInt8]: String] = [:]
        for (text, letter) in zip(texts, letters) { names[Array(text.utf8)] = letter }
        self = ScenarioMapping(text: { names[Array($0.utf8)] ?? $0 })(self)
        return true
    }

    /// Removes titles where a text is left.
    mutating func removeTitles() -> Bool {
        var hasChanged = false
        func removed(_ title: String?, _ text: String?) -> String? {
            guard title != nil, text != nil else { return title }
            hasChanged = true
            return nil
        }
        for index in notes.indices { notes[index].title = removed(notes[index].title, notes[index].text) }
        for index in steps.indices {
            guard let content = steps[index].action?.action.content else { continue }
            steps[index].action?.action.content?.title = removed(content.title, content.text)
        }
        return hasChanged
    }

    /// Renames the notes to n1, n2 and so on, in the order of their first occurrence.
    mutating func renameRows() -> Bool {
        guard fill == nil, workload.isEmpty else { return false }
        let old = referencedRows + notes.map(\.row).filter { !referencedRows.contains($0) }
        var names: [String: String] = [:]
        for row in old where names[row] == nil { names[row] = "n\(names.count + 1)" }
        if names.allSatisfy({ $0.key == $0.value }) { return false }
        self = ScenarioMapping(row: { names[$0] ?? $0 })(self)
        return true
    }

    /// Renames the devices to A, B and so on, and the writers to W, X and so on.
    mutating func renameActors() -> Bool {
        guard devices.count <= 20, writers.count <= 4, workload.isEmpty else { return false }
        var names: [String: String] = [:]
        for (index, device) in devices.enumerated() {
            names[device.name] = String(UnicodeScalar(UInt8(65 + index)))
        }
        for (index, writer) in writers.enumerated() {
            names[writer.name] = String(UnicodeScalar(UInt8(87 + index)))
        }
        if names.allSatisfy({ $0.key == $0.value }) { return false }
        self = ScenarioMapping(actor: { names[$0] ?? $0 })(self)
        return true
    }

    /// Sets the revisions of the notes at the start to 1.
    mutating func resetRevisions() -> Bool {
        guard notes.contains(where: { $0.revision != 1 }) else { return false }
        for index in notes.indices { notes[index].revision = 1 }
        return true
    }

    /// Gives all devices and writers one user, if they have one, and Slowlane's client.
    mutating func useOneUser() -> Bool {
        let users = users
        guard users.count == 1, users != ["ada"] else { return false }
        devices = devices.map { $0.replacing(\.user, "ada") }
        writers = writers.map { Writer(name: $0.name, user: "ada") }
        return true
    }
}

// MARK: - Changed parts

/// A part of a scenario, of which a smaller scenario has a changed copy.
protocol ScenarioPart {}

extension ScenarioPart {
    /// Returns a copy with another value.
    func replacing<Value>(_ path: WritableKeyPath<Self, Value>, _ value: Value) -> Self {
        var copy = self
        copy[keyPath: path] = value
        return copy
    }
}

extension Scenario.Device: ScenarioPart {}
extension Scenario.NetworkEntry: ScenarioPart {}
extension Scenario.Fault: ScenarioPart {}
extension Scenario.Step: ScenarioPart {}
extension Scenario.Workload: ScenarioPart {}
extension StateCondition: ScenarioPart {}
extension Expectation.Traffic: ScenarioPart {}

extension Timeline.Phase {
    func mappingLinks(_ change: (Timeline.NamedConditions) -> Timeline.NamedConditions) -> Timeline.Phase {
        switch self {
        case .hold(let link): .hold(change(link))
        case .ramp(let link, let length): .ramp(to: change(link), over: length)
        case .flap(let intervals, let jitter):
            .flap(intervals.map { Timeline.Interval(change($0.link), $0.length) }, jitter: jitter)
        }
    }
}
