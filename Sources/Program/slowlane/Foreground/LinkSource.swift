internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import Proxy

/// The conditions with which a proxy or a model starts.
enum LinkSource: Sendable {
    /// Conditions that do not change, with the name of a profile or `netem`.
    case constant(Conditions, name: String)
    /// Conditions that follow a timeline.
    case timeline(TimelineFile)
    /// No conditions.
    case unconditioned

    /// The name of the conditions.
    var name: String {
        switch self {
        case .constant(_, let name): name
        case .timeline(let file): file.id
        case .unconditioned: "none"
        }
    }

    /// The conditions in words.
    var text: String {
        switch self {
        case .constant(let conditions, let name): "profile \(name) (\(Units.conditions(conditions)))"
        case .timeline(let file): "timeline \(file.id)"
        case .unconditioned: "no conditions"
        }
    }

    /// The name of the profile, if the conditions are those of one.
    var profileName: String? {
        if case .constant(_, let name) = self, name != "netem" { return name }
        return nil
    }

    /// The timeline, if the conditions follow one.
    var timeline: TimelineFile? {
        if case .timeline(let file) = self { return file }
        return nil
    }

    /// The reason why no connection to a server is possible at some time, with a remedy; `nil` if one always is.
    var connectionProblem: String? {
        let links: [(name: String, conditions: Conditions)] =
            switch self {
            case .constant(let conditions, let name): [(name, conditions)]
            case .timeline(let file): file.timeline.links.map { ($0.name, $0.conditions) }
            case .unconditioned: []
            }
        return links.first { $0.conditions.connectionPolicy != .open }.map { name, conditions in
            "'\(name)': no connection to the server is possible (\(Units.conditions(conditions))); "
                + "choose a profile that lets connections through"
        }
    }

    /// Sets the conditions of a proxy.
    func apply(to configuration: inout ProxyConfiguration) {
        switch self {
        case .constant(let conditions, _): configuration.conditions = conditions
        case .timeline(let file): configuration.timeline = file.timeline
        case .unconditioned: break
        }
    }
}
