internal import ConfigFiles
internal import LinkModel

/// How far a timeline has got, by the real clock.
struct TimelineCourse {
    let file: TimelineFile
    private var offset = Nanoseconds.zero
    /// Since when it runs; `nil` while it stands still.
    private var since: ContinuousClock.Instant? = .now

    init(_ file: TimelineFile) { self.file = file }

    var isPaused: Bool { since == nil }

    /// How much of it has passed.
    var position: Nanoseconds {
        guard let since else { return offset }
        return offset + Nanoseconds(ContinuousClock.now - since)
    }

    mutating func pause() {
        offset = position
        since = nil
    }

    mutating func resume(at position: Nanoseconds) {
        offset = position
        since = .now
    }
}
