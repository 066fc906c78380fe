internal import Determinism
internal import Impairment

/// I5: bounded retries.
enum BoundedRetries: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A client's attempts in an outage are within the budget of the policy that it publishes, it keeps the "
            + "delays of that policy, and it respects Retry-After.",
        violations: "A device makes more attempts in an outage than its budget, plus 2 for each action of its user "
            + "and each start of its client (a response of a fault, or to a request sent before the outage, begins the delays anew); or it sends a request "
            + "before the end of a Retry-After; or it repeats a failed or rejected request three times, each within "
            + "half of its first delay, without an action, a start, a change of the network or another response "
            + "between; or it repeats a write that the server has rejected for good; or five delays in a row in an "
            + "outage are equal to the millisecond.",
        worlds:
            "Simulated and live. The connection attempts of programs are not known; for programs only requests count, and "
            + "the reference policy applies.",
        blindSpots:
            "A Retry-After that a server sends by itself, because only those of faults are known; a Retry-After to the "
            + "reader app, because it reads only when its user acts; on a slow disk, requests up to 2 s after a Retry-After.",
        source: "tags s30, s32, s33; RFC 9110, section 10.2.3; the reference client's retry policy")

    /// The number of attempts to which an action of the user entitles a client in an outage: it may interrupt a delay,
    /// and try another connection.
    private static let attemptsPerAction = 2
    /// The number of transfers after whose failures the field app waits.
    private static let transfersMax = 3
    /// The number of attempts in a row, without a delay between them, that are a storm.
    private static let stormMin = 4
    /// The lateness of a request that was on its way when the response arrived.
    private static let slack = Nanoseconds.milliseconds(100)
    /// The longest commit on a slow disk that delays a request beyond the response to an earlier one.
    private static let commitMax = Nanoseconds.seconds(2)

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            if let found = overBudget(device, run) ?? early(device, run) ?? storm(device, run)
                ?? repetition(device, run) ?? regularDelays(device, run)
            {
                return found
            }
        }
        return nil
    }

    // MARK: The budget

    struct Outage {
        let start: RunFacts.Moment
        var end = Nanoseconds(.max)
        let isFlap: Bool
    }

    private static func overBudget(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        var attempts = device.dials.map(\.time)
        for index in device.exchanges where !run.exchanges[index].isFirstOfAttempt {
            attempts.append(run.exchanges[index].sentAt)
        }
        let actions =
            device.actions.map(\.moment.time)
            + run.history.entries.compactMap { entry in
                if case .started(device.name) = entry.event { entry.time } else { nil }
            }
            // A fault may respond for the server, so that the client repeats its requests once.
            + device.exchanges.compactMap { run.reply(to: run.exchanges[$0]) == nil ? nil : run.exchanges[$0].sentAt }
        // A response that the client takes for the server's ends its back-off: the delays begin anew.
        let responses = device.exchanges.compactMap { index -> Nanoseconds? in
            let exchange = run.exchanges[index]
            guard let reply = run.reply(to: exchange), exchange.receivedStatus != nil, isOfService(reply, of: device)
            else { return nil }
            return exchange.end?.time
        }
        // So does an interface that comes up again: the network may be another one.
        let returns = zip(device.network, device.network.dropFirst()).compactMap { old, new in
            !old.isUp && new.isUp ? new.moment.time : nil
        }
        let accepted = run.changes.count { $0.device == device.name }
        let planned = run.scenario.steps.count { $0.action?.actor == device.name && $0.action?.action.isWrite == true }
        var flapping = (count: 0, allowed: accepted > 0 ? accepted : planned)
        let habits = device.device.client.app?.vocabulary.habits ?? []
        let transfers = habits.contains(.otherTransfersFirst) ? transfersMax : 1
        for outage in outages(device) {
            func isWithin(_ time: Nanoseconds) -> Bool { time >= outage.start.time && time < outage.end }
            let count = attempts.count(where: isWithin)
            // So does a response that was on its way when the outage began: the client does not know of the outage.
            let late = device.exchanges.count { index in
                let exchange = run.exchanges[index]
                return exchange.sentIndex < outage.start.index && exchange.receivedStatus != nil
                    && exchange.end.map { isWithin($0.time) } ?? false
            }
            let extra =
                attemptsPerAction * actions.count(where: isWithin)
                + device.policy.attemptsMax(inOutage: .zero) * ((responses + returns).count(where: isWithin) + late)
            let length = outage.end - outage.start.time
            if outage.isFlap {
                flapping.count += count
                flapping.allowed += extra + transfers * device.policy.attemptsMax(inDownPhase: length)
                continue
            }
            let allowed = extra + transfers * device.policy.attemptsMax(inOutage: length)
            if count <= allowed { continue }
            return InvariantViolation(
                "\(text(count)) of \(device.name) in the outage at \(RunFacts.text(outage.start.time)), \(allowed) allowed",
                at: outage.start.index, of: device.name)
        }
        if flapping.count <= flapping.allowed { return nil }
        return InvariantViolation(
            "\(text(flapping.count)) of \(device.name) in the down phases of flaps, \(flapping.allowed) allowed",
            of: device.name)
    }

    /// Whether the reply of a fault has the mark of a device's service.
    private static func isOfService(_ reply: FaultResponse, of device: RunFacts.Device) -> Bool {
        let marker = device.device.client.markerField.lowercased()
        return reply.fields.contains { $0.name.lowercased() == marker && $0.value == "1" }
    }

    private static func text(_ count: Int) -> String { "\(count) \(count == 1 ? "attempt" : "attempts")" }

    static func outages(_ device: RunFacts.Device) -> [Outage] {
        var found: [Outage] = []
        var isDown = false
        for state in device.network {
            // Starts of the client and its interface do not divide an outage.
            if isDown, !state.isOpen, found.last?.isFlap == state.isFlap { continue }
            if isDown { found[found.count - 1].end = state.moment.time }
            isDown = !state.isOpen
            if isDown { found.append(Outage(start: state.moment, isFlap: state.isFlap)) }
        }
        return found
    }

    // MARK: Retry-After

    private static func early(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if device.device.client.app?.vocabulary.habits.contains(.readsOnRequest) == true { return nil }
        for index in device.exchanges {
            let first = run.exchanges[index]
            guard let end = first.end, !run.mayBeUnread(first), let seconds = retryAfter(first, run) else { continue }
            let floor = end.time + seconds
            for later in device.exchanges where later > index {
                let exchange = run.exchanges[later]
                if exchange.sentAt >= floor { break }
                // A long request may have been on its way, and a new process does not know the response.
                if exchange.sentIndex < end.index || exchange.sentAt <= end.time + slack || exchange.bytesUp > 16 << 10
                    || run.heldBack.contains(exchange.id)
                    // The commit before the request may have begun before the response.
                    || exchange.sentAt <= end.time + commitMax
                        && device.isDiskLate(from: end.index, to: exchange.sentIndex)
                    || exchange.dialIndex.map({ $0 < end.index }) ?? false
                {
                    continue
                }
                if device.starts.contains(where: { $0.index > end.index && $0.index < exchange.sentIndex }) { break }
                return InvariantViolation(
                    "\(device.name) sends \(exchange.method) \(exchange.row ?? "index") at \(RunFacts.text(exchange.sentAt)), "
                        + "before the end of the Retry-After of \(RunFacts.text(end.time))",
                    at: exchange.sentIndex, of: device.name, exchange.row)
            }
        }
        return nil
    }

    /// Returns the delay that a response has asked for; `nil` if it has not.
    static func retryAfter(_ exchange: History.Exchange, _ run: RunFacts) -> Nanoseconds? {
        guard let status = exchange.receivedStatus, status == 429 || status == 503, let reply = run.reply(to: exchange),
            let field = reply.fields.first(where: { $0.name.lowercased() == "retry-after" }),
            let seconds = Int64(field.value)
        else { return nil }
        return .seconds(seconds)
    }

    // MARK: Delays

    /// Requests that are attempts of the same thing.
    private struct Subject: Hashable {
        let method: String
        let row: String?
        let key: String?
        /// The digest of the body if the request names neither a note nor an operation: it may be for other records.
        let body: UInt64?

        init(_ exchange: History.Exchange) {
            (method, row, key) = (exchange.method, exchange.row, exchange.key)
            body = row == nil && key == nil ? exchange.bodyDigest : nil
        }
    }

    private static func storm(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        let half = Nanoseconds(device.policy.firstDelay.count / 2)
        // Events that entitle a client to another attempt at once.
        let breaks =
            (device.actions.map(\.moment.index) + device.network.map(\.moment.index) + device.starts.map(\.index))
            .sorted()
        // A response shows a client that the server can be reached: what has got none is sent again.
        let responses = device.exchanges.compactMap { index -> Int? in
            run.exchanges[index].receivedStatus == nil ? nil : run.exchanges[index].end?.index
        }.sorted()
        var rows: [Subject: (count: Int, last: History.Exchange)] = [:]
        var reads: [String: Int] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            let subject = Subject(exchange)
            var count = 1
            if let (before, last) = rows[subject], hasFailed(last), let end = last.end, end.index < exchange.sentIndex,
                exchange.sentAt - end.time < half, !hasBreak(breaks, last.sentIndex, exchange.sentIndex),
                last.receivedStatus != nil || !hasBreak(responses, end.index, exchange.sentIndex),
                exchange.row.flatMap({ reads[$0] }).map({ $0 < last.sentIndex }) ?? true
            {
                count = before + 1
            }
            rows[subject] = (count, exchange)
            if exchange.method == "GET", let row = exchange.row { reads[row] = exchange.sentIndex }
            // The index and the probe of the path, which are sent in turn, are reads without a note.
            let isIndexOrProbe = exchange.method == "GET" && exchange.row == nil
            if count < (isIndexOrProbe ? 2 * stormMin : stormMin) { continue }
            return InvariantViolation(
                "\(device.name) sends \(exchange.method) \(exchange.row ?? "index") \(count) times in a row up to "
                    + "\(RunFacts.text(exchange.sentAt)), each time less than \(TimeFormat.duration(half)) after a failure",
                at: exchange.sentIndex, of: device.name, exchange.row)
        }
        return nil
    }

    private static func hasFailed(_ exchange: History.Exchange) -> Bool {
        guard exchange.end != nil else { return false }
        guard let status = exchange.receivedStatus else { return true }
        // Not found, conflict, gone and precondition failed tell the client what to do next.
        return status >= 400 && ![404, 409, 410, 412].contains(status)
    }

    static func hasBreak(_ breaks: [Int], _ from: Int, _ to: Int) -> Bool {
        breaks.contains { $0 > from && $0 < to }
    }
}
