internal import DequeModule

/// One direction of a link: loss, then a bounded queue, then the rate, then the delay.
///
///     packet -> loss -> [ queue | sending ] -> delay -> arrival
///
/// The order, and that the packet being sent still takes a place in the queue, are dummynet's (`dummynet_io` in
/// xnu's `ip_dummynet.c`), because that is what Apple's Network Link Conditioner drives.
///
/// A packet's times are settled when it enters. Order is kept: a packet that enters after a cut in delay waits
/// for the ones before it.
struct Pipe: Sendable {
    private(set) var conditions: DirectionConditions
    /// When the link has sent everything accepted so far.
    private var busyUntil = Instant.start
    /// When each packet still in the queue will have been sent; the first is being sent.
    private var departures = Deque<Instant>()
    /// No later packet arrives before this.
    private(set) var lastArrival = Instant.start
    private(set) var counters = PipeCounters()

    init(_ conditions: DirectionConditions) {
        self.conditions = conditions
    }

    /// What became of a packet that was offered.
    enum Fate: Hashable {
        case arrives(Instant)
        case lost
        /// There was no place; one is free at the given time.
        case full(until: Instant)
    }

    var isStalled: Bool { conditions.loss == .all }

    mutating func setConditions(_ new: DirectionConditions) {
        conditions = new
    }

    /// Packets waiting or being sent at `now`.
    mutating func depth(at now: Instant) -> Int {
        release(at: now)
        return departures.count
    }

    /// Offers one packet of `bytes` to the link.
    mutating func offer(bytes: Int, at now: Instant) -> Fate {
        if isStalled {
            counters.packetsLost += 1
            return .lost
        }
        release(at: now)
        if departures.count >= conditions.queue.packets, let first = departures.first {
            return .full(until: first)
        }
        let sent = max(busyUntil, now) + (conditions.rate?.serialisation(ofBytes: bytes) ?? .zero)
        if sent > now {
            departures.append(sent)
            counters.queueDepthMax = max(counters.queueDepthMax, departures.count)
        }
        busyUntil = sent
        lastArrival = max(lastArrival, sent + conditions.delay)
        counters.packets += 1
        counters.bytes += bytes
        return .arrives(lastArrival)
    }

    /// Whether a byte entering now would arrive now, with nothing before it.
    func isStraight(at now: Instant) -> Bool {
        conditions.isClear && lastArrival <= now && busyUntil <= now
    }

    private mutating func release(at now: Instant) {
        while let first = departures.first, first <= now { departures.removeFirst() }
    }
}

/// What has passed one direction of a link since it was made. Packets on the straight path are not counted.
public struct PipeCounters: Hashable, Sendable {
    /// Packets put on the link.
    public var packets = 0
    /// Bytes of these packets, headers included.
    public var bytes = 0
    /// Packets lost before the queue.
    public var packetsLost = 0
    /// Packets dropped because the queue was full.
    public var packetsDropped = 0
    /// The deepest the queue has been, in packets.
    public var queueDepthMax = 0
}
