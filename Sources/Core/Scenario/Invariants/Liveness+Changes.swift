internal import Determinism

/// Changes that nothing delays.
extension Liveness {
    /// Returns a change that a device does not send at once, although its last exchange has succeeded and nothing is in
    /// flight.
    static func unsent(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard device.isReference, !device.actions.contains(where: { $0.kind == .pin }) else { return nil }
        let spans = spans(device, run)
        var floor = Nanoseconds.zero
        var last: History.Exchange?
        var rest = device.exchanges[...]
        var isBusyUntil = -1
        for change in run.changes where change.device == device.name {
            while let index = rest.first, run.exchanges[index].sentIndex < change.acceptedIndex {
                rest.removeFirst()
                let exchange = run.exchanges[index]
                if exchange.receivedStatus == 401 || exchange.receivedStatus == 403 { return nil }
                let end = max(exchange.end?.time ?? Nanoseconds(.max), run.heldUntil(exchange) ?? .zero)
                floor = max(floor, end + (BoundedRetries.retryAfter(exchange, run) ?? .zero))
                isBusyUntil = max(isBusyUntil, exchange.end?.index ?? .max)
                last = exchange
            }
            let accepted = run.time(change.acceptedIndex)
            guard [.create, .edit, .delete].contains(change.kind), floor < accepted,
                isBusyUntil < change.startIndex, let last, hasSucceeded(last, run),
                device.row(change.row, at: change.startIndex)?.icon ?? .plain == .plain,
                device.row(change.row, at: change.acceptedIndex)?.icon == .upload,
                !device.dials.contains(where: { $0.index > isBusyUntil && $0.index < change.acceptedIndex }),
                let span = spans.first(where: {
                    $0.start.index < last.sentIndex && $0.end.index > change.acceptedIndex
                })
            else { continue }
            let sent = rest.first.map { run.exchanges[$0].sentAt } ?? Nanoseconds(.max)
            let dial = device.dials.first { $0.index > change.acceptedIndex }?.time ?? Nanoseconds(.max)
            let end = min(sent, dial, span.end.time)
            guard run.span(from: accepted, to: end) > edgeMax,
                !device.isDiskLate(from: change.startIndex, to: run.lastIndex(until: accepted + edgeMax)),
                !(device.rows[change.row] ?? []).contains(where: {
                    $0.index > change.acceptedIndex && $0.time <= accepted + edgeMax && $0.after?.icon != .upload
                })
            else { continue }
            return InvariantViolation(
                "\(device.name) sends nothing in the \(TimeFormat.short(edgeMax)) after its user \(change.kind.verb) "
                    + "\(change.row) at \(RunFacts.text(change.start)), although its last exchange has succeeded",
                at: run.lastIndex(until: accepted + edgeMax), of: device.name, change.row)
        }
        return nil
    }

    private static func hasSucceeded(_ exchange: History.Exchange, _ run: RunFacts) -> Bool {
        run.isAnswered(exchange) && exchange.fault == nil
            && exchange.receivedStatus.map { (200...399).contains($0) } ?? false
    }
}
