internal import Determinism
internal import HTTPTypes
internal import Proxy
internal import Wire

/// The recording of links and faults.
extension ProxyRegistry {
    /// Starts a recording with the present links. It replaces the last one.
    func startRecording() async throws(APIError) {
        if let recording, recording.ended == nil {
            throw APIError(.conflict, "a recording is on; end it with {\"state\": \"off\"}")
        }
        recording = LinkRecording(at: ProcessClock.now)
        publishRecording()
        for name in proxies.keys.sorted() {
            try await withExclusiveAccess(to: name.text, by: .start, waitingMax: .max) { () async throws(APIError) in }
        }
    }

    /// Ends the recording.
    func endRecording() throws(APIError) {
        guard recording != nil else { throw Self.noRecording }
        recording?.end(at: ProcessClock.now)
        publishRecording()
    }

    static let noRecording = APIError(.notFound, "nothing has been recorded; start with {\"state\": \"on\"}")

    /// Records the state of a proxy after a change.
    func record(_ name: ByteKey, _ status: ProxyStatus?) {
        guard let steps = recording?.steps, let proxy = proxies[name] else { return }
        recording?.record(proxy, status, at: ProcessClock.now)
        if recording?.steps != steps { publishRecording() }
    }

    /// Reports the state of the recording to the readers of events.
    func publishRecording() {
        guard let recording, feed.isActive else { return }
        feed.updateRecording { time in LinkRecording.state.json((recording, time)) }
    }
}

extension LinkRecording {
    /// A recording at a time in nanoseconds since 1970.
    typealias Moment = (recording: LinkRecording, time: Int64)

    /// The words for a recording that is on or off.
    private static let states = ["on", "off"]

    /// The fields of a request that starts or ends a recording.
    static let request: [JSONField] = [.required("state", .words(states))]

    /// The event `recording`.
    static let state = JSONShape<Moment>([
        .required("t", { $0.time }, .time),
        .required("state", { $0.recording.ended == nil ? "on" : "off" }, .words(states)),
        .required("started", { $0.recording.started }, .time),
        .required("ended", { $0.recording.ended }, .orNull(.time)),
        .required("steps", { $0.recording.steps }, .count),
    ])

    /// The recording with its scenario.
    static let shape = JSONShape<Moment>(
        "Recording",
        state.members + [
            .required(
                "yaml", { $0.recording.yaml(at: $0.time) }, .orNull(.text),
                "A scenario file; null without proxies, or if a link has a trace."),
            .required(
                "proxies", { $0.recording.replays(at: $0.time) }, .array(of: Replay.shape.form),
                "What each proxy needs for a repetition without a scenario."),
        ])
}

extension LinkRecording.Replay {
    fileprivate static let shape = JSONShape<Self>([
        .required("proxy", \.proxy, .text),
        .required(
            "timeline", \.timeline, .orNull(.text),
            "The links as a timeline file; null if a link has a trace, or if all proxies together have more than "
                + "\(LinkRecording.linksMax) links."),
        .required("faults", \.faults, .array(of: fault.form)),
    ])

    private static let fault = JSONShape<(time: Nanoseconds, rule: String)>([
        .required(
            "at", { $0.time.count / 1_000_000 }, .count,
            "The milliseconds from the start of the recording at which the fault was added."),
        .required("rule", { $0.rule }, .text, "The rule in the syntax of --fault."),
    ])
}
