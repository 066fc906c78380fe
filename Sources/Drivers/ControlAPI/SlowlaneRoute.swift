internal import HTTPTypes

/// A route under `/slowlane/v1`.
enum SlowlaneRoute: CaseIterable {
    case version, openAPI, metrics, profiles, proxy, link, timeline, outage, seed, faults, fault, rules, hosts,
        connections, connection, events, reset, recording

    /// The path below `/slowlane/v1`, with the names of variable segments in braces.
    var template: String {
        switch self {
        case .version: "version"
        case .openAPI: "openapi.json"
        case .metrics: "metrics"
        case .profiles: "profiles"
        case .proxy: "proxies/{proxy}"
        case .link: "proxies/{proxy}/link"
        case .timeline: "proxies/{proxy}/timeline"
        case .outage: "proxies/{proxy}/outage"
        case .seed: "proxies/{proxy}/seed"
        case .faults: "proxies/{proxy}/faults"
        case .fault: "proxies/{proxy}/faults/{fault}"
        case .rules: "proxies/{proxy}/rules"
        case .hosts: "proxies/{proxy}/hosts"
        case .connections: "proxies/{proxy}/connections"
        case .connection: "proxies/{proxy}/connections/{number}"
        case .events: "events"
        case .reset: "reset"
        case .recording: "recording"
        }
    }

    /// The methods of the route.
    var methods: [HTTPRequest.Method] {
        switch self {
        case .version, .openAPI, .metrics, .profiles, .proxy: [.get]
        case .link: [.get, .put, .delete]
        case .timeline: [.get, .patch]
        case .outage: [.get, .put, .delete]
        case .seed: [.get, .put]
        case .faults: [.get, .post, .delete]
        case .fault: [.get, .delete]
        case .rules: [.get, .put, .delete]
        case .hosts: [.get]
        case .connections: [.get, .delete]
        case .connection: [.delete]
        case .events: [.get]
        case .reset: [.post]
        case .recording: [.get, .post]
        }
    }

    /// Returns the route of a path below `/slowlane/v1` and the values of its variable segments.
    static func match(_ parts: ArraySlice<String>) -> (route: SlowlaneRoute, values: [String])? {
        for route in allCases {
            let segments = route.template.split(separator: "/")
            guard segments.count == parts.count else { continue }
            var values: [String] = []
            let matches = zip(segments, parts).allSatisfy { segment, part in
                guard segment.first == "{" else { return segment.utf8.elementsEqual(part.utf8) }
                values.append(part)
                return true
            }
            if matches { return (route, values) }
        }
        return nil
    }
}
