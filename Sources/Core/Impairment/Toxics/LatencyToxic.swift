internal import Determinism

/// A delay: each chunk leaves `latency` ± up to `jitter` after its arrival. Chunks stay in order, and the throughput is
/// not limited.
struct LatencyToxic: ToxicMachine {
    let latency: Nanoseconds
    /// The maximum offset in milliseconds.
    let jitter: Int64
    var random: RandomStream
    /// The time at which the first chunk leaves, once its jitter has been drawn.
    private var deadline: Instant?

    init(latency: Int64, jitter: Int64, random: RandomStream) {
        // A negative latency is kept, because the sum with the jitter may be positive.
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

    /// Returns the latency plus a random offset from -`jitter` to below +`jitter`, at least 0.
    private mutating func delay() -> Nanoseconds {
        guard jitter > 0 else { return max(.zero, latency) }
        return max(.zero, latency + .milliseconds(random.integer(below: 2 * jitter) - jitter))
    }
}
