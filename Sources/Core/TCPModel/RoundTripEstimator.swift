internal import Determinism

/// The estimator of SRTT, RTTVAR and the retransmission timeout (RTO): Jacobson's algorithm with Linux's details
/// (`tcp_rtt_estimator`).
///
/// RTTVAR rises at once with the mean deviation. Once per window of data it falls by a quarter of its distance to the
/// maximum of the deviation in that window. RTO = SRTT + max(4 RTTVAR, 200 ms). After the first sample R this is three
/// times R, but at least R + 200 ms; with a constant round trip it falls to SRTT + 200 ms.
struct RoundTripEstimator: Sendable {
    /// The smoothed round trip; zero before the first sample.
    private(set) var srtt: Int64 = 0
    /// Four times the mean deviation (`mdev_us`).
    private var mdev: Int64 = 0
    private var mdevMax: Int64 = 0
    /// The variance term of the RTO, 4 RTTVAR (`rttvar_us`).
    private(set) var rttvar: Int64 = 0
    /// The end of the window over which ``mdevMax`` is measured (`rtt_seq`).
    private var windowEnd: Int64 = 0
    /// The minimum round trip.
    private(set) var minRTT: Int64 = .max
    /// The retransmission timeout, doubled on each expiry.
    private(set) var rto: Int64
    private let stack: StackPreset

    /// The range to which samples are clamped: from 1 µs to 13 days, so that their multiples fit into 64 bits.
    static let samples: ClosedRange<Int64> = 1000...1 << 50

    init(_ stack: StackPreset) {
        self.stack = stack
        rto = Nanoseconds.seconds(1).count  // TCP_TIMEOUT_INIT, RFC 6298 2.1
    }

    var hasSample: Bool { srtt > 0 }

    /// Adds the round trip of an acknowledged segment.
    mutating func addSample(_ sample: Int64, sndUna: Int64, sndNxt: Int64) {
        let sample = sample.clamped(to: Self.samples)
        if srtt == 0 {
            srtt = sample
            mdev = 2 * sample
            rttvar = max(mdev, stack.rtoVarianceMin.count)
            mdevMax = rttvar
            windowEnd = sndNxt
        } else {
            var error = sample - srtt
            srtt += error / 8
            if error < 0 {
                // A shorter round trip raises the deviation with an eighth of the usual gain.
                error = -error - mdev / 4
                if error > 0 { error /= 8 }
            } else {
                error -= mdev / 4
            }
            mdev += error
            if mdev > mdevMax {
                mdevMax = mdev
                if mdevMax > rttvar { rttvar = mdevMax }
            }
            if sndUna > windowEnd {
                if mdevMax < rttvar { rttvar -= (rttvar - mdevMax) / 4 }
                windowEnd = sndNxt
                mdevMax = stack.rtoVarianceMin.count
            }
        }
        updateRTO()
    }

    /// Updates the minimum with the shortest round trip of the segments acknowledged together.
    mutating func updateMinimum(_ sample: Int64) { minRTT = min(minRTT, sample.clamped(to: Self.samples)) }

    /// Uses the fallback RTO if the handshake gave no sample (RFC 6298, 5.7).
    mutating func useFallback() {
        guard srtt == 0 else { return }
        rttvar = stack.rtoFallback.count
        mdev = rttvar
        mdevMax = rttvar
        rto = rttvar
    }

    /// Doubles the RTO after a timer expiry.
    mutating func backOff() { rto = min(rto * 2, stack.rtoMax.count) }

    private mutating func updateRTO() {
        rto = min(max(srtt + rttvar + stack.rtoSlop.count, stack.rtoMin.count), stack.rtoMax.count)
        let jiffy = KernelTimerWheel.jiffy.count
        if stack.hasTimerWheel { rto = (rto + jiffy - 1) / jiffy * jiffy }
    }
}
