/// Faults of single requests.
extension Scenario {
    /// Returns the scenario with each fault that has fired once given for the requests of its device, method and note only,
    /// so that requests of other notes do not shift its number.
    func narrowingFaults(_ history: History) -> Scenario {
        let known = rows
        let names = Set(devices.map(\.name))
        // The number of requests of each device, by method and note; with an empty note, of all notes.
        var counts: [[String]: Int] = [:]
        var targets: [Int: (actor: String, method: String, row: String?, number: Int)] = [:]
        var fired: [Int: [Int]] = [:]
        for entry in history.entries[..<history.restoreIndex] {
            switch entry.event {
            case .request(let id, let actor, let method, let row, _, _, _) where names.contains(actor):
                counts[[actor, method, ""], default: 0] += 1
                if let row { counts[[actor, method, row], default: 0] += 1 }
                let named = row.flatMap { known.contains($0) ? $0 : nil }
                targets[id] = (actor, method, named, counts[[actor, method, named ?? ""]] ?? 1)
            case .fault(let index, let exchange, _): fired[index, default: []].append(exchange)
            default: break
            }
        }
        var result = self
        for (index, fault) in faults.enumerated() where fault.probability == nil && fault.times == 1...1 {
            guard let exchanges = fired[index], exchanges.count == 1, let target = targets[exchanges[0]] else {
                continue
            }
            result.faults[index].request = RequestPattern(method: target.method, row: target.row)
            result.faults[index].nth = target.number
            if devices.count > 1 { result.faults[index].device = target.actor }
        }
        return result
    }

    /// Returns the scenario with smaller numbers of requests in faults of notes that have fewer steps than in `original`;
    /// `nil` if no fault changes.
    func advancingFaults(since original: Scenario) -> Scenario? {
        func counts(_ scenario: Scenario) -> [String: Int] {
            var found: [String: Int] = [:]
            for step in scenario.steps { if let row = step.action?.action.row { found[row, default: 0] += 1 } }
            return found
        }
        let (before, after) = (counts(original), counts(self))
        func removed(_ row: String) -> Int { (before[row] ?? 0) - (after[row] ?? 0) }
        let all = before.keys.reduce(0) { $0 + removed($1) }
        var result = self
        var hasChanged = false
        for (index, fault) in faults.enumerated() where fault.probability == nil && fault.nth > 1 {
            let nth = max(1, fault.nth - (fault.request.row.map(removed) ?? all))
            guard nth < fault.nth else { continue }
            result.faults[index].nth = nth
            hasChanged = true
        }
        return hasChanged ? result : nil
    }
}
