internal import ArgumentParser
internal import LinkModel

/// The option `--timeline-start`.
struct TimelineStartOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Absolute start of the timeline, such as 2026-03-01T12:00:00Z, for the same position on several machines. "
                + "(default: when it is set)", valueName: "rfc3339-time"),
        transform: { text in
            guard let start = TimelineStart(text) else {
                throw ValidationError("'\(text.prefix(40))' must be \(TimelineStart.expected)")
            }
            return start
        })
    var timelineStart: TimelineStart?

    /// Throws unless there is a timeline to start.
    func check(_ timeline: String?) throws {
        if timelineStart != nil, timeline == nil { throw ValidationError("--timeline-start needs --timeline") }
    }
}
