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
        feed.updateRecording { time in JSONText.object(recording.members(at: time)) }
    }
}

extension LinkRecording {
    /// Returns the recording with its scenario.
    func json(at time: Int64) -> String {
        let proxies = replays(at: time).map { replay in
            let faults = replay.faults.map { fault in
                JSONText.object([
                    ("at", "\(fault.time.count / 1_000_000)"), ("rule", JSONText.string(fault.rule)),
                ])
            }
            return JSONText.object([
                ("proxy", JSONText.string(replay.proxy)), ("timeline", JSONText.string(replay.timeline)),
                ("faults", "[\(faults.joined(separator: ","))]"),
            ])
        }
        return JSONText.object(
            members(at: time) + [
                ("yaml", JSONText.string(yaml(at: time))), ("proxies", "[\(proxies.joined(separator: ","))]"),
            ])
    }

    /// The members of the event `recording`.
    func members(at time: Int64) -> [(key: String, value: String)] {
        [
            ("t", EventText.milliseconds(time)), ("state", ended == nil ? "\"on\"" : "\"off\""),
            ("started", EventText.milliseconds(started)), ("ended", EventText.milliseconds(ended)),
            ("steps", "\(steps)"),
        ]
    }
}
