internal import Determinism

/// A delay: each chunk leaves a fixed time, varied by the jitter, after its arrival, in order; the throughput stays the
/// same.
struct LatencyToxic: ToxicMachine {
    let latency: Nanoseconds
    /// In whole milliseconds.
    let jitter: Int64
    var random: RandomStream
    /// The time at which the first chunk leaves, once its jitter has been drawn.
    private var deadline: Instant?

    init(latency: Int64, jitter: Int64, random: RandomStream) {
        // The jitter may make a negative latency positive.
        self.latency = .milliseconds(min(max(-Toxic.millisecondsMax, latency), Toxic.millisecondsMax))
        self.jitter = min(max(0, jitter), Toxic.millisecondsMax)
        self.random = random
    }

    var chunksMax: Int { Toxic.latencyChunksMax }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        let deadline = self.deadline ?? first.arrival + delay()
        if deadline > now {
            self.deadline = deadline
            return .wait(until: deadline)
        }
        self.deadline = nil
        return input.take().map { .pass($0) } ?? .idle
    }

    /// Draws the latency plus -`jitter` up to, not including, +`jitter`; never less than 0.
    private mutating func delay() -> Nanoseconds {
        guard jitter > 0 else { return max(.zero, latency) }
        return max(.zero, latency + .milliseconds(random.integer(below: 2 * jitter) - jitter))
    }
}
