internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The links of a forward proxy's rules. They have conditions of their own, and share with the device's link its seed,
/// fault rules and observers, and, except for `direct`, its outages.
extension LinkDriver {
    /// The number of exchanges of one link beyond which their numbers meet those of the next link.
    private static let exchangesPerLink = 1_000_000_000
    /// The number of links above which those without connections and rules are removed.
    private static let ruleLinksKeptMax = 64

    /// The links of rules, and that of the bytes inside TLS.
    var otherLinks: [LinkDriver] { ruleLinks.values + (insideLink.map { [$0] } ?? []) }

    /// This link and the others of the proxy.
    var links: [LinkDriver] { [self] + otherLinks }

    /// Returns the link of a rule: one for each treatment with conditions of its own.
    func link(of treatment: HostRules.Treatment, _ conditions: Conditions, _ device: ProxyConfiguration) -> LinkDriver {
        if let driver = ruleLinks[treatment] { return driver }
        let driver = makeLink("\(treatment)", conditions, device)
        driver.onTLS = onTLS
        if treatment != .direct { driver.setOutage(link.outage) }
        ruleLinks[treatment] = driver
        return driver
    }

    /// Returns the link of the bytes inside the TLS that the proxy ends. It has no conditions: the bytes of TLS have
    /// those of the connection's own link.
    func linkInsideTLS(_ device: ProxyConfiguration) -> LinkDriver {
        if let insideLink { return insideLink }
        var device = device
        device.onPacket = nil
        let driver = makeLink("tls", .clear, device, isInsideTLS: true)
        insideLink = driver
        return driver
    }

    /// Creates a link with the seed, the fault rules and the observers of this one.
    private func makeLink(
        _ name: String, _ conditions: Conditions, _ device: ProxyConfiguration, isInsideTLS: Bool = false
    ) -> LinkDriver {
        ruleLinkCount += 1
        var settings = device
        settings.conditions = conditions
        settings.timeline = nil
        settings.toxics = []
        settings.faultRules = []
        settings.seed = seed
        settings.linkName = "\(device.linkName)/\(name)"
        let driver = LinkDriver(
            settings, number: ruleLinkCount, numbers: numbers, origin: origin, isInsideTLS: isInsideTLS, on: eventLoop)
        driver.link.numberExchanges(from: ruleLinkCount * Self.exchangesPerLink)
        driver.onFault = onFault
        for status in faultRules { _ = driver.addFaultRule(status.rule, number: status.number) }
        for observer in observers { driver.attach(observer) }
        return driver
    }

    /// Applies changed rules: sets the conditions of their links, and removes links that are not needed any more.
    ///
    /// - Parameter conditions: Returns the conditions of a treatment; `nil` if no rule has it.
    func rulesChanged(_ conditions: (HostRules.Treatment) -> Conditions?) {
        for (treatment, driver) in ruleLinks {
            if let conditions = conditions(treatment) {
                if conditions != driver.conditions { driver.setConditions(conditions) }
            } else if ruleLinks.count > Self.ruleLinksKeptMax, driver.link.connections.isEmpty,
                driver.link.datagramSessionCount == 0
            {
                ruleLinks[treatment] = nil
                removedTraffic += driver.status().traffic
                driver.shutDown()
            }
        }
    }
}
