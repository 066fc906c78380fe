/// The congestion window: slow start with HyStart, then CUBIC (RFC 9438) with its Reno-friendly region, in the integer
/// arithmetic of Linux's `tcp_cubic.c`, which on slow links differs from the formula by whole segments.
struct Cubic: Sendable {
    /// The window in segments.
    var window: Int64
    /// Below it the window grows by what is acknowledged, above it as CUBIC says.
    var threshold = Cubic.noThreshold
    /// Acknowledged segments that have not yet made up one of growth.
    var count: Int64 = 0

    static let noThreshold = Int64(Int32.max)

    // CUBIC. Its clock ticks 1024 times a second.
    private var lastMax: Int64 = 0
    private var epoch: Int64?
    private var origin: Int64 = 0
    private var inflection: Int64 = 0
    private var acknowledged: Int64 = 0
    private var renoWindow: Int64 = 0
    private var segmentsPerGrowth: Int64 = 1
    private var lastWindow: Int64 = 0
    private var lastTime: Int64 = 0
    /// The shortest round trip, as CUBIC sees it.
    private var delayMin: Int64 = 0

    // HyStart.
    private var roundEnd: Int64 = 0
    private var roundStart: Int64 = 0
    private var lastAck: Int64 = 0
    private var roundDelay: Int64 = .max
    private var roundSamples = 0
    private var hasFoundExit = false

    private static let millisecond: Int64 = 1_000_000
    private static let jiffy = Wheel.jiffy.count
    /// beta = 717/1024 = 0.7.
    private static let beta: Int64 = 717
    /// C = 410/1024 = 0.4, times 1024^3 ticks a second cubed: the divisor of t^3.
    private static let cubeShift: Int64 = 40
    private static let cubeScale: Int64 = 410
    /// The deepest fall of the window that is reckoned with, so that its product with 2^40 fits. The receive buffer
    /// allows windows of 15 000 segments.
    private static let fallMax: Int64 = 1 << 22
    /// Reno's share: 3 (1 + beta) / (1 - beta) in eighths, 15.
    private static let renoScale: Int64 = 8 * (1024 + beta) / 3 / (1024 - beta)
    /// HyStart looks at windows of at least 16 segments,
    private static let hystartWindowMin: Int64 = 16
    /// takes the least of 8 round trips,
    private static let hystartSamples = 8
    /// and takes ACKs less than 2 ms apart for one train.
    private static let trainGap: Int64 = 2 * millisecond

    init(initialWindow: Int) { window = Int64(initialWindow) }

    var isInSlowStart: Bool { window < threshold }

    /// The threshold that a loss at this window leaves, remembering the window (fast convergence).
    mutating func thresholdAfterLoss() -> Int64 {
        epoch = nil
        lastMax = window < lastMax ? window * (1024 + Self.beta) / 2048 : window
        return max(window * Self.beta / 1024, 2)
    }

    /// A time-out forgets what CUBIC knew (`cubictcp_state`).
    mutating func forget() {
        lastMax = 0
        epoch = nil
        origin = 0
        inflection = 0
        acknowledged = 0
        renoWindow = 0
        lastWindow = 0
        lastTime = 0
        delayMin = 0
        hasFoundExit = false
    }

    /// A new round of HyStart begins with what is sent next.
    mutating func beginRound(next: Int64, at now: Int64) {
        roundStart = now
        lastAck = now
        roundEnd = next
        roundDelay = .max
        roundSamples = 0
    }

    /// Sending begins again after a pause: CUBIC's curve has not moved on meanwhile.
    mutating func skipIdle(_ span: Int64) {
        if let start = epoch, span > 0 { epoch = start + span }
    }

    /// Takes a round-trip sample of an ACK (`cubictcp_acked`).
    mutating func take(roundTrip: Int64, acknowledged una: Int64, next: Int64, at now: Int64) {
        if let epoch, now - epoch < 1000 * Self.millisecond { return }
        let delay = roundTrip.clamped(to: RoundTripEstimator.samples)
        if delayMin == 0 || delay < delayMin { delayMin = delay }
        guard !hasFoundExit, isInSlowStart, window >= Self.hystartWindowMin else { return }
        if una > roundEnd { beginRound(next: next, at: now) }
        if now - lastAck <= Self.trainGap {
            lastAck = now
            if now - roundStart > delayMin / 2 { leaveSlowStart() }
        }
        roundDelay = min(roundDelay, delay)
        if roundSamples < Self.hystartSamples {
            roundSamples += 1
        } else if roundDelay > delayMin + min(max(delayMin / 8, 4 * Self.millisecond), 16 * Self.millisecond) {
            leaveSlowStart()
        }
    }

    private mutating func leaveSlowStart() {
        hasFoundExit = true
        threshold = window
    }

    /// Grows by `delivered` segments newly delivered.
    mutating func grow(_ delivered: Int64, at now: Int64) {
        var delivered = delivered
        if isInSlowStart {
            let grown = min(window + delivered, threshold)
            delivered -= grown - window
            window = grown
            if delivered == 0 { return }
        }
        update(delivered, at: now)
        if count >= segmentsPerGrowth {
            count = 0
            window += 1
        }
        count += delivered
        if count >= segmentsPerGrowth {
            let growth = count / segmentsPerGrowth
            count -= growth * segmentsPerGrowth
            window += growth
        }
    }

    /// How many segments must be acknowledged for the window to grow by one (`bictcp_update`).
    private mutating func update(_ delivered: Int64, at now: Int64) {
        acknowledged += delivered
        let tick = now / Self.jiffy
        if lastWindow == window && tick - lastTime <= 250 / 32 { return }
        if epoch == nil || tick != lastTime {
            lastWindow = window
            lastTime = tick
            if epoch == nil {
                epoch = now
                acknowledged = delivered
                renoWindow = window
                if lastMax <= window {
                    inflection = 0
                    origin = window
                } else {
                    let fall = min(lastMax - window, Self.fallMax)
                    inflection = Self.cubeRoot(fall * (1 << Self.cubeShift) / Self.cubeScale)
                    origin = lastMax
                }
            }
            let elapsed = (now - (epoch ?? now) + delayMin) / Self.jiffy * 1024 / 250
            let distance = min(abs(elapsed - inflection), 1 << 17)
            let delta = Self.cubeScale * distance * distance / (1 << 20) * distance / (1 << 20)
            let target = elapsed < inflection ? origin - delta : origin + delta
            segmentsPerGrowth = target > window ? window / (target - window) : 100 * window
            if lastMax == 0 && segmentsPerGrowth > 20 { segmentsPerGrowth = 20 }
        }
        let renoRound = max(window * Self.renoScale / 8, 1)
        if acknowledged > renoRound {
            // The loop of the original, in one step.
            let rounds = (acknowledged - 1) / renoRound
            acknowledged -= rounds * renoRound
            renoWindow += rounds
        }
        if renoWindow > window {
            segmentsPerGrowth = min(segmentsPerGrowth, window / (renoWindow - window))
        }
        segmentsPerGrowth = max(segmentsPerGrowth, 2)
    }

    /// The cube root in whole numbers.
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
