internal import Impairment
internal import Synchronization

/// The numbers of faults that have fired, per rule. The proxy's event loop records them.
final class FaultTally: Sendable {
    private let fired = Mutex<[Int: Int]>([:])

    func record(_ event: ExchangeEvent) {
        guard case .faultInjected(_, let rule, _, _) = event else { return }
        fired.withLock { $0[rule, default: 0] += 1 }
    }

    /// Returns an error for each rule that has fired less often than its `times` states.
    func unused(of rules: [FaultRule]) -> [NetworkError] {
        let fired = fired.withLock { $0 }
        return rules.enumerated().compactMap { number, rule in
            let count = fired[number] ?? 0
            return count < rule.times.lowerBound ? .unusedFault(rule, fired: count) : nil
        }
    }
}
