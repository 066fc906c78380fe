internal import ConfigFiles
internal import Determinism

/// The position of a running or paused timeline. The caller supplies the times of a monotonic clock.
struct TimelinePlayback {
    let file: TimelineFile
    private var offset: Nanoseconds
    /// The start of the current run; `nil` while paused.
    private var startTime: ContinuousClock.Instant?

    /// Starts at a position, which is negative before an absolute start.
    init(_ file: TimelineFile, from position: Nanoseconds = .zero, startingAt now: ContinuousClock.Instant) {
        self.file = file
        offset = position
        startTime = now
    }

    /// Returns the elapsed time of the timeline.
    func position(at now: ContinuousClock.Instant) -> Nanoseconds {
        guard let startTime else { return offset }
        return offset + Nanoseconds(now - startTime)
    }

    mutating func pause(at now: ContinuousClock.Instant) {
        offset = position(at: now)
        startTime = nil
    }

    mutating func resume(from position: Nanoseconds, at now: ContinuousClock.Instant) {
        offset = position
        startTime = now
    }
}
