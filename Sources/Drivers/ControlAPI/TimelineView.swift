internal import Determinism
internal import LinkModel
internal import Proxy
internal import Wire

/// The position of a proxy's timeline, as responses show it.
struct TimelineView {
    /// The states of a timeline.
    enum State: String, CaseIterable { case running, paused, stopped }

    let name: String
    let state: State
    let position: TimelineRun.Position?

    /// Creates a view; `nil` if the link of the proxy is not a timeline.
    init?(_ proxy: ManagedProxy, _ status: ProxyStatus?) {
        guard let name = proxy.link.names.timeline else { return nil }
        self.name = name
        position = proxy.pausedTimeline ?? status?.link.timeline
        state = proxy.running == nil ? .stopped : proxy.pausedTimeline == nil ? .running : .paused
    }

    private typealias Next = (name: String, time: Nanoseconds)

    private var next: Next? {
        guard let name = position?.nextName, let time = position?.nextChange else { return nil }
        return (name, time)
    }

    private static let nextShape = JSONShape<Next>([
        .required("link", { $0.name }, .text), .required("in_ms", { $0.time }, .milliseconds()),
    ])

    static let shape = JSONShape<TimelineView>(
        "Timeline",
        [
            .required("timeline", \.name, .text, "The name of the timeline."),
            .required("state", \.state, .word, "stopped: the proxy is disabled."),
            .required(
                "position_ms", \.position?.elapsed, .orNull(.milliseconds(min: nil)),
                "Time since the start of the timeline; negative before an absolute start."),
            .required(
                "round_ms", \.position?.time, .orNull(.milliseconds(min: nil)),
                "Time since the start of the current round of a repeating timeline."),
            .required(
                "link", \.position?.name, .orNull(.text), "The current conditions; during a ramp, its target."),
            .required("ramping", { $0.position?.isRamping == true }, .bool),
            .required(
                "next", \.next, .orNull(nextShape.form),
                "The next change. While the timeline is paused, in_ms does not pass."),
        ])

    /// The position, or `null` without a timeline.
    static let form = JSONForm<TimelineView?>.orNull(shape.form)

    // MARK: Requests

    /// The fields of a change of the position.
    static let changes: [JSONField] = [
        .optional("paused", .bool),
        .optional("position_ms", .number(min: 0, max: Timeline.timeMax.count / 1_000_000)),
    ]

    /// The schema of a change of the position.
    static let change = JSONSchema.object(changes).with(["minProperties": 1])
        .examples(["paused": true], ["position_ms": 20_000, "paused": false]).named("TimelineChange")
}
