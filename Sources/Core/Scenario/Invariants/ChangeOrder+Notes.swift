/// The order of changes of different notes.
extension ChangeOrder {
    /// The first change of a note since it had no mark.
    private struct Pending {
        let change: ExpectationEvaluator.Change
        let lane: RunFacts.Lane
        /// Whether nothing delays it: it is the only change, and the note's last exchange before has succeeded.
        var isReady: Bool
    }

    /// Returns the first write that a device has sent before an earlier change of another note, which was ready.
    static func overtaken(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if !device.isReference { return nil }
        var pending: [String: Pending] = [:]
        var hasFailed: Set<String> = []
        var changes = run.changes.filter { $0.device == device.name }[...]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            while let change = changes.first, change.acceptedIndex < exchange.sentIndex {
                changes.removeFirst()
                add(change, to: &pending, hasFailed, device, run)
            }
            if let row = exchange.row {
                if RunFacts.isWrite(exchange), let own = pending[row], own.isReady,
                    let found = overtaken(own, by: exchange, row, pending, device, run)
                {
                    return found
                }
                // What has been sent once may be delayed.
                pending[row]?.isReady = false
                let isSuccess = exchange.receivedStatus.map { (200...399).contains($0) } ?? false
                if isSuccess && run.isAnswered(exchange) { hasFailed.remove(row) } else { hasFailed.insert(row) }
            }
        }
        return nil
    }

    private static func add(
        _ change: ExpectationEvaluator.Change, to pending: inout [String: Pending], _ hasFailed: Set<String>,
        _ device: RunFacts.Device, _ run: RunFacts
    ) {
        let (before, after) = (
            device.row(change.row, at: change.startIndex), device.row(change.row, at: change.acceptedIndex)
        )
        let isFirst = before?.icon ?? .plain == .plain
        let isPlain = [.create, .edit, .delete].contains(change.kind)
        pending[change.row] = Pending(
            change: change, lane: run.lane(of: after),
            isReady: isFirst && isPlain && after?.icon == .upload && !hasFailed.contains(change.row))
    }

    private static func overtaken(
        _ own: Pending, by exchange: History.Exchange, _ row: String, _ pending: [String: Pending],
        _ device: RunFacts.Device, _ run: RunFacts
    ) -> InvariantViolation? {
        guard own.lane != .unknown, !run.heldBack.contains(exchange.id) else { return nil }
        let others = pending.filter { $0.key != row && $0.value.isReady && $0.value.lane == own.lane }
        for (other, entry) in others.sorted(by: { $0.key < $1.key }) {
            let (first, second) = (entry.change, own.change)
            // The client has started with both changes in its queue.
            let start = device.starts.last { $0.index > first.startIndex && $0.index < exchange.sentIndex }
            let isRestored = start.map { $0.index > second.acceptedIndex } ?? false
            guard first.acceptedIndex < second.startIndex,
                device.row(other, at: exchange.sentIndex)?.icon == .upload,
                start == nil || isRestored,
                !device.dials.contains(where: {
                    $0.index > first.startIndex && $0.index < exchange.dialIndex ?? exchange.sentIndex
                }),
                // A request that fails before it is recorded changes the belief about connectivity, and so does a start.
                isRestored || !device.beliefs.contains(where: { $0 > first.startIndex && $0 < exchange.sentIndex }),
                isRestored
                    || run.isBlocked(
                        own.lane, nil, of: device, first.startIndex..<second.acceptedIndex, before: exchange.sentIndex)
            else { continue }
            return InvariantViolation(
                "\(device.name) sends \(exchange.method) \(row), changed at \(RunFacts.text(own.change.start)), at "
                    + "\(RunFacts.text(exchange.sentAt)), before its change of \(other) at "
                    + "\(RunFacts.text(entry.change.start))",
                at: exchange.sentIndex, of: device.name, row)
        }
        return nil
    }
}
