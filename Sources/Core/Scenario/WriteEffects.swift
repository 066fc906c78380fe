/// The effects that writes have had on the server, as its responses tell them.
///
/// The built-in server names the revision of each note that it has written, and the contract orig, which names none,
/// executes every repetition. Another server is known by its responses only: a missing revision says nothing.
struct WriteEffects {
    /// A write that may be a repetition, and the one before it that it may repeat.
    struct Undecided {
        let repetition: History.Exchange
        let first: History.Exchange

        /// The reason why the run does not decide it.
        var reason: String {
            "the responses do not tell whether the server has executed \(repetition.method) "
                + "\(repetition.row ?? "of an unknown note") of \(repetition.actor) at "
                + "\(TimeFormat.seconds(repetition.sentAt)) once more, after that at "
                + "\(TimeFormat.seconds(first.sentAt)): they have no replay header, no identifier of a record and no "
                + "revision that decide it, nor do their statuses and bodies"
        }
    }

    /// The numbers of the requests with which the server has executed a write once more.
    private(set) var duplicates: Set<Int> = []
    /// The requests of which the responses do not tell it.
    private(set) var undecided: [Undecided] = []

    /// The executed writes that may have had one effect.
    private struct Group {
        var effects: [History.Exchange]
        var undecided = 0
    }

    /// What makes executed writes attempts of the same one.
    private enum Operation: Hashable {
        /// Requests of one path with the same body, and the same `Idempotency-Key` if they have one.
        case attempts(actor: String, method: String, target: UInt64?, key: String?, body: UInt64)
        /// Creations of a note with this content by a program, whatever identifiers and keys they have.
        case creation(actor: String, title: UInt64?, text: UInt64?)
    }

    /// A response, to find those that several writes have got.
    private struct Answer: Hashable {
        let status: Int?
        let body: UInt64
    }

    private enum Comparison { case same, other, unknown }

    init(_ exchanges: [History.Exchange], _ scenario: Scenario) {
        if scenario.server == .builtIn {
            duplicates = ExpectationEvaluator.duplicates(exchanges, scenario)
            return
        }
        let writes = exchanges.filter { ExpectationEvaluator.isAttempt($0, scenario) }
            .sorted { $0.arrivedIndex < $1.arrivedIndex }
        let common = Self.commonAnswers(writes)
        var groups: [Operation: Group] = [:]
        for write in writes {
            let (operation, countMax) = Self.operation(write, scenario)
            guard var group = groups[operation] else {
                groups[operation] = Group(effects: [write])
                if ExpectationEvaluator.isUnnamedCreation(write, scenario) { duplicates.insert(write.id) }
                continue
            }
            switch Self.comparison(write, group.effects, common) {
            case .same: continue
            case .other:
                group.effects.append(write)
                if group.effects.count > countMax { duplicates.insert(write.id) }
            case .unknown:
                group.undecided += 1
                if group.effects.count + group.undecided > countMax, let first = group.effects.last {
                    undecided.append(Undecided(repetition: write, first: first))
                }
            }
            groups[operation] = group
        }
    }

    /// Returns the operation of a write, and the number of effects that the actions of its actor explain.
    private static func operation(_ write: History.Exchange, _ scenario: Scenario) -> (Operation, countMax: Int) {
        if write.method == "POST", case .note(let title, let text)? = write.contents?.body {
            let count = actions(of: write.actor, title, text, scenario)
            if count > 0 { return (.creation(actor: write.actor, title: title, text: text), count) }
        }
        let attempts = Operation.attempts(
            actor: write.actor, method: write.method, target: write.result?.target, key: write.key,
            body: write.bodyDigest)
        return (attempts, 1)
    }

    /// Returns the number of actions of a program's user that explain the creation of a note with this content; 0 if they
    /// are not known.
    private static func actions(
        of actor: String, _ title: UInt64?, _ text: UInt64?, _ scenario: Scenario
    ) -> Int {
        guard scenario.devices.contains(where: { $0.name == actor && $0.runsProgram }), scenario.workload.isEmpty
        else { return 0 }
        func isSame(_ expected: String?, _ digest: UInt64?) -> Bool {
            expected.map { RequestContents.digest($0) == digest } ?? true
        }
        var (creations, others) = (0, 0)
        for step in scenario.steps {
            guard let (name, action) = step.action, name == actor else { continue }
            switch action {
            case .create(_, let stepTitle, let stepText):
                if isSame(stepTitle, title) && isSame(stepText, text) { creations += 1 }
            // A note that is edited or resolved after its deletion may be created again.
            case .edit, .editStale, .resolve, .choose, .keep, .call, .send: others += 1
            case .delete, .deleteStale, .pin, .open, .sync, .kill, .start, .upgrade, .clock, .signOut, .signIn, .disk,
                .server:
                break
            }
        }
        return creations == 0 ? 0 : creations + others
    }

    // MARK: Responses

    /// Returns the responses that different writes have got, and that name none of them therefore.
    private static func commonAnswers(_ writes: [History.Exchange]) -> Set<Answer> {
        var first: [Answer: String] = [:]
        var found: Set<Answer> = []
        for write in writes {
            guard let answer = answer(to: write) else { continue }
            let name = write.key ?? "\(write.method) \(write.bodyDigest)"
            if first[answer, default: name] != name { found.insert(answer) }
            first[answer] = name
        }
        return found
    }

    private static func answer(to write: History.Exchange) -> Answer? {
        write.result?.body.map { Answer(status: write.serverStatus, body: $0) }
    }

    /// Returns whether a write has had one of the effects before it.
    private static func comparison(
        _ write: History.Exchange, _ effects: [History.Exchange], _ common: Set<Answer>
    ) -> Comparison {
        if write.method == "DELETE" { return .same }
        if write.method != "PUT", let isReplayed = write.result?.isReplayed { return isReplayed ? .same : .other }
        let found = effects.map { comparison(write, $0, common) }
        return found.contains(.same) ? .same : found.contains(.unknown) ? .unknown : .other
    }

    private static func comparison(
        _ write: History.Exchange, _ earlier: History.Exchange, _ common: Set<Answer>
    ) -> Comparison {
        if write.method == "POST", let record = write.result?.record, let other = earlier.result?.record {
            return record == other ? .same : .other
        }
        if let revision = write.revision, let other = earlier.revision { return revision == other ? .same : .other }
        // A repeated PUT has the effect of one (RFC 9110, section 9.2.2).
        if write.method == "PUT" { return .same }
        guard let answer = answer(to: write), let other = self.answer(to: earlier), answer.status == other.status
        else { return .unknown }
        if answer == other {
            return write.key != nil && write.key == earlier.key && !common.contains(answer) ? .same : .unknown
        }
        // The response to a query may differ each time, that to a creation may not.
        let isNote = if case .note? = write.contents?.body { true } else { false }
        return write.method == "POST" && (answer.status == 201 || isNote) ? .other : .unknown
    }
}
