public import Determinism

/// The conditions of one direction of a link.
public struct DirectionConditions: Hashable, Sendable {
    /// The transmission rate; `nil` means unlimited.
    public var rate: Rate?
    /// The opportunities for transmission, instead of a constant rate.
    public var trace: DeliveryTrace?
    /// The propagation delay, after transmission.
    public var delay: Nanoseconds
    /// The probability that a packet is lost before it reaches the queue.
    public var loss: Probability
    /// The queue limit; the packet being transmitted counts as queued.
    public var queue: QueueLimit
    /// The variation of the delay; `nil` means none.
    public var jitter: Jitter?
    /// Losses in bursts, in addition to ``loss``.
    public var bursts: BurstLoss?
    /// Packets lost by number, in addition to the other losses.
    public var lostPackets: PacketNumbers?
    /// The probability that a packet is queued twice.
    public var duplication: Probability
    /// The probability that a packet skips ``delay`` and ``jitter``, and so overtakes earlier packets.
    public var reordering: Probability

    /// Creates the conditions of one direction.
    public init(
        rate: Rate? = nil, trace: DeliveryTrace? = nil, delay: Nanoseconds = .zero, loss: Probability = .zero,
        queue: QueueLimit = .standard, jitter: Jitter? = nil, bursts: BurstLoss? = nil,
        lostPackets: PacketNumbers? = nil, duplication: Probability = .zero, reordering: Probability = .zero
    ) {
        self.rate = rate
        self.trace = trace
        self.delay = delay
        self.loss = loss
        self.queue = queue
        self.jitter = jitter
        self.bursts = bursts
        self.lostPackets = lostPackets
        self.duplication = duplication
        self.reordering = reordering
    }

    /// No rate limit, no delay and no loss.
    public static let clear = DirectionConditions()

    /// Whether packets pass unimpaired. The queue limit does not matter: without a rate the queue is always empty.
    public var isClear: Bool {
        rate == nil && trace == nil && delay == .zero && jitter == nil && loss == .zero && bursts == nil
            && lostPackets == nil && duplication == .zero && reordering == .zero
    }

    /// The longest delay, jitter or burst state that the model uses, some nine years; longer values are clamped to it.
    /// Modelled time plus a delay and the largest jitter (six spans) fits into 64 bits.
    package static let spanMax = Nanoseconds(1 << 58)

    /// The longest one-way delay that a profile may set.
    public static let delayMax = Nanoseconds.seconds(600)
}
