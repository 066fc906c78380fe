internal import Determinism

/// Invariants of every run.
///
/// Each is decided from the history alone, and only where the history leaves no doubt: a violation is certain, a missing
/// one is not a proof.
extension ExpectationEvaluator {
    /// Returns the reason why a run violates an invariant; `nil` if it does not, or if the history does not show it.
    mutating func violation(of invariant: Scenario.Invariant) -> String? {
        switch invariant {
        case .noLostWrite: lostWrite
        case .noDuplicateEffect: duplicateEffect
        case .convergence: divergence
        case .boundedRetries: excessiveRetries
        case .monotonicRevision: olderRevision
        case .order: orphan
        case .readYourWrites: staleView
        case .noFalseConflict: falseConflict
        case .deletesStick: revival
        case .noSilentOverwrite, .crashAtomicity, .validatedAnswersOnly, .isolation, .noBlocking, .visibleState,
            .economy,
            .liveness, .transparentProxy:
            nil
        }
    }

    private func user(of actor: String) -> String? {
        scenario.devices.first { $0.name == actor }?.user ?? scenario.writers.first { $0.name == actor }?.user
    }

    private func isDevice(_ actor: String) -> Bool { scenario.devices.contains { $0.name == actor } }

    /// Whether a device sends requests past its queue, so that they are no writes of its client.
    private func sendsRequests(_ actor: String) -> Bool {
        scenario.steps.contains { step in
            if case (actor, .send)? = step.action { true } else { false }
        }
    }

    private static func isSuccess(_ exchange: History.Exchange) -> Bool {
        !exchange.isOnPortal && exchange.serverStatus.map { (200...299).contains($0) } ?? false
    }

    private func finalRow(_ name: String, of user: String) -> History.ServerRow? {
        serverRows?.first { $0.user == user && $0.name == name }
    }

    // MARK: I1

    /// The last change of a note on each device was executed, is on the server, or is shown as a conflict or an error.
    /// Another client's write of the note after the change leaves it undecided.
    private var lostWrite: String? {
        mutating get {
            guard serverRows != nil, !history.wasAborted else { return nil }
            var last: [String: Change] = [:]
            for change in changes { last["\(change.device) \(change.row)"] = change }
            for change in last.values.sorted(by: { $0.startIndex < $1.startIndex }) {
                guard let user = user(of: change.device), !isKept(change, user) else { continue }
                let writes = exchanges.filter {
                    $0.row == change.row && $0.sentIndex > change.startIndex && Self.writeMethods.contains($0.method)
                        && self.user(of: $0.actor) == user
                }
                if writes.contains(where: { $0.actor != change.device || Self.isSuccess($0) }) { continue }
                return "\(change.device) \(change.kind) \(change.row) at \(TimeFormat.seconds(change.start)), "
                    + "and the change is neither on the server nor shown as pending"
            }
            return nil
        }
    }

    /// Returns whether the end shows a change: on the server, or on its device.
    private func isKept(_ change: Change, _ user: String) -> Bool {
        let onServer = finalRow(change.row, of: user)
        let row = lastState(of: change.device)?.rows.first { $0.name == change.row }
        if row.map({ $0.icon != "none" }) ?? false { return true }
        // The server's side of a conflict was chosen, so there is nothing to keep.
        if case .choose(_, .theirs)? = change.action { return true }
        // The user has discarded the change.
        if case .call? = change.action { return true }
        if change.kind == "keeps" || (change.kind == "resolves" && change.action == nil) { return true }
        if case .choose(_, .delete)? = change.action { return onServer == nil }
        if change.kind == "deletes" { return onServer == nil }
        let accepted = state(of: change.device, at: change.acceptedIndex)?.rows.first { $0.name == change.row }
        guard let accepted else { return onServer == nil }
        if accepted.isDeleted { return onServer == nil }
        return onServer.map { $0.title == accepted.title && $0.text == accepted.text } ?? false
    }

    private func state(of device: String, at index: Int) -> History.DeviceState? {
        for entry in history.entries[...index].reversed() {
            if case .device(device, let state) = entry.event { return state }
        }
        return nil
    }

    // MARK: I2

    /// The server has executed each write of a client once, and has one note of each name.
    private var duplicateEffect: String? {
        mutating get {
            for exchange in exchanges where duplicates.contains(exchange.id) {
                guard isDevice(exchange.actor), !sendsRequests(exchange.actor) else { continue }
                return "the server has executed \(exchange.method) \(exchange.row ?? "of an unknown note") of "
                    + "\(exchange.actor) at \(TimeFormat.seconds(exchange.sentAt)) once more"
            }
            var seen: Set<String> = []
            for row in serverRows ?? [] where !seen.insert("\(row.user) \(row.name)").inserted {
                return "the server has two notes \(row.name) of \(row.user)"
            }
            return nil
        }
    }

    // MARK: I4

    /// After the quiesce phase, the notes of a device without a pending change, conflict or error are those of the server.
    private var divergence: String? {
        guard let rows = serverRows, !history.wasAborted else { return nil }
        for device in scenario.devices {
            guard let state = lastState(of: device.name) else { continue }
            let open = Set(state.rows.filter { $0.icon != "none" || $0.isDeleted }.map(\.name))
            let shown = state.rows.filter { !open.contains($0.name) }
            let stored = rows.filter { $0.user == device.user && !open.contains($0.name) }
            for row in shown {
                let isEqual = stored.contains { $0.name == row.name && $0.title == row.title && $0.text == row.text }
                if !isEqual { return "\(device.name) shows \(row.name) at the end, unlike the server" }
            }
            let names = Set(shown.map(\.name))
            if let missing = stored.first(where: { !names.contains($0.name) }) {
                return "\(device.name) does not show \(missing.name) at the end, and the server has it"
            }
        }
        return nil
    }

    // MARK: I5

    /// The attempts of a device in each outage are within the retry budget, with two more for each action of its user.
    private var excessiveRetries: String? {
        mutating get {
            for device in scenario.devices where !sendsRequests(device.name) {
                if let reason = excessiveRetries(of: device) { return reason }
            }
            return nil
        }
    }

    // MARK: I6

    /// A response to a request that was sent after another response names no lower revision of the note. Notes that were
    /// deleted, and repeated results of earlier writes, are left out.
    private var olderRevision: String? {
        mutating get {
            struct Note: Hashable {
                let user: String
                let row: String
            }
            var subjects: [Int: (note: Note, floor: Int)] = [:]
            let deleted = Set(
                exchanges.filter { $0.method == "DELETE" && Self.isSuccess($0) }.compactMap { exchange in
                    user(of: exchange.actor).flatMap { user in exchange.row.map { Note(user: user, row: $0) } }
                })
            var greatest: [Note: Int] = [:]
            var keys: Set<String> = []
            let byID = Dictionary(exchanges.map { ($0.id, $0) }) { first, _ in first }
            for entry in history.entries {
                switch entry.event {
                case .request(let id, let actor, _, _, let key, _, _):
                    guard let exchange = byID[id], let row = exchange.row, let user = user(of: actor),
                        !exchange.isOnPortal, key.map({ keys.insert($0).inserted }) ?? true
                    else { continue }
                    let note = Note(user: user, row: row)
                    if !deleted.contains(note) { subjects[id] = (note, greatest[note] ?? 0) }
                case .serverResponded(let id, _, _, let revision?):
                    guard let (note, floor) = subjects[id] else { continue }
                    if revision < floor {
                        return "\(note.row) has revision \(revision) at \(TimeFormat.seconds(entry.time)), "
                            + "after revision \(floor)"
                    }
                    greatest[note] = max(greatest[note] ?? 0, revision)
                default: continue
                }
            }
            for (note, revision) in greatest.sorted(by: { $0.key.row < $1.key.row }) {
                guard let row = finalRow(note.row, of: note.user), row.revision < revision else { continue }
                return "\(note.row) has revision \(row.revision) at the end, after revision \(revision)"
            }
            return nil
        }
    }

    // MARK: I7

    /// A device sends no change of a note that it has created before the creation has reached the server.
    private var orphan: String? {
        mutating get {
            for change in changes where change.kind == "creates" && !sendsRequests(change.device) {
                let own = exchanges.filter { $0.actor == change.device && $0.row == change.row }
                guard let first = own.first(where: { ["PUT", "PATCH", "DELETE"].contains($0.method) }) else { continue }
                let isCreated = own.contains {
                    $0.method == "POST" && $0.arrivedAt != nil && $0.arrivedIndex < first.sentIndex
                }
                if isCreated { continue }
                return "\(change.device) sends \(first.method) \(change.row) at \(TimeFormat.seconds(first.sentAt)), "
                    + "before its creation has reached the server"
            }
            return nil
        }
    }

    // MARK: I8

    /// While an edit is pending and has been shown, the device shows no other text of the note until its user's next action.
    private var staleView: String? {
        mutating get {
            for (position, change) in changes.enumerated() {
                let text: String?
                switch change.action {
                case .create(_, _, let new)?, .edit(_, _, let new)?, .resolve(_, _, let new)?: text = new
                default: continue
                }
                guard let text else { continue }
                let next = changes[(position + 1)...].first { $0.device == change.device && $0.row == change.row }
                let end = next?.startIndex ?? history.entries.count
                var isShown = false
                for entry in history.entries[change.startIndex..<end] {
                    guard case .device(change.device, let state) = entry.event,
                        let row = state.rows.first(where: { $0.name == change.row })
                    else { continue }
                    if row.icon != "upload" {
                        isShown = false
                    } else if row.text == text {
                        isShown = true
                    } else if isShown, !row.isDeleted {
                        return "\(change.device) shows another text of \(change.row) at "
                            + "\(TimeFormat.seconds(entry.time)) than that of the pending change"
                    }
                }
            }
            return nil
        }
    }

    // MARK: I9

    /// A device shows a conflict only after another client of its user has sent a write of the note.
    private var falseConflict: String? {
        mutating get {
            for device in scenario.devices {
                var seen: Set<String> = []
                for (index, entry) in history.entries.enumerated() {
                    guard case .device(device.name, let state) = entry.event else { continue }
                    for row in state.rows where row.icon == "conflict" && seen.insert(row.name).inserted {
                        let hasOtherWriter = exchanges.contains { exchange in
                            exchange.row == row.name && exchange.actor != device.name && exchange.sentIndex < index
                                && Self.writeMethods.contains(exchange.method)
                                && user(of: exchange.actor) == device.user
                        }
                        if hasOtherWriter || sendsRequests(device.name) { continue }
                        return "\(device.name) shows a conflict of \(row.name) at \(TimeFormat.seconds(entry.time)), "
                            + "and no other client has written it"
                    }
                }
            }
            return nil
        }
    }

    // MARK: I10

    /// A note that the server has deleted is not on the server at the end, unless a client has created it again or resolved
    /// a conflict of it.
    private var revival: String? {
        mutating get {
            var seen: Set<String> = []
            for deletion in exchanges where deletion.method == "DELETE" && Self.isSuccess(deletion) {
                // A repeated deletion may be that of a note with the same name that was deleted before.
                guard let user = user(of: deletion.actor), let name = deletion.row,
                    seen.insert("\(user) \(name)").inserted, let row = finalRow(name, of: user)
                else { continue }
                let hasDecision = history.entries[deletion.arrivedIndex...].contains { entry in
                    guard case .action(let actor, let text) = entry.event, self.user(of: actor) == user else {
                        return false
                    }
                    let words = text.split(separator: " ").map(String.init)
                    return words.first == "sends" || words == ["creates", name]
                        || words.starts(with: ["resolves", name])
                }
                if hasDecision { continue }
                return
                    "\(row.name) was deleted at \(TimeFormat.seconds(deletion.sentAt)), and is on the server at the end"
            }
            return nil
        }
    }
}
