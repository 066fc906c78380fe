internal import Determinism

/// Repetitions that the policy does not allow, and delays without chance.
extension BoundedRetries {
    // MARK: Rejected writes

    /// Statuses that reject a request for good (RFC 9110, section 15.5).
    private static let rejections: Set<Int> = [405, 410, 413, 414, 415, 422, 428]

    /// Returns the first write of a device that the server had rejected before, and that nobody has changed since.
    static func repetition(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if !device.isReference { return nil }
        var rejected: [ExpectationEvaluator.Write: Int] = [:]
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            guard let row = exchange.row, RunFacts.isWrite(exchange) else { continue }
            let write = ExpectationEvaluator.Write(exchange)
            if let end = rejected[write], end < exchange.sentIndex, !run.heldBack.contains(exchange.id),
                !device.starts.contains(where: { $0.index > end && $0.index < exchange.sentIndex }),
                !device.actions.contains(where: {
                    $0.moment.index > end && $0.moment.index < exchange.sentIndex && $0.mayChange(row)
                })
            {
                return InvariantViolation(
                    "\(device.name) sends \(exchange.method) \(row) again at \(RunFacts.text(exchange.sentAt)), although "
                        + "the server has rejected it at \(run.text(at: end))",
                    at: exchange.sentIndex, of: device.name, row)
            }
            guard let end = exchange.end, let status = exchange.receivedStatus, !exchange.isOnPortal,
                !run.mayBeUnread(exchange), isRejection(status, exchange)
            else { continue }
            rejected[write] = end.index
        }
        return nil
    }

    private static func isRejection(_ status: Int, _ exchange: History.Exchange) -> Bool {
        // The original server rejects the creation of an existing note with 400.
        rejections.contains(status) || status == 400 && exchange.method != "POST"
            || status == 404 && exchange.method == "PUT"
    }

    // MARK: Random delays

    /// The number of equal delays in a row that are no coincidence, and the greatest difference of equal ones. The delays
    /// of a client that draws them from half of the longest delay, at least 1 s, are so with a probability below 1e-10.
    private static let equalDelaysMin = 5
    private static let differenceMax = Nanoseconds.milliseconds(1)

    /// Returns the first series of attempts to connect in an outage whose delays are not random.
    static func regularDelays(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        guard device.hasPolicy, device.isReference, device.policy.longestDelay >= .seconds(2) else { return nil }
        let breaks =
            (device.actions.map(\.moment.index) + device.network.map(\.moment.index) + device.starts.map(\.index))
            .sorted()
        for outage in outages(device) where !outage.isFlap {
            var last: (dial: RunFacts.Moment, gap: Nanoseconds?)?
            var count = 1
            for dial in device.dials where dial.time >= outage.start.time && dial.time < outage.end {
                guard let (before, lastGap) = last, !hasBreak(breaks, before.index, dial.index) else {
                    last = (dial, nil)
                    continue
                }
                let gap = dial.time - before.time
                // Connections side by side, after a response that was on its way when the outage began.
                if gap == .zero { continue }
                let isEqual = lastGap.map { max(gap - $0, $0 - gap) <= differenceMax } ?? false
                count = isEqual ? count + 1 : 1
                last = (dial, gap)
                guard count >= equalDelaysMin else { continue }
                return InvariantViolation(
                    "\(device.name) tries to connect \(count) times in a row after \(TimeFormat.duration(gap)), up to "
                        + "\(RunFacts.text(dial.time)), without any random part of the delays",
                    at: dial.index, of: device.name)
            }
        }
        return nil
    }
}
