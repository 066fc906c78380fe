/// The names that parts of a scenario refer to.
extension Scenario {
    /// The names of all notes, without those that reactions of the workload create.
    var rows: Set<String> {
        var found = Set(notes.map(\.row) + (fill?.rows ?? []))
        for step in steps { if case .create(let row, _, _)? = step.action?.action { found.insert(row) } }
        return found
    }

    /// The names of notes that steps, faults and expectations refer to, in the order of their first occurrence.
    var referencedRows: [String] {
        var found: [String] = []
        var seen: Set<String> = []
        func add(_ names: [String]) { for name in names where seen.insert(name).inserted { found.append(name) } }
        for step in steps { add(step.referencedRows) }
        for fault in faults { add(fault.request.row.map { [$0] } ?? []) }
        for expectation in expectations { add(expectation.kind.referencedRows) }
        return found
    }

    /// The marks that steps and expectations refer to.
    var referencedMarks: Set<String> {
        var found: Set<String> = []
        for step in steps { if let mark = step.awaitedMark { found.insert(mark) } }
        for expectation in expectations { found.formUnion(expectation.kind.referencedMarks) }
        return found
    }
}

extension Scenario.Step {
    var referencedRows: [String] {
        var found: [String] = []
        if case .when(_, let condition, _) = trigger, let row = condition.row { found.append(row) }
        guard let action = action?.action else { return found }
        if let row = action.subject { found.append(row) }
        if case .send(let request) = action { found += request.rows + request.revisionRows + request.bodyRows }
        return found
    }
}

extension Expectation.Kind {
    private var condition: StateCondition? {
        switch self {
        case .always(_, let condition), .sometimes(_, let condition), .finally(_, let condition),
            .eventually(_, let condition, _):
            condition
        default: nil
        }
    }

    var referencedRows: [String] {
        switch self {
        case .traffic(let traffic), .sometimesTraffic(let traffic):
            ([traffic.request] + (traffic.order ?? [])).compactMap(\.row)
        case .sometimesFault(let pattern): pattern.request?.row.map { [$0] } ?? []
        case .serverRow(let row, _, _, _): [row]
        default: condition?.row.map { [$0] } ?? []
        }
    }

    /// The devices and writers that the expectation names.
    var referencedActors: [String] {
        switch self {
        case .traffic(let traffic), .sometimesTraffic(let traffic): traffic.from.map { [$0] } ?? []
        case .always(let device, _), .sometimes(let device, _), .finally(let device, _), .eventually(let device, _, _):
            device == Scenario.anyDevice ? [] : [device]
        case .agree(let names): names.filter { $0 != "server" }
        case .sometimesFault, .serverRow, .serverCount, .threshold: []
        }
    }

    var referencedMarks: [String] {
        func mark(_ reference: TimeReference?) -> [String] {
            if case .mark(let name)? = reference { [name] } else { [] }
        }
        var found = mark(condition?.since) + mark(condition?.until)
        switch self {
        case .traffic(let traffic), .sometimesTraffic(let traffic):
            found += mark(traffic.between?.from) + mark(traffic.between?.to)
        case .eventually(_, _, .after(let name, _)): found.append(name)
        default: break
        }
        return found
    }
}
