internal import LinkModel
public import Scenario

extension SwarmLinks {
    /// The built-in profiles among which an exploration draws.
    public static let builtIn: SwarmLinks = {
        func links(_ names: [String]) -> [Timeline.NamedConditions] {
            names.map { name in
                guard let profile = ProfileCatalogue.builtInProfile(named: name) else {
                    preconditionFailure("no built-in profile is called '\(name)'")
                }
                return Timeline.NamedConditions(profile.id, profile.conditions)
            }
        }
        return SwarmLinks(
            working: links(["wifi", "wifi", "lte", "3g", "3g-lossy", "edge", "very-bad-network", "high-latency-dns"]),
            broken: links(["100-loss", "offline", "dns", "portal"]), oneWay: links(["uplink-loss", "downlink-loss"]),
            silent: links(["100-loss"])[0])
    }()
}
