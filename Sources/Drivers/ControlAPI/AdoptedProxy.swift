public import ConfigFiles
public import Determinism
internal import HTTPTypes
internal import Impairment
public import LinkModel
public import Proxy
internal import Wire

/// A proxy of an ``API`` that runs elsewhere, such as that of `slowlane proxy`: the API changes and observes it, and
/// does not stop it.
///
/// Changes by the owner use these methods, so that the API knows them.
public struct AdoptedProxy: Sendable {
    private let registry: ProxyRegistry
    private let name: String

    fileprivate init(_ registry: ProxyRegistry, _ name: String) {
        self.registry = registry
        self.name = name
    }

    /// Sets constant conditions.
    ///
    /// - Parameter profile: The name of the profile; `nil` if the conditions have none.
    public func setConditions(_ conditions: Conditions, profile: String?) async {
        try? await registry.setLink(.constant(conditions, profile: profile), of: name)
    }

    /// Starts a timeline at a position.
    public func startTimeline(_ file: TimelineFile, from position: Nanoseconds) async {
        try? await registry.setLink(.timeline(file), of: name)
        if position > .zero { try? await registry.setTimeline(paused: false, position: position, of: name) }
    }

    /// Pauses the timeline.
    public func pauseTimeline() async { try? await registry.setTimeline(paused: true, position: nil, of: name) }

    /// Starts or ends an outage in each direction.
    public func setOutage(_ outage: PerDirection<Bool>) async { try? await registry.setOutage(outage, of: name) }

    /// Reports that fault rules have been added to the running proxy, or removed from it.
    public func faultsChanged() async { await registry.updateFaults(of: name) }

    /// Reports that the rules of the running proxy have been changed.
    public func forwardChanged() async { await registry.updateForward(of: name) }

    /// The name of the conditions: a profile, a timeline, `custom` or `none`.
    public var conditionsName: String {
        get async {
            guard let link = await registry.link(of: name) else { return "none" }
            switch link {
            case .timeline(let file): return file.id
            case .constant(let conditions, let profile): return profile ?? (conditions.isClear ? "none" : "custom")
            }
        }
    }
}

extension API {
    /// Adds a running proxy, under the name that it gets in the API.
    ///
    /// - Parameters:
    ///   - profile: The name of the profile with which it was started, if it was one.
    ///   - timeline: The timeline with which it was started, if it was one.
    ///   - forward: The settings of a forward proxy; `nil` for a proxy of one upstream.
    ///   - interception: The interception of TLS; `nil` for none.
    ///   - protocols: The protocols that the proxy forwards.
    public func adopt(
        _ proxy: Proxy, named name: String, upstream: String, conditions: Conditions, profile: String?,
        timeline: TimelineFile?, seed: UInt64, forward: ForwardSettings? = nil,
        interception: Interception? = nil, protocols: ForwardedProtocols = .tcp
    ) async -> AdoptedProxy {
        let link = timeline.map { LinkSetting.timeline($0) } ?? .constant(conditions, profile: profile)
        var managed = ManagedProxy(
            name: name, listen: "\(proxy.address)", upstream: upstream, link: link, seed: seed, forward: forward)
        managed.protocols = protocols
        managed.interception = interception.map { InterceptionRequest($0) }
        managed.authority = interception?.authority
        managed.running = proxy
        managed.isEnabled = true
        managed.isAdopted = true
        managed.startCount = 1
        await registry.adopt(managed)
        return AdoptedProxy(registry, name)
    }
}

extension ProxyRegistry {
    func adopt(_ proxy: ManagedProxy) async {
        proxies[ByteKey(proxy.name)] = proxy
        await updateFaults(of: proxy.name)
    }

    func link(of name: String) -> LinkSetting? { proxies[ByteKey(name)]?.link }

    /// Adopts the fault rules of the running proxy that were added without the API.
    func updateFaults(of name: String) async {
        try? await withExclusiveAccess(to: name) { () async throws(APIError) in
            guard let proxy = proxies[ByteKey(name)], let running = proxy.running else { return }
            let rules = await running.faultRules()
            var faults = proxy.faults.filter { fault in rules.contains { $0.number == fault.number } }
            for rule in rules where !faults.contains(where: { $0.number == rule.number }) {
                faults.append(StoredFault(rule.rule, number: rule.number, names: faults.map(\.name)))
            }
            proxies[ByteKey(name)]?.faults = faults
        }
    }

    /// The error of a change that only the owner of an adopted proxy can make.
    static let isAdopted = APIError(
        .conflict, "this proxy belongs to 'slowlane proxy'; its addresses and its end are not changed here")
}
