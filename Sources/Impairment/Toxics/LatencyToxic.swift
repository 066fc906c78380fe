internal import LinkModel

/// Each chunk leaves a while after it came, in order: the stream is late, and as fast as before.
struct LatencyToxic: ToxicMachine {
    let latency: Nanoseconds
    /// In whole milliseconds.
    let jitter: Int64
    var chance: RandomStream
    /// When the first chunk leaves, once that has been drawn.
    private var due: Instant?

    init(latency: Int64, jitter: Int64, chance: RandomStream) {
        // Less than nothing may still be made up for by jitter.
        self.latency = .milliseconds(min(max(-Toxic.millisecondsMax, latency), Toxic.millisecondsMax))
        self.jitter = min(max(0, jitter), Toxic.millisecondsMax)
        self.chance = chance
    }

    var chunksMax: Int { Toxic.latencyChunksMax }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        let due = self.due ?? first.arrival + delay()
        if due > now {
            self.due = due
            return .wait(until: due)
        }
        self.due = nil
        return input.take().map { .pass($0) } ?? .idle
    }

    /// From `-jitter` up to, not including, `+jitter` beside the latency; never less than none.
    private mutating func delay() -> Nanoseconds {
        guard jitter > 0 else { return max(.zero, latency) }
        return max(.zero, latency + .milliseconds(chance.integer(below: 2 * jitter) - jitter))
    }
}
