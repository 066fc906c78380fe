internal import Determinism

/// I7: order.
enum ChangeOrder: InvariantCheck {
    static let rule = InvariantRule(
        rule: "Changes of a note reach the server in the order in which its user has made them, and none before the "
            + "note exists there.",
        violations: "A device sends a change of a new note before the creation of the note was acknowledged; or it "
            + "sends a write of a note while its earlier one is in flight; or the server has executed an older text "
            + "of a user after a newer one; or of two changes that were made while "
            + "another write was in flight, or that were in its queue when it started, a device sends the later one first.",
        worlds:
            "Simulated and live. The order of texts is checked where the contents of requests are recorded, not for programs.",
        blindSpots: "The order of changes of different notes that wait for other reasons, and all changes of "
            + "programs; two changes with the same text; notes that a user has restored under another identifier.",
        source: "tags s06, s10, s14")

    /// The time by which two reports of one connection may be out of order in real time.
    private static let slack = Nanoseconds.milliseconds(100)

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            if let found = orphan(device, run) ?? overlap(device, run) ?? older(device, run) ?? overtaken(device, run) {
                return found
            }
        }
        return nil
    }

    private static func orphan(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        for change in run.changes where change.device == device.name && change.kind == .create {
            let own = run.exchanges(of: change.row, device.device.user).filter { $0.actor == device.name }
            guard let first = own.first(where: { ["PUT", "PATCH", "DELETE"].contains($0.method) }) else { continue }
            let isSent = own.contains {
                $0.method == "POST" && $0.arrivedAt != nil && $0.arrivedIndex < first.sentIndex
            }
            let isAcknowledged = own.contains { exchange in
                guard let end = exchange.end, let status = exchange.receivedStatus, !exchange.isOnPortal else {
                    return false
                }
                return (200...299).contains(status) && end.time <= first.sentAt + slack
            }
            if isSent && isAcknowledged { continue }
            return InvariantViolation(
                "\(device.name) sends \(first.method) \(change.row) at \(RunFacts.text(first.sentAt)), "
                    + "before its creation \(isSent ? "was acknowledged" : "has reached the server")",
                at: first.sentIndex, of: device.name, change.row)
        }
        return nil
    }

    private static func overlap(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        var last: [String: History.Exchange] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            // The writes of a restored note may be those of the deleted one.
            guard let row = exchange.row, RunFacts.isWrite(exchange), !run.isRestored(exchange) else { continue }
            if let before = last[row], !device.starts.contains(where: { $0.index > before.sentIndex }) {
                let end = before.end?.time ?? Nanoseconds(.max)
                if end > exchange.sentAt + slack {
                    return InvariantViolation(
                        "\(device.name) sends \(exchange.method) \(row) at \(RunFacts.text(exchange.sentAt)), while its "
                            + "\(before.method) of \(RunFacts.text(before.sentAt)) is in flight",
                        at: exchange.sentIndex, of: device.name, row)
                }
            }
            last[row] = exchange
        }
        return nil
    }

    private static func older(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if device.isProgram { return nil }
        // The position of each text among the user's changes of its note; `nil` for a text that occurs again.
        var positions: [String: [UInt64: Int?]] = [:]
        for (position, change) in run.changes.enumerated() where change.device == device.name {
            guard let digest = run.textDigest(device.row(change.row, at: change.acceptedIndex)) else { continue }
            let isNew = positions[change.row]?.index(forKey: digest) == nil
            positions[change.row, default: [:]].updateValue(isNew ? position : nil, forKey: digest)
        }
        var newest: [String: Int] = [:]
        var writes: Set<ExpectationEvaluator.Write> = []
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard let row = exchange.row, RunFacts.isWrite(exchange), RunFacts.isExecuted(exchange),
                let text = exchange.contents?.text, let position = positions[row]?[text] ?? nil,
                writes.insert(ExpectationEvaluator.Write(exchange)).inserted
            else { continue }
            if position < newest[row] ?? 0 {
                return InvariantViolation(
                    "the server has executed \(exchange.method) \(row) of \(device.name) at \(RunFacts.text(exchange.sentAt)) "
                        + "with an older text than a write before it",
                    at: exchange.sentIndex, of: device.name, row)
            }
            newest[row] = position
        }
        return nil
    }
}
