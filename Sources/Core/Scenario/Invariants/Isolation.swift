/// I13: isolation of accounts.
enum Isolation: InvariantCheck {
    static let rule = InvariantRule(
        rule: "No byte of one account is sent with the credentials of another, or shown to its user.",
        violations: "A request has the credentials of another user than its device's; or two users share an access "
            + "token; or a device shows or sends a text that only other users have written.",
        worlds: "Simulated and live, where the contents of requests are recorded.",
        blindSpots: "Credentials other than Basic and Bearer; texts that users of both accounts have "
            + "written; attachments.",
        source: "tag s34; RFC 7235, section 5.1.2")

    static func violation(in run: RunFacts) -> InvariantViolation? { ofCredentials(run) ?? ofTexts(run) }

    private static func ofCredentials(_ run: RunFacts) -> InvariantViolation? {
        var owners: [Int: String] = [:]
        for exchange in run.exchanges {
            guard let account = exchange.contents?.account,
                let user = run.user(of: exchange.actor, at: exchange.sentIndex)
            else { continue }
            switch account {
            case .user(user): continue
            case .user(let other):
                if run.sendsRequests(exchange.actor) { continue }
                return InvariantViolation(
                    "\(exchange.actor) of \(user) sends \(exchange.method) \(exchange.row ?? "index") at "
                        + "\(RunFacts.text(exchange.sentAt)) with the credentials of \(other)",
                    at: exchange.sentIndex, of: exchange.actor, exchange.row)
            case .token(let number):
                let owner = owners[number] ?? user
                owners[number] = owner
                if owner == user || run.sendsRequests(exchange.actor) { continue }
                return InvariantViolation(
                    "\(exchange.actor) of \(user) sends \(exchange.method) \(exchange.row ?? "index") at "
                        + "\(RunFacts.text(exchange.sentAt)) with an access token of \(owner)",
                    at: exchange.sentIndex, of: exchange.actor, exchange.row)
            }
        }
        return nil
    }

    private static func ofTexts(_ run: RunFacts) -> InvariantViolation? {
        let users = run.scenario.users
        guard users.count > 1 else { return nil }
        // The users who have entered each text.
        var writers: [String: Set<String>] = [:]
        for (index, step) in run.scenario.steps.enumerated() {
            let start = run.accounts.areFixed ? nil : run.history.index(ofStep: index)
            guard let (actor, action) = step.action, let user = run.user(of: actor, at: start ?? .max) else { continue }
            switch action {
            case .create(_, _, let text?), .edit(_, _, let text?), .resolve(_, _, let text?),
                .editStale(_, _, let text?):
                writers[text, default: []].insert(user)
            default: continue
            }
        }
        // Notes at the start belong to all users.
        for note in run.scenario.notes { if let text = note.text { writers[text] = users } }
        var digests: [UInt64: Set<String>] = [:]
        for (text, users) in writers { digests[RequestContents.digest(text), default: []].formUnion(users) }
        for device in run.devices where !run.hasRawRequests(of: device.device.user) {
            for change in device.changes {
                guard let text = change.after?.text, let found = writers[text],
                    let user = run.user(of: device.name, at: change.index), !found.contains(user)
                else {
                    continue
                }
                return InvariantViolation(
                    "\(device.name) of \(user) shows a text of \(found.sorted()[0]) at "
                        + "\(RunFacts.text(change.time))",
                    at: change.index, of: device.name, change.name)
            }
        }
        for exchange in run.exchanges {
            guard let text = exchange.contents?.text,
                let user = run.user(of: exchange.actor, at: exchange.sentIndex),
                let found = digests[text],
                !found.contains(user), !run.sendsRequests(exchange.actor)
            else { continue }
            return InvariantViolation(
                "\(exchange.actor) of \(user) sends a text of \(found.sorted()[0]) at \(RunFacts.text(exchange.sentAt))",
                at: exchange.sentIndex, of: exchange.actor, exchange.row)
        }
        return nil
    }
}
