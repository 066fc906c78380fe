internal import Impairment
internal import LinkModel

/// The fault rules of a link, which those of a forward proxy's rules have too.
extension LinkDriver {
    /// The fault rules with their counts on all links. A rule counts requests on each link by itself.
    var faultRules: [FaultRuleStatus] {
        let others = otherLinks.map(\.faultRules)
        if others.isEmpty { return link.faultRules }
        return link.faultRules.map { rule in
            others.reduce(into: rule) { sum, statuses in
                if let status = statuses.first(where: { $0.number == rule.number }) { sum.addCounts(of: status) }
            }
        }
    }

    /// Whether the link has a fault rule.
    var hasFaultRules: Bool { link.hasFaultRules }

    /// Whether exchanges are read, for fault rules or observers.
    var tracksExchanges: Bool { link.tracksExchanges }

    /// The number of open connections to whose exchanges fault rules do not apply.
    var untrackedConnectionCount: Int {
        // Each connection inside TLS is one of another link, too, where it is not tracked.
        let inside = insideLink?.sessions.all.reduce(0) { $0 + ($1.outside?.flow == nil ? 0 : 1) } ?? 0
        return links.reduce(-inside) { $0 + $1.link.untrackedConnectionCount }
    }

    /// Adds a fault rule, also to the links of rules, and returns its number.
    ///
    /// - Parameter number: See ``Impairment/SharedLink/addFaultRule(_:number:at:)``.
    func addFaultRule(_ rule: FaultRule, number: Int? = nil) -> Result<Int, FaultRuleError> {
        var result = Result<Int, FaultRuleError>.failure(FaultRuleError(reason: "the proxy has stopped"))
        change { link, time in
            do throws(FaultRuleError) {
                result = .success(try link.addFaultRule(rule, number: number, at: time))
            } catch {
                result = .failure(error)
            }
        }
        if case .success(let number) = result {
            for driver in otherLinks { _ = driver.addFaultRule(rule, number: number) }
        }
        faultRulesChanged()
        return result
    }

    /// Removes fault rules; unknown numbers are ignored.
    func removeFaultRules(_ numbers: [Int]) {
        change { link, time in
            for number in numbers { link.removeFaultRule(number, at: time) }
        }
        for driver in otherLinks { driver.removeFaultRules(numbers) }
        faultRulesChanged()
    }

    private func faultRulesChanged() {
        if link.hasFaultRules != (faultReporter != nil) { faultReporter = link.hasFaultRules ? FaultReporter() : nil }
        updateObservation()
    }
}
