/// I2: no duplicate effect.
enum NoDuplicateEffect: InvariantCheck {
    static let rule = InvariantRule(
        rule: "Each action of a user changes the server at most once, and each creation leads to one note.",
        violations: "The server has executed one request of a device twice; or it has executed more writes of a note "
            + "by a device than the device's user has made changes of the note; or it has two notes of one name; or "
            + "it rejects the repetition of an operation that it has executed; or it accepts another request with "
            + "the id of such an operation; or a client, but no program, sends two requests of different content with one "
            + "id; or (a server of your own) it has responded to a repetition as to a new write. Two "
            + "requests are one write if path, body and Idempotency-Key are equal, or if both are creations by a program "
            + "with equal title and text and the user has made fewer such creations than the program has sent. The server "
            + "has not executed the second one if the response has a replay header, the identifier of the same record, the "
            + "same revision, or the status and body of the first.",
        worlds:
            "Simulated and live. Devices whose steps send requests past the client are left out. Not decided if the responses of "
            + "another server do not tell whether it has executed a write twice.",
        blindSpots: "Notes that a program creates without telling their names, unless their texts are those of the "
            + "scenario; of other servers, a key that another body reuses. The contract orig has no tombstones: a "
            + "POST without a response that arrives after the DELETE of the note creates the note again; no client "
            + "can prevent that.",
        source: "tags s09, s20, s33; the legacy client doubled notes when two syncs ran at once")

    /// The names of what the forms of the reader create: a user may send one twice.
    private static let submissions: Set<String> = ["feedback", "account"]

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for exchange in run.exchanges where run.effects.duplicates.contains(exchange.id) {
            guard concerns(exchange, run), !isLateCreation(exchange, run) else { continue }
            return InvariantViolation(
                "the server has executed \(exchange.method) \(exchange.row ?? "of an unknown note") of "
                    + "\(exchange.actor) at \(RunFacts.text(exchange.sentAt)) once more",
                at: exchange.sentIndex, of: exchange.actor, exchange.row)
        }
        var seen: Set<String> = []
        for row in run.serverRows ?? []
        where !run.restored.contains(RunFacts.Note(user: row.user, row: row.name))
            && !submissions.contains(row.name) && !seen.insert("\(row.user) \(row.name)").inserted
        {
            return InvariantViolation(
                "the server has two notes \(row.name) of \(row.user)", at: run.endIndex, of: nil, row.name)
        }
        for device in run.devices where !run.sendsRequests(device.name) {
            if let found = surplus(of: device, run) ?? reusedKey(of: device, run) { return found }
        }
        return otherResult(run)
    }

    /// Returns the reason why a run without a violation does not tell whether there is one; `nil` if it does.
    static func undecidedReason(in run: RunFacts) -> String? {
        guard let found = run.effects.undecided.first(where: { concerns($0.repetition, run) }),
            violation(in: run) == nil
        else { return nil }
        return found.reason
    }

    private static func concerns(_ exchange: History.Exchange, _ run: RunFacts) -> Bool {
        run.isDevice(exchange.actor) && !run.sendsRequests(exchange.actor) && !run.isRestored(exchange)
    }

    /// Statuses with which a server rejects a request for good; 400 may be a part of a request.
    private static let rejections: Set<Int> = [404, 409, 410, 412, 422]

    /// Returns the first request with a known operation id whose result is not that of the operation: a repetition that is
    /// rejected after the operation was executed, or another request that is accepted (draft-ietf-httpapi-idempotency-key).
    private static func otherResult(_ run: RunFacts) -> InvariantViolation? {
        guard run.scenario.server == .builtIn, run.scenario.contract != "orig", run.scenario.apps.isEmpty else {
            return nil
        }
        var executed: [[String]: History.Exchange] = [:]
        for exchange in run.exchanges.sorted(by: { $0.respondedIndex ?? .max < $1.respondedIndex ?? .max }) {
            guard let key = exchange.key, let user = run.user(of: exchange.actor, at: exchange.sentIndex),
                RunFacts.isWrite(exchange),
                let status = exchange.serverStatus, !exchange.isOnPortal
            else { continue }
            guard let first = executed[[user, key]] else {
                if RunFacts.isExecuted(exchange) { executed[[user, key]] = exchange }
                continue
            }
            guard first.respondedIndex ?? .max < exchange.arrivedIndex else { continue }
            let isRepetition =
                first.method == exchange.method && first.row == exchange.row && first.bodyDigest == exchange.bodyDigest
            guard isRepetition ? rejections.contains(status) : RunFacts.isExecuted(exchange) else { continue }
            return InvariantViolation(
                "the server responds \(status) to \(exchange.method) \(exchange.row ?? "of an unknown note") of "
                    + "\(exchange.actor) at \(RunFacts.text(exchange.sentAt)), "
                    + (isRepetition ? "although it has executed it" : "although another request had its operation id"),
                at: exchange.respondedIndex ?? exchange.sentIndex, of: exchange.actor, exchange.row)
        }
        return nil
    }

    /// Returns the first request of a device with the operation id of another one of its requests, and another content: a
    /// server would take it for a repetition (draft-ietf-httpapi-idempotency-key).
    private static func reusedKey(of device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard !device.isProgram else { return nil }
        var first: [String: History.Exchange] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            // Of a request that was interrupted, a part of the body is known.
            guard let key = exchange.key, exchange.bytesUp > 0,
                ExpectationEvaluator.writeMethods.contains(exchange.method)
            else { continue }
            guard let known = first[key] else {
                first[key] = exchange
                continue
            }
            if known.method == exchange.method, known.bodyDigest == exchange.bodyDigest { continue }
            // A form whose first submission has no result that is stored, and whose inputs the user has changed since, must
            // not be executed twice.
            let range = known.sentIndex..<exchange.sentIndex
            let isChanged = device.actions.contains { $0.kind == .call && range.contains($0.moment.index) }
            let isKilled = device.stops.contains { range.contains($0.index) }
            if isChanged, isKilled || !run.isAnswered(known) { continue }
            return InvariantViolation(
                "\(device.name) sends \(exchange.method) \(exchange.row ?? "of an unknown note") at "
                    + "\(RunFacts.text(exchange.sentAt)) with the operation id of another request",
                at: exchange.sentIndex, of: device.name, exchange.row)
        }
        return nil
    }

    /// Returns whether a server without tombstones has executed a POST after the DELETE of its note: a POST of a killed
    /// client, a repetition of one whose response the client has not received, or one on a connection that the client has
    /// given up.
    static func isLateCreation(_ exchange: History.Exchange, _ run: RunFacts) -> Bool {
        guard run.scenario.contract == "orig", exchange.method == "POST", let note = run.note(of: exchange),
            let device = run.device(exchange.actor)
        else { return false }
        let others = run.exchanges(of: note.row, note.user).filter { $0.arrivedIndex < exchange.arrivedIndex }
        let wasKilled = device.stops.contains {
            exchange.sentIndex < $0.index && $0.index < exchange.arrivedIndex
        }
        let attempts = others.filter {
            $0.method == "POST" && $0.actor == exchange.actor && RunFacts.mayBeExecuted($0)
        }
        let hasNoResponse = !attempts.isEmpty && attempts.allSatisfy { !run.isAnswered($0) }
        var isGivenUp = false
        if let closed = exchange.disconnectedAt, let arrived = exchange.arrivedAt { isGivenUp = closed < arrived }
        return (wasKilled || hasNoResponse || isGivenUp)
            && others.contains { $0.method == "DELETE" && RunFacts.isExecuted($0) }
    }

    /// What makes executed writes of a note by a device the same change.
    private enum Change: Hashable {
        case write(ExpectationEvaluator.Write)
        /// Another server than the built-in one may know repetitions by the record, so that neither the key nor dates in
        /// the body need be the same.
        case content(method: String, RequestContents.Body?)

        init(_ exchange: History.Exchange, _ run: RunFacts) {
            self =
                run.scenario.server == .builtIn
                ? .write(ExpectationEvaluator.Write(exchange))
                : .content(method: exchange.method, exchange.contents?.body)
        }
    }

    /// Returns the first write of a device for which its user has made no change.
    private static func surplus(of device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        var executed: [String: Set<Change>] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard let row = exchange.row, RunFacts.isWrite(exchange), exchange.contents != nil,
                RunFacts.isExecuted(exchange),
                executed[row, default: []].insert(Change(exchange, run)).inserted
            else { continue }
            let writes = executed[row]?.count ?? 0
            // The actions that name no note, such as a call, may concern this one.
            let actions = device.actions.count { action in
                action.moment.index < exchange.sentIndex && action.mayChange(row)
            }
            if writes <= actions { continue }
            return InvariantViolation(
                "the server has executed \(writes) \(writes == 1 ? "write" : "writes") of \(row) by \(device.name) up to "
                    + "\(exchange.method) at \(RunFacts.text(exchange.sentAt)), and its user has changed \(row) "
                    + "\(actions == 1 ? "once" : "\(actions) times")",
                at: exchange.sentIndex, of: device.name, row)
        }
        return nil
    }
}
