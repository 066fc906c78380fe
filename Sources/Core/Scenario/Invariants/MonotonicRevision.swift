/// I6: revisions grow.
enum MonotonicRevision: InvariantCheck {
    static let rule = InvariantRule(
        rule: "The number of a note's revision on the server only grows, and a client never goes back to a lower "
            + "one.",
        violations: "A response names a lower revision of a note than a response before its request; or the response "
            + "to a new PUT names no higher one; or the server has a lower one at the end; or a device shows the "
            + "text of a lower revision after the text of a higher one, without an icon.",
        worlds: "Simulated and live. The view is checked where the contents of requests are recorded.",
        blindSpots: "Notes that were deleted, repeated results of earlier writes, and texts that several revisions "
            + "have.",
        source: "tag s16")

    static func violation(in run: RunFacts) -> InvariantViolation? { onServer(run) ?? inViews(run) }

    private static func onServer(_ run: RunFacts) -> InvariantViolation? {
        var subjects: [Int: (note: RunFacts.Note, floor: Int)] = [:]
        var deleted: Set<RunFacts.Note> = []
        for exchange in run.exchanges where exchange.method == "DELETE" && RunFacts.isExecuted(exchange) {
            if let note = run.note(of: exchange) { deleted.insert(note) }
        }
        var greatest: [RunFacts.Note: Int] = [:]
        var keys: Set<String> = []
        let byID = Dictionary(run.exchanges.map { ($0.id, $0) }) { first, _ in first }
        for (index, entry) in run.history.entries.enumerated() {
            switch entry.event {
            case .request(let id, _, _, _, let key, _, _):
                guard let exchange = byID[id], let note = run.note(of: exchange), !exchange.isOnPortal,
                    key.map({ keys.insert($0).inserted }) ?? true, !deleted.contains(note)
                else { continue }
                subjects[id] = (note, greatest[note] ?? 0)
            case .serverResponded(let id, let status, _, let revision?):
                guard let (note, floor) = subjects[id] else { continue }
                let isWrite = byID[id]?.method == "PUT" && (200..<300).contains(status)
                if revision < floor || isWrite && revision == floor && floor > 0 {
                    return InvariantViolation(
                        "\(note.row) has revision \(revision) at \(RunFacts.text(entry.time)), after revision \(floor)",
                        at: index, of: byID[id]?.actor, note.row)
                }
                greatest[note] = max(greatest[note] ?? 0, revision)
            default: continue
            }
        }
        for (note, revision) in greatest.sorted(by: { $0.key.row < $1.key.row }) {
            guard let row = run.finalRow(note.row, of: note.user), row.revision < revision else { continue }
            return InvariantViolation(
                "\(note.row) has revision \(row.revision) at the end, after revision \(revision)", at: run.endIndex,
                of: nil,
                note.row)
        }
        return nil
    }

    /// Returns the first view that goes back to an earlier text of the server.
    private static func inViews(_ run: RunFacts) -> InvariantViolation? {
        for (note, indices) in run.exchangesByNote.sorted(by: { ($0.value.first ?? 0) < ($1.value.first ?? 0) }) {
            guard let revisions = revisions(of: note, indices, run), revisions.count > 1 else { continue }
            for device in run.devices where device.device.user == note.user && !run.sendsRequests(device.name) {
                var greatest = 0
                for change in device.rows[note.row] ?? [] {
                    guard let row = change.after, row.icon == .plain, !row.isDeleted, let text = run.textDigest(row),
                        let revision = revisions[text] ?? nil
                    else { continue }
                    if revision < greatest {
                        return InvariantViolation(
                            "\(device.name) shows the text of revision \(revision) of \(note.row) at "
                                + "\(RunFacts.text(change.time)), after that of revision \(greatest)",
                            at: change.index, of: device.name, note.row)
                    }
                    greatest = revision
                }
            }
        }
        return nil
    }

    /// Returns the revision of each text of a note by its digest, `nil` for a text of several revisions; nothing if the
    /// revisions are not known.
    private static func revisions(of note: RunFacts.Note, _ indices: [Int], _ run: RunFacts) -> [UInt64: Int?]? {
        var found: [UInt64: Int?] = [:]
        func add(_ text: UInt64, _ revision: Int) {
            let isNew = found.index(forKey: text) == nil
            found.updateValue(isNew ? revision : nil, forKey: text)
        }
        if let seed = run.scenario.notes.first(where: { $0.row == note.row }), let text = seed.text {
            add(RequestContents.digest(text), seed.revision)
        }
        var writes: Set<ExpectationEvaluator.Write> = []
        for index in indices {
            let exchange = run.exchanges[index]
            guard RunFacts.mayBeExecuted(exchange), writes.insert(ExpectationEvaluator.Write(exchange)).inserted else {
                continue
            }
            // After a deletion the numbers may begin again.
            guard exchange.method == "PUT" || exchange.method == "POST", let text = exchange.contents?.text,
                let revision = RunFacts.resultingRevision(exchange)
            else { return nil }
            add(text, revision)
        }
        return found
    }
}
