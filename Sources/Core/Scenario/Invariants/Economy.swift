internal import Determinism

/// I16: economy.
enum Economy: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A client fetches no body that has not changed, reads one index at a time, and sends nothing on an "
            + "interface that is down or that its policy forbids.",
        violations:
            "A device receives the body of a revision of a note that it had already received, although its user has not "
            + "dismissed a change of the note since; or it sends two requests for the index at the same time; or it "
            + "tries to connect while its interface is down or forbidden; or it sends a text for the first time after "
            + "its user has replaced the text.",
        worlds: "Simulated and live. Attempts of programs to connect are not known.",
        blindSpots:
            "Indexes of the expense app and the reader, which read several things at a time; bodies of indexes; "
            + "revisions of servers without entity tags; requests inside the lifetime of a cache.",
        source: "tags s01, s03, s04, s38, s57; RFC 9111, section 4.3")

    /// The time that a client has to notice that its interface has gone down.
    private static let noticeMax = Nanoseconds.seconds(1)
    /// The time by which two reports of one connection may be out of order in real time.
    private static let slack = Nanoseconds.milliseconds(100)

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            if let found = refetch(device, run) ?? parallelIndex(device, run) ?? forbidden(device, run)
                ?? replacedText(device, run)
            {
                return found
            }
        }
        return nil
    }

    private static func refetch(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        var received: [String: Received] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard let row = exchange.row, let end = exchange.end, !run.heldBack.contains(exchange.id),
                !run.isRestored(exchange)
            else { continue }
            if exchange.method != "GET" {
                // The response to a write may leave the client with another revision.
                received[row] = nil
                continue
            }
            guard exchange.receivedStatus == 200, run.isAnswered(exchange), exchange.fault == nil,
                let revision = exchange.revision
            else { continue }
            // A request that was in flight at the same time could not know what the other one would bring.
            if let before = received[row], before.revision == revision, before.index < exchange.sentIndex,
                !isNew(exchange, since: before, run),
                !isDismissed(row, device, from: before.index, to: exchange.sentIndex),
                !device.starts.contains(where: { $0.index > before.index && $0.index < end.index })
            {
                return InvariantViolation(
                    "\(device.name) fetches revision \(revision) of \(row) at \(RunFacts.text(exchange.sentAt)) again",
                    at: exchange.sentIndex, of: device.name, row)
            }
            received[row] = Received(revision: revision, sentIndex: exchange.sentIndex, index: end.index)
        }
        return nil
    }

    /// A body that a device has received.
    private struct Received {
        let revision: Int
        let sentIndex: Int
        let index: Int
    }

    /// Returns whether a revision may stand for another content than when it was received before, or for another one than
    /// the index has listed meanwhile: revisions of the contract orig begin again after a deletion, and have no order.
    private static func isNew(_ exchange: History.Exchange, since before: Received, _ run: RunFacts) -> Bool {
        guard run.scenario.contract == "orig", let note = run.note(of: exchange) else { return false }
        let wasListed = run.exchanges.contains {
            $0.actor == exchange.actor && $0.method == "GET" && $0.row == nil && run.isAnswered($0)
                && $0.sentIndex < before.index && $0.end.map { $0.index > before.sentIndex } ?? false
        }
        return wasListed
            || run.exchanges(of: note.row, note.user).contains {
                ($0.method == "DELETE" || $0.method == "POST") && RunFacts.isExecuted($0)
                    && $0.arrivedIndex > before.index
            }
    }

    /// Returns whether the user has dismissed a change of a note, whose content the client takes from the server then.
    private static func isDismissed(_ row: String, _ device: RunFacts.Device, from start: Int, to end: Int) -> Bool {
        device.actions.contains { action in
            guard (start..<end).contains(action.moment.index), case .call("dismiss", _) = action.action else {
                return false
            }
            return action.action.subject == row
        }
    }

    private static func parallelIndex(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if device.device.client.app?.vocabulary.habits.contains(.severalLists) == true { return nil }
        var last: History.Exchange?
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard exchange.method == "GET", exchange.row == nil, exchange.contents != nil,
                !run.heldBack.contains(exchange.id)
            else { continue }
            if let last, !device.starts.contains(where: { $0.index > last.sentIndex && $0.index < exchange.sentIndex }),
                last.end?.time ?? Nanoseconds(.max) > exchange.sentAt + slack
            {
                return InvariantViolation(
                    "\(device.name) sends GET index at \(RunFacts.text(exchange.sentAt)), while that of "
                        + "\(RunFacts.text(last.sentAt)) is in flight",
                    at: exchange.sentIndex, of: device.name)
            }
            last = exchange
        }
        return nil
    }

    private static func forbidden(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard device.hasPolicy, !device.isProgram else { return nil }
        var states = device.network[...]
        var state: RunFacts.NetworkState?
        var since = Nanoseconds.zero
        for dial in device.dials {
            while let next = states.first, next.moment.index < dial.index {
                states.removeFirst()
                if isForbidden(next, device) != state.map({ isForbidden($0, device) }) { since = next.moment.time }
                state = next
            }
            guard let state, isForbidden(state, device) else { continue }
            let notice = run.world?.isSimulated == true ? Nanoseconds.zero : noticeMax
            guard run.span(from: since, to: dial.time) > notice else { continue }
            return InvariantViolation(
                "\(device.name) tries to connect at \(RunFacts.text(dial.time)), although its interface is "
                    + "\(state.isUp ? "forbidden" : "down") since \(RunFacts.text(since))",
                at: dial.index, of: device.name)
        }
        return nil
    }

    private static func isForbidden(_ state: RunFacts.NetworkState, _ device: RunFacts.Device) -> Bool {
        !state.isUp || state.isMetered && !device.policy.usesMeteredInterfaces
    }
}
