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
    /// Whether connections reach the server at all.
    public var access: Access

    /// Creates conditions of both directions.
    public init(
        up: DirectionConditions, down: DirectionConditions, dnsDelay: Nanoseconds = .zero, access: Access = .open
    ) {
        self.up = up
        self.down = down
        self.dnsDelay = dnsDelay
        self.access = access
    }

    /// Nothing in force: no cap, no delay, no loss.
    public static let clear = Conditions(up: .clear, down: .clear)

    /// The conditions of one direction.
    public subscript(direction: Direction) -> DirectionConditions {
        direction == .up ? up : down
    }

    /// Whether bytes may take the straight path from socket to socket.
    public var isClear: Bool { up.isClear && down.isClear && dnsDelay == .zero }
}

/// What a link does to the packets of one direction.
public struct DirectionConditions: Hashable, Sendable {
    /// How fast packets are put on the link; `nil` is no cap.
    public var rate: Rate?
    /// When packets may be put on the link, instead of at a constant rate.
    public var trace: DeliveryTrace?
    /// How long a packet travels after it has been put on the link.
    public var delay: Nanoseconds
    /// The share of packets that are lost before they reach the queue.
    public var loss: Loss
    /// How much may wait for the link, the packet being sent included.
    public var queue: QueueLimit
    /// How the delay varies; `nil` is not at all.
    public var jitter: Jitter?
    /// Losses that come in bursts, beside those of ``loss``.
    public var bursts: Bursts?
    /// Packets that are lost by their number, beside the others.
    public var lostPackets: PacketNumbers?
    /// The share of packets that enter the queue twice.
    public var duplication: Loss
    /// The share of packets that skip ``delay`` and ``jitter``, and so overtake those before them.
    public var reordering: Loss

    /// Creates the conditions of one direction.
    public init(
        rate: Rate? = nil, trace: DeliveryTrace? = nil, delay: Nanoseconds = .zero, loss: Loss = .none,
        queue: QueueLimit = .standard, jitter: Jitter? = nil, bursts: Bursts? = nil, lostPackets: PacketNumbers? = nil,
        duplication: Loss = .none, reordering: Loss = .none
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

    /// No cap, no delay, no loss.
    public static let clear = DirectionConditions()

    /// Whether nothing is in force. The queue alone holds nothing back: without a cap it is always empty.
    public var isClear: Bool {
        rate == nil && trace == nil && delay == .zero && jitter == nil && loss == .none && bursts == nil
            && lostPackets == nil && duplication == .none && reordering == .none
    }

    /// The longest delay, jitter or state of a burst that the model reckons with, some nine years; longer ones count as
    /// this. Six of them, the most that jitter asks for, and the time so far stay within 64 bits.
    static let spanMax = Nanoseconds(1 << 58)

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
        // Up to a gigabyte the product fits; packets have some kilobytes.
        if bytes <= 1_000_000_000 {
            let bitNanoseconds = Int64(bytes) * 8_000_000_000
            return Nanoseconds((bitNanoseconds + bitsPerSecond - 1) / bitsPerSecond)
        }
        let whole = Int64(bytes).scaledSaturating(by: 8_000_000_000, over: bitsPerSecond)
        return Nanoseconds(whole.addingSaturating(1))
    }

    public static func < (left: Rate, right: Rate) -> Bool { left.bitsPerSecond < right.bitsPerSecond }

    public var description: String {
        if bitsPerSecond >= 10_000_000 && bitsPerSecond % 1_000_000 == 0 {
            return "\(bitsPerSecond / 1_000_000) Mbit/s"
        }
        if bitsPerSecond < 1000 { return "\(bitsPerSecond) bit/s" }
        return "\(Decimals.text(bitsPerSecond, digits: 3)) kbit/s"
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
        "\(Decimals.text(Int64(partsPerMillion), digits: 4)) %"
    }
}

/// Whole numbers as decimals, without floating point.
enum Decimals {
    /// A count of 1/10^`digits` with no more decimals than it needs.
    static func text(_ count: Int64, digits: Int) -> String {
        var scale: Int64 = 1
        for _ in 0..<digits { scale *= 10 }
        var fraction = String(count % scale + scale).dropFirst()
        while fraction.last == "0" { fraction.removeLast() }
        return fraction.isEmpty ? "\(count / scale)" : "\(count / scale).\(fraction)"
    }
}
