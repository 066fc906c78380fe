internal import Determinism

/// CUBIC congestion control (RFC 9438) with HyStart and the Reno-friendly region, in the integer arithmetic of Linux's
/// `tcp_cubic.c`, which on slow links differs from the formula by whole segments.
struct Cubic: Sendable {
    /// The congestion window in segments (`snd_cwnd`).
    var cwnd: Int64
    /// The slow-start threshold in segments (`snd_ssthresh`).
    var ssthresh = Cubic.infiniteSsthresh
    /// Acknowledged segments that do not yet amount to an increase (`snd_cwnd_cnt`).
    var cwndCount: Int64 = 0

    /// `TCP_INFINITE_SSTHRESH`: the value before the first loss.
    static let infiniteSsthresh = Int64(Int32.max)

    // CUBIC. Its clock ticks 1024 times a second.
    private var lastMaxCwnd: Int64 = 0
    private var epochStart: Int64?
    private var originPoint: Int64 = 0
    /// The time of the plateau (`bic_K`).
    private var plateauTime: Int64 = 0
    private var ackCount: Int64 = 0
    private var renoCwnd: Int64 = 0
    /// The acknowledged segments that increase the window by one (`cnt`).
    private var acksPerIncrease: Int64 = 1
    private var lastCwnd: Int64 = 0
    private var lastTime: Int64 = 0
    /// The minimum delay (`delay_min`).
    private var delayMin: Int64 = 0

    // HyStart.
    private var roundEnd: Int64 = 0
    private var roundStart: Int64 = 0
    private var lastAck: Int64 = 0
    private var currentRTT: Int64 = .max
    private var sampleCount = 0
    private var hasFoundExit = false

    private static let millisecond: Int64 = 1_000_000
    private static let jiffy = KernelTimerWheel.jiffy.count
    /// beta = 717/1024 = 0.7.
    private static let beta: Int64 = 717
    /// C = 410/1024 = 0.4, times 1024^3 ticks a second cubed: the divisor of t^3.
    private static let cubeShift: Int64 = 40
    private static let cubeScale: Int64 = 410
    /// The largest reduction of the window, so that its product with 2^40 fits into 64 bits. The receive buffer allows
    /// windows of 15 000 segments.
    private static let reductionMax: Int64 = 1 << 22
    /// Reno's increase: 3 (1 + beta) / (1 - beta) in eighths, 15 (`beta_scale`).
    private static let renoScale: Int64 = 8 * (1024 + beta) / 3 / (1024 - beta)
    /// The smallest window, in segments, at which HyStart may end slow start (`hystart_low_window`).
    private static let hystartLowWindow: Int64 = 16
    /// The number of samples over which HyStart computes the minimum (`HYSTART_MIN_SAMPLES`).
    private static let hystartMinSamples = 8
    /// The largest gap between ACKs of one train (`hystart_ack_delta_us`).
    private static let hystartAckDelta: Int64 = 2 * millisecond

    init(initialWindow: Int) { cwnd = Int64(initialWindow) }

    var isInSlowStart: Bool { cwnd < ssthresh }

    /// Returns the slow-start threshold after a loss and stores the window (fast convergence;
    /// `cubictcp_recalc_ssthresh`).
    mutating func recalculateSsthresh() -> Int64 {
        epochStart = nil
        lastMaxCwnd = cwnd < lastMaxCwnd ? cwnd * (1024 + Self.beta) / 2048 : cwnd
        return max(cwnd * Self.beta / 1024, 2)
    }

    /// Resets the state after a retransmission timeout (`bictcp_reset`).
    mutating func reset() {
        lastMaxCwnd = 0
        epochStart = nil
        originPoint = 0
        plateauTime = 0
        ackCount = 0
        renoCwnd = 0
        lastCwnd = 0
        lastTime = 0
        delayMin = 0
        hasFoundExit = false
    }

    /// Starts a HyStart round with the next segment sent (`bictcp_hystart_reset`).
    mutating func startHyStartRound(sndNxt: Int64, at now: Int64) {
        roundStart = now
        lastAck = now
        roundEnd = sndNxt
        currentRTT = .max
        sampleCount = 0
    }

    /// Shifts CUBIC's epoch by an idle time (`cubictcp_cwnd_event`, `CA_EVENT_TX_START`).
    mutating func shiftEpoch(by idle: Int64) {
        if let start = epochStart, idle > 0 { epochStart = start + idle }
    }

    /// Adds the round-trip sample of an ACK (`cubictcp_acked`).
    mutating func addSample(roundTrip: Int64, sndUna: Int64, sndNxt: Int64, at now: Int64) {
        if let epochStart, now - epochStart < 1000 * Self.millisecond { return }
        let delay = roundTrip.clamped(to: RoundTripEstimator.samples)
        if delayMin == 0 || delay < delayMin { delayMin = delay }
        guard !hasFoundExit, isInSlowStart else { return }
        // Rounds are also counted below the low window (since Linux 6.14). Otherwise the first one above it would begin amid a burst
        // of ACKs and end with the next burst, and a round-trip time below the gap of a train would end slow start at once.
        if sndUna > roundEnd { startHyStartRound(sndNxt: sndNxt, at: now) }
        if cwnd < Self.hystartLowWindow { return }
        if now - lastAck <= Self.hystartAckDelta {
            lastAck = now
            if now - roundStart > delayMin / 2 { exitSlowStart() }
        }
        currentRTT = min(currentRTT, delay)
        if sampleCount < Self.hystartMinSamples {
            sampleCount += 1
        } else if currentRTT > delayMin + min(max(delayMin / 8, 4 * Self.millisecond), 16 * Self.millisecond) {
            exitSlowStart()
        }
    }

    private mutating func exitSlowStart() {
        hasFoundExit = true
        ssthresh = cwnd
    }

    /// Increases the window for `delivered` newly delivered segments (`cubictcp_cong_avoid`).
    mutating func increase(_ delivered: Int64, at now: Int64) {
        var delivered = delivered
        if isInSlowStart {
            let increased = min(cwnd + delivered, ssthresh)
            delivered -= increased - cwnd
            cwnd = increased
            if delivered == 0 { return }
        }
        update(delivered, at: now)
        if cwndCount >= acksPerIncrease {
            cwndCount = 0
            cwnd += 1
        }
        cwndCount += delivered
        if cwndCount >= acksPerIncrease {
            let increase = cwndCount / acksPerIncrease
            cwndCount -= increase * acksPerIncrease
            cwnd += increase
        }
    }

    /// Updates the number of acknowledged segments that increase the window by one (`bictcp_update`).
    private mutating func update(_ delivered: Int64, at now: Int64) {
        ackCount += delivered
        let tick = now / Self.jiffy
        if lastCwnd == cwnd && tick - lastTime <= 250 / 32 { return }
        if epochStart == nil || tick != lastTime {
            lastCwnd = cwnd
            lastTime = tick
            if epochStart == nil {
                epochStart = now
                ackCount = delivered
                renoCwnd = cwnd
                if lastMaxCwnd <= cwnd {
                    plateauTime = 0
                    originPoint = cwnd
                } else {
                    let reduction = min(lastMaxCwnd - cwnd, Self.reductionMax)
                    plateauTime = Self.cubeRoot(reduction * (1 << Self.cubeShift) / Self.cubeScale)
                    originPoint = lastMaxCwnd
                }
            }
            let elapsed = (now - (epochStart ?? now) + delayMin) / Self.jiffy * 1024 / 250
            let distance = min(abs(elapsed - plateauTime), 1 << 17)
            let delta = Self.cubeScale * distance * distance / (1 << 20) * distance / (1 << 20)
            let target = elapsed < plateauTime ? originPoint - delta : originPoint + delta
            acksPerIncrease = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd
            if lastMaxCwnd == 0 && acksPerIncrease > 20 { acksPerIncrease = 20 }
        }
        let renoRound = max(cwnd * Self.renoScale / 8, 1)
        if ackCount > renoRound {
            // The kernel's loop in one step.
            let rounds = (ackCount - 1) / renoRound
            ackCount -= rounds * renoRound
            renoCwnd += rounds
        }
        if renoCwnd > cwnd {
            acksPerIncrease = min(acksPerIncrease, cwnd / (renoCwnd - cwnd))
        }
        acksPerIncrease = max(acksPerIncrease, 2)
    }

    /// Returns the integer cube root.
    static func cubeRoot(_ value: Int64) -> Int64 {
        var low: Int64 = 0
        var high: Int64 = 1 << 20
        while low < high {
            let middle = (low + high + 1) / 2
            if middle * middle <= value / middle { low = middle } else { high = middle - 1 }
        }
        return low
    }
}
