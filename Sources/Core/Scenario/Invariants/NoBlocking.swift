internal import Determinism

/// I14: nothing waits for the network or for another note.
enum NoBlocking: InvariantCheck {
    static let rule = InvariantRule(
        rule: "Reads and edits never wait for the network, and a change that the server rejects delays only changes "
            + "that depend on it.",
        violations: "A device accepts a change more than 50 ms after its user has made it (live: more than 1 "
            + "s, while it is using the network); or a note that the user has not deleted vanishes from a device that has "
            + "received no response in the 50 ms before (live: 1 s); or the server rejects a change of one note three times in one "
            + "process of the client, while a change of another note, which was pending all the time, is not sent, and "
            + "no reading of that note has failed.",
        worlds: "Simulated and live, with these two limits.",
        blindSpots: "Screens that are not part of views; full and slow disks; live, delays below 1 s.",
        source: "tags s01, s28, s31")

    /// The number of attempts of a rejected change by which every other pending change must have been sent.
    private static let rejectionsMax = 3

    static func violation(in run: RunFacts) -> InvariantViolation? { ofUser(run) ?? ofReads(run) ?? ofQueue(run) }

    // MARK: The user

    private static func ofUser(_ run: RunFacts) -> InvariantViolation? {
        for change in run.changes {
            let accepted = run.time(change.acceptedIndex)
            guard run.span(from: change.start, to: accepted) > run.promptMax, let device = run.device(change.device),
                !(device.stops + device.starts).contains(where: {
                    $0.index > change.startIndex && $0.index < change.acceptedIndex
                }), !device.isDiskLate(from: change.startIndex, to: change.acceptedIndex)
            else { continue }
            let usesNetwork =
                run.world?.isSimulated == true
                || device.dials.contains { $0.index > change.startIndex && $0.index < change.acceptedIndex }
                || device.exchanges.contains { index in
                    let exchange = run.exchanges[index]
                    return exchange.sentIndex < change.acceptedIndex
                        && (exchange.end.map { $0.index > change.startIndex } ?? true)
                }
            if !usesNetwork { continue }
            return InvariantViolation(
                "\(change.device) accepts that its user \(change.kind.verb) \(change.row) only "
                    + "\(TimeFormat.duration(accepted - change.start)) later, at \(RunFacts.text(accepted))",
                at: change.acceptedIndex, of: change.device, change.row)
        }
        return nil
    }

    // MARK: Reads

    /// What a device has read before can be read without the network.
    private static func ofReads(_ run: RunFacts) -> InvariantViolation? {
        let rows = Set(run.scenario.notes.map(\.row))
        for device in run.devices where device.isReference && !run.hasRawRequests(of: device.device.user) {
            for change in device.changes where change.after == nil && !change.isFirst && rows.contains(change.name) {
                guard change.before != nil else { continue }
                let since = change.time - run.promptMax
                let isDeleted = device.actions.contains { action in
                    action.moment.index <= change.index && action.moment.time >= since && action.changes(change.name)
                }
                // In real time, the end of an exchange may be recorded after the view.
                let hasResponse = device.exchanges.contains { index in
                    guard let end = run.exchanges[index].end else { return false }
                    return end.time >= since && end.time <= change.time + run.promptMax
                        && run.exchanges[index].receivedStatus != nil
                }
                if isDeleted || hasResponse { continue }
                // What a response has brought is shown when it is stored.
                if device.isDiskLate(from: run.lastIndex(until: since), to: change.index) { continue }
                return InvariantViolation(
                    "\(change.name) vanishes from \(device.name) at \(RunFacts.text(change.time)), although its user has not "
                        + "deleted it and no response has been received",
                    at: change.index, of: device.name, change.name)
            }
        }
        return nil
    }

    // MARK: The queue

    private static func ofQueue(_ run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            // The number of rejections of each note's writes, and that at which each other note became pending.
            var rejections: [String: Int] = [:]
            var pending: [String: (since: Int, before: [String: Int])] = [:]
            var changes = device.changes[...]
            var lastIndex = -1
            // The ends of the attempts of notes.
            var attempts: [String: Int] = [:]
            // The times until which notes may wait for the delay after their own last attempt.
            var delayed: [String: Nanoseconds] = [:]
            for index in device.exchanges {
                let exchange = run.exchanges[index]
                // Changes wait for their own attempts, and for those of others that the server has not rejected.
                let isBusy = attempts.contains { $0.key != exchange.row && $0.value > exchange.sentIndex }
                // A process that is killed after each rejection, or cut off, has no time for other changes.
                let isNew =
                    device.starts.contains { $0.index > lastIndex && $0.index < exchange.sentIndex }
                    || device.beliefs.contains { $0 > lastIndex && $0 < exchange.sentIndex }
                lastIndex = exchange.sentIndex
                for (row, entry) in pending where isBusy || isNew { pending[row] = (entry.since, rejections) }
                while let change = changes.first, change.index < exchange.sentIndex {
                    changes.removeFirst()
                    if change.after?.icon != .upload {
                        pending[change.name] = nil
                    } else if pending[change.name] == nil {
                        pending[change.name] = (change.index, rejections)
                    }
                }
                let isWrite = ExpectationEvaluator.writeMethods.contains(exchange.method)
                // A client may have to read a note before it sends its change; the change waits if that fails.
                guard let row = exchange.row, isWrite || !exchange.hasSucceeded else { continue }
                // Its own attempt ends the wait of a note.
                if let entry = pending[row] { pending[row] = (entry.since, rejections) }
                delayed[row] = (exchange.end?.time ?? exchange.sentAt) + device.policy.longestDelay
                if !isWrite { continue }
                attempts[row] = exchange.end?.index ?? .max
                let waiting = pending.filter { delayed[$0.key] ?? .zero < exchange.sentAt }
                if let found = blocked(by: row, rejections, waiting, device, exchange) { return found }
                if isRejected(exchange, run) {
                    rejections[row, default: 0] += 1
                    pending[row]?.before = rejections
                }
            }
        }
        return nil
    }

    private static func blocked(
        by row: String, _ rejections: [String: Int], _ pending: [String: (since: Int, before: [String: Int])],
        _ device: RunFacts.Device, _ exchange: History.Exchange
    ) -> InvariantViolation? {
        guard let count = rejections[row] else { return nil }
        for (other, entry) in pending.sorted(by: { $0.value.since < $1.value.since }) where other != row {
            if count - (entry.before[row] ?? 0) < rejectionsMax { continue }
            return InvariantViolation(
                "\(device.name) has not sent the change of \(other), pending since "
                    + "\(RunFacts.text(time(of: other, entry.since, device))), while the server has rejected that of \(row) "
                    + "\(count - (entry.before[row] ?? 0)) times up to \(RunFacts.text(exchange.sentAt))",
                at: exchange.sentIndex, of: device.name, other)
        }
        return nil
    }

    private static func time(of row: String, _ index: Int, _ device: RunFacts.Device) -> Nanoseconds {
        device.rows[row]?.first { $0.index == index }?.time ?? .zero
    }

    /// Whether a response rejects the change of this request alone.
    private static func isRejected(_ exchange: History.Exchange, _ run: RunFacts) -> Bool {
        guard let status = exchange.receivedStatus, !exchange.isOnPortal else { return false }
        // The contract orig responds so to the repetition of an executed creation.
        if run.scenario.contract == "orig" && exchange.method == "POST" && status == 400 { return false }
        return status == 500 || (400...499).contains(status) && ![401, 403, 408, 409, 412, 425, 429].contains(status)
    }
}

extension History.Exchange {
    /// Whether the client has received a response that is no error.
    fileprivate var hasSucceeded: Bool { receivedStatus.map { $0 < 400 } ?? false }
}
