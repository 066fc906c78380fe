internal import Determinism

/// I17: liveness.
enum Liveness: InvariantCheck {
    static let rule = InvariantRule(
        rule: "Without an action of the user, the next attempt starts at most 5 s after the end of an outage that the "
            + "interface has shown; after any other outage, at most the longest delay of the client's policy plus 5 s "
            + "later. A client that polls also keeps its interval between polls, plus 5 s.",
        violations: "A running device with a working link starts no attempt for these times, or for its interval "
            + "between polls and 5 s; or it shows a change as pending for the longest delay and 5 s, and sends only "
            + "reads, which succeed; or it sends nothing in the 5 s after a change that follows a successful "
            + "exchange. A request in flight counts as an attempt until it ends; a Retry-After, the time after 401 or "
            + "403, and that of a full or slow disk do not count.",
        worlds:
            "Simulated and live. Programs are held to the delays of the reference policy, and only while they show a pending "
            + "change.",
        blindSpots: "Links that alternate faster than these times; changes that wait for a read of more than 5 s.",
        source: "tags s06, s27, s29, s32; the legacy client synchronised only on user actions")

    /// The time within which an attempt follows the end of an outage that the interface has shown.
    static let edgeMax = Nanoseconds.seconds(5)

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            if let found = violation(device, run) ?? stuck(device, run) ?? unsent(device, run) { return found }
        }
        return nil
    }

    // MARK: Pending changes

    /// Returns a change that is pending although the device reads from the server.
    private static func stuck(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        // A program may keep changes for other reasons, and the first version of the client keeps pins.
        guard !device.isProgram, !device.actions.contains(where: { $0.kind == .pin }) else { return nil }
        let allowed = device.policy.longestDelay + edgeMax
        let spans = spans(device, run)
        var floor = Nanoseconds.zero
        var read: Nanoseconds?
        func check(to end: Nanoseconds) -> InvariantViolation? {
            guard let from = read, run.span(from: from, to: end) > allowed,
                !device.isDiskLate(from: run.lastIndex(until: from), to: run.lastIndex(until: end)),
                spans.contains(where: { $0.start.time <= from && $0.end.time >= from + allowed }),
                let row = pendingRow(device, from: from, to: from + allowed)
            else { return nil }
            return InvariantViolation(
                "\(device.name) does not send its change of \(row) in the \(TimeFormat.short(allowed)) after "
                    + "\(RunFacts.text(from)), although it reads from the server",
                at: run.lastIndex(until: from + allowed), of: device.name, row)
        }
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            let isRead =
                exchange.method == "GET" && run.isAnswered(exchange)
                && exchange.receivedStatus.map { $0 < 400 } ?? false
            guard isRead, let end = exchange.end?.time, !exchange.isOnPortal else {
                if let found = check(to: exchange.sentAt) { return found }
                if exchange.receivedStatus == 401 || exchange.receivedStatus == 403 { return nil }
                let end = max(exchange.end?.time ?? Nanoseconds(.max), run.heldUntil(exchange) ?? .zero)
                floor = max(floor, end + (BoundedRetries.retryAfter(exchange, run) ?? .zero))
                read = nil
                continue
            }
            if end - exchange.sentAt > edgeMax {
                // The client waits for a response that a bad link delays. Until it ends, changes may be sent beside it, but
                // after a failure of the path they wait for it, too.
                if let found = check(to: exchange.sentAt) { return found }
                (floor, read) = (max(floor, end), nil)
            }
            if let held = run.heldUntil(exchange) { (floor, read) = (max(floor, held), nil) }
            if end >= floor { read = read ?? end }
        }
        return check(to: run.time(min(run.endIndex, run.history.entries.count)))
    }

    /// A span in which a device can reach the server.
    struct Span {
        let start: RunFacts.Moment
        /// Whether the interface has come up at the start.
        let isEdge: Bool
        var end: RunFacts.Moment
    }

    static func spans(_ device: RunFacts.Device, _ run: RunFacts) -> [Span] {
        let last = RunFacts.Moment(
            index: min(run.endIndex, run.history.entries.count),
            time: run.time(min(run.endIndex, run.history.entries.count)))
        var found: [Span] = []
        var before: RunFacts.NetworkState?
        for state in device.network where state.moment.index < last.index {
            let wasUsable = before.map { $0.isUsable && isAllowed($0, device) } ?? false
            let isUsable = state.isUsable && isAllowed(state, device)
            if wasUsable, !isUsable { found[found.count - 1].end = state.moment }
            if isUsable, !wasUsable {
                let isEdge = before.map { $0.isRunning && !$0.isUp } ?? false
                found.append(Span(start: state.moment, isEdge: isEdge, end: last))
            }
            before = state
        }
        return found
    }

    private static func isAllowed(_ state: RunFacts.NetworkState, _ device: RunFacts.Device) -> Bool {
        !state.isMetered || device.policy.usesMeteredInterfaces
    }

    /// A span of time in which a request is in flight, or a new one is not to be expected.
    private struct Busy {
        let start: Nanoseconds
        var end: Nanoseconds
    }

    private static func violation(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        var busy = device.dials.map { Busy(start: $0.time, end: $0.time) }
        var pause: Nanoseconds?
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            var end = max(exchange.end?.time ?? Nanoseconds(.max), run.heldUntil(exchange) ?? .zero)
            if let floor = BoundedRetries.retryAfter(exchange, run) { end = end + floor }
            if exchange.receivedStatus == 401 || exchange.receivedStatus == 403 { pause = pause ?? end }
            busy.append(Busy(start: exchange.sentAt, end: end))
        }
        for delay in device.diskDelays {
            let end = delay.commit.map { run.time($0) } ?? delay.end?.time ?? Nanoseconds(.max)
            busy.append(Busy(start: delay.start.time, end: end))
        }
        busy.sort { $0.start < $1.start }
        for span in spans(device, run) {
            let limit = span.isEdge && !device.isProgram ? edgeMax : longest(device) + edgeMax
            var idleSince = span.start
            var allowed = limit
            var end = span.start.time
            for attempt in busy where attempt.end >= span.start.time {
                if attempt.start >= span.end.time { break }
                if attempt.start > end,
                    let found = check(idleSince.time, attempt.start, allowed, span, device, pause, run)
                {
                    return found
                }
                if attempt.end > end {
                    end = attempt.end
                    idleSince = RunFacts.Moment(index: span.start.index, time: end)
                    allowed = longest(device) + edgeMax
                }
            }
            if end < span.end.time, let found = check(idleSince.time, span.end.time, allowed, span, device, pause, run)
            {
                return found
            }
        }
        return nil
    }

    /// The longest time between two attempts.
    private static func longest(_ device: RunFacts.Device) -> Nanoseconds {
        max(device.policy.longestDelay, device.policy.poll ?? .zero)
    }

    private static func check(
        _ from: Nanoseconds, _ to: Nanoseconds, _ allowed: Nanoseconds, _ span: Span, _ device: RunFacts.Device,
        _ pause: Nanoseconds?, _ run: RunFacts
    ) -> InvariantViolation? {
        guard run.span(from: from, to: to) > allowed, pause.map({ $0 > from + allowed }) ?? true else { return nil }
        // A client that does not poll has nothing to do without a change.
        let pending = pendingRow(device, from: from, to: from + allowed)
        if device.policy.poll == nil, pending == nil { return nil }
        return InvariantViolation(
            "\(device.name) starts no attempt in the \(TimeFormat.short(allowed)) after \(RunFacts.text(from)), "
                + "although it can reach the server" + (pending.map { " and \($0) is pending" } ?? ""),
            at: run.lastIndex(until: to), of: device.name, pending)
    }
    /// Returns a note that is shown as pending during the whole of a span of time.
    private static func pendingRow(_ device: RunFacts.Device, from: Nanoseconds, to: Nanoseconds) -> String? {
        for (name, changes) in device.rows.sorted(by: { $0.key < $1.key }) {
            guard let state = changes.last(where: { $0.time <= from })?.after, state.icon == .upload,
                !changes.contains(where: { $0.time > from && $0.time <= to && $0.after?.icon != .upload })
            else { continue }
            return name
        }
        return nil
    }
}
