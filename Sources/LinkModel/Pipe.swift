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
    /// The packets still in the queue; the first is being sent.
    private var departures = Departures()
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
        departures.release(at: now.sinceStart.count)
        return departures.count
    }

    /// Offers one packet of `bytes` to the link.
    mutating func offer(bytes: Int, at now: Instant) -> Fate {
        if isStalled {
            counters.packetsLost += 1
            return .lost
        }
        departures.release(at: now.sinceStart.count)
        if departures.isFull(conditions.queue), let first = departures.first {
            return .full(until: Instant(Nanoseconds(first)))
        }
        let sent = max(busyUntil, now) + (conditions.rate?.serialisation(ofBytes: bytes) ?? .zero)
        if sent > now {
            departures.append(bytes: bytes, sent: sent.sinceStart.count)
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
}

/// What waits for a link, the packet being sent included.
struct Departures: Sendable {
    private var packets = Deque<(sent: Int64, bytes: Int)>()
    /// Bytes of these packets.
    private(set) var bytes = 0

    var count: Int { packets.count }
    /// When the first will have been sent.
    var first: Int64? { packets.first?.sent }

    func isFull(_ limit: QueueLimit) -> Bool { limit.isFull(packets: packets.count, bytes: bytes) }

    mutating func append(bytes size: Int, sent: Int64) {
        packets.append((sent, size))
        bytes += size
    }

    /// Forgets what has been sent by `now`.
    mutating func release(at now: Int64) {
        while let first = packets.first, first.sent <= now {
            bytes -= first.bytes
            packets.removeFirst()
        }
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
    /// Packets that entered the queue a second time.
    public var packetsDuplicated = 0
    /// Packets dropped because the queue was full.
    public var packetsDropped = 0
    /// The deepest the queue has been, in packets.
    public var queueDepthMax = 0
}
