internal import CommandSupport
internal import ConfigFiles
internal import LinkModel
internal import Proxy

/// The conditions with which a proxy or a model starts.
enum LinkSource: Sendable {
    /// Conditions that do not change, with their name, and the name of their profile if they are those of one.
    case constant(Conditions, name: String, profile: String?)
    /// Conditions that follow a timeline.
    case timeline(TimelineFile)
    /// No conditions.
    case unconditioned

    /// The name of the conditions.
    var name: String {
        switch self {
        case .constant(_, let name, _): name
        case .timeline(let file): file.id
        case .unconditioned: "none"
        }
    }

    /// The conditions in words.
    var text: String {
        switch self {
        case .constant(let conditions, let name, _): "profile \(name) (\(Units.conditions(conditions)))"
        case .timeline(let file): "timeline \(file.id)" + (file.start.map { ", start \($0)" } ?? "")
        case .unconditioned: "no conditions"
        }
    }

    /// The name of the profile, if the conditions are those of one.
    var profile: String? {
        if case .constant(_, _, let profile) = self { return profile }
        return nil
    }

    /// The timeline, if the conditions follow one.
    var timeline: TimelineFile? {
        if case .timeline(let file) = self { return file }
        return nil
    }

    /// Returns the conditions with an absolute start of their timeline.
    func starting(at start: TimelineStart?) -> LinkSource {
        guard case .timeline(var file) = self else { return self }
        file.start = start
        return .timeline(file)
    }

    /// The reason why no connection to a server is possible at some time, with a remedy; `nil` if one always is.
    var connectionProblem: String? {
        let links: [(name: String, conditions: Conditions)] =
            switch self {
            case .constant(let conditions, let name, _): [(name, conditions)]
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
        case .constant(let conditions, _, _): configuration.conditions = conditions
        case .timeline(let file): (configuration.timeline, configuration.timelineStart) = (file.timeline, file.start)
        case .unconditioned: break
        }
    }
}
