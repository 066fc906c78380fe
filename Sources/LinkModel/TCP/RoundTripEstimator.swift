/// SRTT, RTTVAR and the retransmission time-out: Jacobson's estimator with Linux's details (`tcp_rtt_estimator`).
///
/// The mean deviation grows at once and falls slowly; within one window only its maximum counts, and it never counts
/// less than the floor. RTO = SRTT + max(4 RTTVAR, 200 ms), so 3 RTT after the handshake and SRTT + 200 ms when steady.
struct RoundTripEstimator: Sendable {
    /// Smoothed round trip; zero before the first sample.
    private(set) var smoothed: Int64 = 0
    /// Mean deviation, times four.
    private var deviation: Int64 = 0
    private var deviationMax: Int64 = 0
    /// The variance term of the RTO, 4 RTTVAR.
    private(set) var variance: Int64 = 0
    /// The window that ``deviationMax`` is about ends with this byte.
    private var windowEnd: Int64 = 0
    /// The shortest round trip seen.
    private(set) var shortest: Int64 = .max
    /// The time-out, doubled on each expiry.
    private(set) var timeout: Int64
    private let stack: StackPreset

    /// A round trip counts as a microsecond at least, and at most as 13 days, so that its multiples stay within 64 bits.
    static let samples: ClosedRange<Int64> = 1000...1 << 50

    init(_ stack: StackPreset) {
        self.stack = stack
        timeout = Nanoseconds.seconds(1).count  // TCP_TIMEOUT_INIT, RFC 6298 2.1
    }

    var hasSample: Bool { smoothed > 0 }

    /// Takes the round trip of something acknowledged.
    mutating func take(_ sample: Int64, acknowledged: Int64, next: Int64) {
        let sample = sample.clamped(to: Self.samples)
        if smoothed == 0 {
            smoothed = sample
            deviation = 2 * sample
            variance = max(deviation, stack.rtoVarianceMin.count)
            deviationMax = variance
            windowEnd = next
        } else {
            var error = sample - smoothed
            smoothed += error / 8
            if error < 0 {
                // A fall in the round trip is no sign of variance: it counts an eighth.
                error = -error - deviation / 4
                if error > 0 { error /= 8 }
            } else {
                error -= deviation / 4
            }
            deviation += error
            if deviation > deviationMax {
                deviationMax = deviation
                if deviationMax > variance { variance = deviationMax }
            }
            if acknowledged > windowEnd {
                if deviationMax < variance { variance -= (variance - deviationMax) / 4 }
                windowEnd = next
                deviationMax = stack.rtoVarianceMin.count
            }
        }
        setTimeout()
    }

    /// Takes the shortest of the segments acknowledged together.
    mutating func takeShortest(_ sample: Int64) { shortest = min(shortest, sample.clamped(to: Self.samples)) }

    /// The handshake gave no sample.
    mutating func fallBack() {
        guard smoothed == 0 else { return }
        variance = stack.rtoFallback.count
        deviation = variance
        deviationMax = variance
        timeout = variance
    }

    /// A timer has expired: the next waits twice as long.
    mutating func backOff() { timeout = min(timeout * 2, stack.rtoMax.count) }

    private mutating func setTimeout() {
        timeout = min(max(smoothed + variance + stack.rtoSlop.count, stack.rtoMin.count), stack.rtoMax.count)
        if stack.hasTimerWheel { timeout = (timeout + Wheel.jiffy.count - 1) / Wheel.jiffy.count * Wheel.jiffy.count }
    }
}
