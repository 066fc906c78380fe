/// Texts that need not be sent.
extension Economy {
    /// Returns the first request of a device with a text that its user had replaced before the request can have been
    /// prepared: changes that were never sent are merged.
    static func replacedText(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if !device.isReference { return nil }
        var changes: [String: [(text: UInt64?, change: ExpectationEvaluator.Change)]] = [:]
        for change in run.changes where change.device == device.name {
            let text = run.textDigest(device.row(change.row, at: change.acceptedIndex))
            changes[change.row, default: []].append((text, change))
        }
        var sent: Set<ExpectationEvaluator.Write> = []
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard let row = exchange.row, RunFacts.isWrite(exchange), let text = exchange.contents?.text,
                sent.insert(ExpectationEvaluator.Write(exchange)).inserted, !run.heldBack.contains(exchange.id),
                let own = changes[row],
                let position = own.lastIndex(where: {
                    $0.text == text && $0.change.startIndex < exchange.sentIndex
                }), position + 1 < own.count
            else { continue }
            let (first, next) = (own[position].change, own[position + 1].change)
            let changes = first.startIndex..<next.acceptedIndex
            guard next.acceptedIndex < exchange.sentIndex,
                run.isBlocked(
                    run.lane(of: device.row(row, at: first.acceptedIndex)), row, of: device, changes,
                    before: exchange.sentIndex) || isOffline(device, changes),
                !device.starts.contains(where: { $0.index > first.startIndex && $0.index < exchange.sentIndex })
            else { continue }
            return InvariantViolation(
                "\(device.name) sends \(exchange.method) \(row) at \(RunFacts.text(exchange.sentAt)) with a text that its "
                    + "user had replaced at \(run.text(at: next.acceptedIndex))",
                at: exchange.sentIndex, of: device.name, row)
        }
        return nil
    }

    /// Returns whether the interface of a device is down from one entry to another.
    private static func isOffline(_ device: RunFacts.Device, _ entries: Range<Int>) -> Bool {
        guard let first = device.network.last(where: { $0.moment.index < entries.lowerBound }), !first.isUp else {
            return false
        }
        return !device.network.contains { entries.contains($0.moment.index) && $0.isUp }
    }
}
