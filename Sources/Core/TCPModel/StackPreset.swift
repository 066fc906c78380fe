public import Determinism

/// The TCP parameters of an end's kernel, each with the source of its value.
public struct StackPreset: Hashable, Sendable {
    /// The initial congestion window in segments.
    public var initialWindow: Int
    /// The successive timeouts of the SYN; after the last one, the timeout doubles each time, up to ``rtoMax``.
    public var synTimeouts: [Nanoseconds]
    /// The minimum of the RTO's variance term.
    public var rtoVarianceMin: Nanoseconds
    /// The margin added to SRTT + 4 RTTVAR (`TCPTV_REXMTSLOP`).
    public var rtoSlop: Nanoseconds
    /// The minimum RTO.
    public var rtoMin: Nanoseconds
    /// The maximum RTO.
    public var rtoMax: Nanoseconds
    /// The RTO of the first data if the handshake gave no sample.
    public var rtoFallback: Nanoseconds
    /// The delayed-ACK timeout.
    public var delayedAck: Nanoseconds
    /// Whether timers have the resolution of Linux's timer wheel.
    public var hasTimerWheel: Bool

    /// The presets by name.
    public static let named: [String: StackPreset] = ["linux": .linux, "apple": .apple, "rfc": .rfc]

    /// The longest timer, and the shortest retransmission timer.
    private static let spanMax = Nanoseconds.seconds(3600)
    private static let retransmitMin = Nanoseconds.milliseconds(1)
    /// The largest initial congestion window in segments.
    private static let initialWindowMax = 65_535

    /// The preset with every field clamped to the supported range.
    var bounded: StackPreset {
        func span(_ span: Nanoseconds, from least: Nanoseconds = .zero) -> Nanoseconds {
            min(max(span, least), Self.spanMax)
        }
        var result = self
        result.initialWindow = min(max(1, initialWindow), Self.initialWindowMax)
        result.synTimeouts = synTimeouts.map { span($0, from: Self.retransmitMin) }
        result.rtoVarianceMin = span(rtoVarianceMin)
        result.rtoSlop = span(rtoSlop)
        result.rtoMin = span(rtoMin, from: Self.retransmitMin)
        result.rtoMax = span(rtoMax, from: Self.retransmitMin)
        result.rtoFallback = span(rtoFallback, from: Self.retransmitMin)
        result.delayedAck = span(delayedAck)
        return result
    }

    /// Returns the timeout of a SYN that has been sent `tries` times before.
    public func synTimeout(after tries: Int) -> Nanoseconds {
        if tries < synTimeouts.count { return synTimeouts[tries] }
        // TCP_TIMEOUT_INIT if the preset has no schedule.
        let last = synTimeouts.last ?? .seconds(1)
        return Self.doubled(last, times: tries - synTimeouts.count + (synTimeouts.isEmpty ? 0 : 1), max: rtoMax)
    }

    /// Returns the timeout of a SYN-ACK that has been sent `tries` times before: TCP_TIMEOUT_INIT, doubled each time
    /// (`reqsk_timeout`).
    func synAckTimeout(after tries: Int) -> Nanoseconds { Self.doubled(.seconds(1), times: tries, max: rtoMax) }

    private static func doubled(_ span: Nanoseconds, times: Int, max: Nanoseconds) -> Nanoseconds {
        // An hour shifted by 20 fits into 64 bits.
        min(Nanoseconds(span.count << Int64(min(times, 20))), max)
    }

    private static func seconds(_ counts: [Int64]) -> [Nanoseconds] { counts.map { .seconds($0) } }

    /// Linux 6.5 and later.
    public static let linux = StackPreset(
        initialWindow: 10,  // TCP_INIT_CWND, RFC 6928
        synTimeouts: seconds([1, 1, 1, 1, 1, 2, 4, 8, 16, 32]),  // tcp_syn_linear_timeouts = 4, TCP_TIMEOUT_INIT
        rtoVarianceMin: .milliseconds(200),  // TCP_RTO_MIN
        rtoSlop: .zero, rtoMin: .milliseconds(200),
        rtoMax: .seconds(120),  // TCP_RTO_MAX
        rtoFallback: .seconds(3),  // TCP_TIMEOUT_FALLBACK, RFC 6298 5.7
        delayedAck: .milliseconds(40),  // TCP_DELACK_MIN
        hasTimerWheel: true)

    /// Apple's xnu kernel.
    public static let apple = StackPreset(
        initialWindow: 10,  // TCP_CC_CWND_INIT_PKTS
        synTimeouts: seconds([1, 1, 1, 1, 1, 2, 4, 8, 16, 32]),  // tcp_syn_backoff[]
        rtoVarianceMin: .zero,
        rtoSlop: .milliseconds(200),  // TCPTV_REXMTSLOP
        rtoMin: .milliseconds(230),  // 30 ms floor and the slop
        rtoMax: .seconds(64),  // TCPTV_REXMTMAX
        rtoFallback: .seconds(3), delayedAck: .milliseconds(100), hasTimerWheel: false)

    /// The recommendations of the RFCs.
    public static let rfc = StackPreset(
        initialWindow: 10,  // RFC 6928
        synTimeouts: seconds([1, 2, 4, 8, 16, 32]),  // RFC 6298 2.1 and 5.5
        rtoVarianceMin: .milliseconds(1),  // the clock's granularity, RFC 6298 2.3
        rtoSlop: .zero,
        rtoMin: .seconds(1),  // RFC 6298 2.4
        rtoMax: .seconds(60),  // RFC 6298 2.5
        rtoFallback: .seconds(3),  // RFC 6298 5.7
        delayedAck: .milliseconds(200), hasTimerWheel: false)
}
