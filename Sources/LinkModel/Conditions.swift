/// What a link does to the packets that enter it.
///
/// A change acts on packets that enter the link afterwards; what is queued or in flight keeps its time.
public struct Conditions: Hashable, Sendable {
    /// What holds from client to server.
    public var up: DirectionConditions
    /// What holds from server to client.
    public var down: DirectionConditions
    /// What a name look-up costs before each modelled handshake.
    public var dnsDelay: Nanoseconds

    /// Creates conditions of both directions.
    public init(up: DirectionConditions, down: DirectionConditions, dnsDelay: Nanoseconds = .zero) {
        self.up = up
        self.down = down
        self.dnsDelay = dnsDelay
    }

    /// Nothing in force: no cap, no delay, no loss.
    public static let clear = Conditions(up: .clear, down: .clear)

    /// The conditions of one direction.
    public subscript(direction: Direction) -> DirectionConditions {
        direction == .up ? up : down
    }

    /// Whether bytes may take the straight path from socket to socket.
    public var isClear: Bool { up.isClear && down.isClear && dnsDelay == .zero }

    /// Why this version cannot carry out these conditions, or `nil` if it can.
    ///
    /// Loss between none and all needs retransmission, that is a TCP model; to drop bytes from a stream, or to
    /// carry on as if there were no loss, would both be lies.
    public var unsupported: String? {
        for direction in [Direction.down, .up] {
            if self[direction].jitter != nil || self[direction].bursts != nil {
                return "jitter or bursts of loss, which the live proxy does not model yet ('slowlane model' does)"
            }
            let loss = self[direction].loss
            if loss != .none && loss != .all {
                return "\(loss) loss \(direction == .up ? "up" : "down"): this version models no loss "
                    + "or 100 %, nothing between (partial loss needs modelled retransmissions)"
            }
        }
        return nil
    }
}

/// What a link does to the packets of one direction.
public struct DirectionConditions: Hashable, Sendable {
    /// How fast packets are put on the link; `nil` is no cap.
    public var rate: Rate?
    /// How long a packet travels after it has been put on the link.
    public var delay: Nanoseconds
    /// The share of packets that are lost before they reach the queue.
    public var loss: Loss
    /// How many packets may wait for the link, the one being sent included.
    public var queue: QueueLimit
    /// How the delay varies; `nil` is not at all.
    public var jitter: Jitter?
    /// Losses that come in bursts, beside those of ``loss``.
    public var bursts: Bursts?

    /// Creates the conditions of one direction.
    public init(
        rate: Rate? = nil, delay: Nanoseconds = .zero, loss: Loss = .none, queue: QueueLimit = .standard,
        jitter: Jitter? = nil, bursts: Bursts? = nil
    ) {
        self.rate = rate
        self.delay = delay
        self.loss = loss
        self.queue = queue
        self.jitter = jitter
        self.bursts = bursts
    }

    /// No cap, no delay, no loss.
    public static let clear = DirectionConditions()

    /// Whether nothing is in force. The queue alone holds nothing back: without a cap it is always empty.
    public var isClear: Bool { rate == nil && delay == .zero && loss == .none && jitter == nil && bursts == nil }

    /// The longest delay a profile may ask for, one way.
    public static let delayMax = Nanoseconds.seconds(600)
}

/// A link rate in bits per second (kbit/s = 1000 bit/s), counting whole IP packets.
public struct Rate: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// Bits per second, within ``allowed``.
    public let bitsPerSecond: Int64

    /// The rates that can be modelled: 100 bit/s to 100 Gbit/s.
    public static let allowed: ClosedRange<Int64> = 100...100_000_000_000

    /// Creates a rate, or `nil` outside ``allowed``.
    public init?(bitsPerSecond: Int64) {
        guard Rate.allowed.contains(bitsPerSecond) else { return nil }
        self.bitsPerSecond = bitsPerSecond
    }

    /// Creates a rate of whole kbit/s; a bug if it is outside ``allowed``.
    public static func kilobits(_ count: Int64) -> Rate {
        guard let rate = Rate(bitsPerSecond: count * 1000) else { preconditionFailure("rate out of range") }
        return rate
    }

    /// How long `bytes` take to be put on the link, rounded up to whole nanoseconds.
    public func serialisation(ofBytes bytes: Int) -> Nanoseconds {
        let bitNanoseconds = Int64(bytes) * 8_000_000_000
        return Nanoseconds((bitNanoseconds + bitsPerSecond - 1) / bitsPerSecond)
    }

    public static func < (left: Rate, right: Rate) -> Bool { left.bitsPerSecond < right.bitsPerSecond }

    public var description: String {
        if bitsPerSecond >= 10_000_000 && bitsPerSecond % 1_000_000 == 0 {
            return "\(bitsPerSecond / 1_000_000) Mbit/s"
        }
        if bitsPerSecond % 1000 == 0 { return "\(bitsPerSecond / 1000) kbit/s" }
        return "\(bitsPerSecond) bit/s"
    }
}

/// A share of packets lost, in parts per million.
public struct Loss: Hashable, Sendable, CustomStringConvertible {
    /// Lost packets of a million, 0 to 1 000 000.
    public let partsPerMillion: Int32

    /// Creates a loss, or `nil` outside 0 to 1 000 000.
    public init?(partsPerMillion: Int32) {
        guard (0...1_000_000).contains(partsPerMillion) else { return nil }
        self.partsPerMillion = partsPerMillion
    }

    private init(known partsPerMillion: Int32) {
        self.partsPerMillion = partsPerMillion
    }

    /// Nothing is lost.
    public static let none = Loss(known: 0)
    /// Everything is lost: streams stall.
    public static let all = Loss(known: 1_000_000)

    public var description: String {
        let whole = partsPerMillion / 10_000
        var fraction = String(partsPerMillion % 10_000 + 10_000).dropFirst()
        while fraction.last == "0" { fraction.removeLast() }
        return fraction.isEmpty ? "\(whole) %" : "\(whole).\(fraction) %"
    }
}

/// The length of a direction's drop-tail queue in packets.
public struct QueueLimit: Hashable, Sendable, CustomStringConvertible {
    /// Packets that may wait, the one being sent included, within ``allowed``.
    public let packets: Int

    /// The lengths that can be modelled.
    public static let allowed = 1...100_000

    /// Creates a length, or `nil` outside ``allowed``.
    public init?(packets: Int) {
        guard QueueLimit.allowed.contains(packets) else { return nil }
        self.packets = packets
    }

    private init(known packets: Int) {
        self.packets = packets
    }

    /// 50 packets: what dummynet gives a pipe that does not ask (`set_fs_parms` in xnu's `ip_dummynet.c`), and
    /// so what Apple's Network Link Conditioner runs with.
    public static let standard = QueueLimit(known: 50)

    public var description: String { "\(packets) packets" }
}
