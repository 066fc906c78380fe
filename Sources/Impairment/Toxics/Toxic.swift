public import LinkModel
internal import NIOCore

/// Something that is done to the bytes of a proxy's connections in one direction, before they enter the link.
///
/// Names, attributes and units are Toxiproxy's. A direction's toxics form a chain in the order in which they were added; the
/// newest stands nearest the link. What each does is a machine of its own in a file of its own.
public struct Toxic: Hashable, Sendable {
    /// Tells it from the proxy's other toxics, in both directions.
    public let name: String
    /// Whose bytes it meets.
    public let stream: Direction
    /// The share of connections that it is applied to: less than 0 is none, more than 1 all. Drawn for each connection when it
    /// begins, when the toxic is added, and whenever it is updated.
    public var toxicity: Double
    /// What it does.
    public var effect: Effect

    /// Creates a toxic.
    public init(name: String, stream: Direction, toxicity: Double = 1, effect: Effect) {
        self.name = name
        self.stream = stream
        self.toxicity = toxicity
        self.effect = effect
    }

    /// What a toxic does, with its attributes. No value is out of range: one that makes no sense counts as the nearest that
    /// does.
    public enum Effect: Hashable, Sendable {
        /// Each chunk leaves `latency` ms after it arrived, give or take up to `jitter` ms.
        case latency(latency: Int64, jitter: Int64)
        /// `rate` kB/s (1 kB = 1000 B); from 0 down nothing passes.
        case bandwidth(rate: Int64)
        /// The end of the stream is passed on `delay` ms late.
        case slowClose(delay: Int64)
        /// Swallows everything, and closes both sockets once nothing has come for `timeout` ms; 0 is never.
        case timeout(timeout: Int64)
        /// From the first byte or the end on, closes both sockets with a RST after `timeout` ms.
        case resetPeer(timeout: Int64)
        /// Cuts chunks into pieces of some `averageSize` bytes, with a pause of `delay` µs after each.
        case slicer(averageSize: Int64, sizeVariation: Int64, delay: Int64)
        /// Passes `bytes` bytes, then closes both sockets.
        case limitData(bytes: Int64)
        /// Loses packets: each with the chance `lossRate`, more by `correlation` after one that was lost. TCP's
        /// retransmissions make the bytes late; none is missing.
        case packetLoss(lossRate: Double, correlation: Double)
        /// Does nothing.
        case noop
    }

    /// A chain holds so many chunks before a ``Effect/latency(latency:jitter:)``; then its sender waits.
    public static let latencyChunksMax = 1024
    /// The longest time an attribute can ask for: some 31 years, so that sums stay within 64 bits.
    static let millisecondsMax: Int64 = 1_000_000_000_000

    /// Milliseconds as a span; less than none is none.
    static func span(milliseconds: Int64) -> Nanoseconds {
        .milliseconds(min(max(0, milliseconds), millisecondsMax))
    }
}

/// What a toxic does to one connection's direction: a machine that is asked what is next.
protocol ToxicMachine {
    /// Says what is to be done with the front of the input, or until when nothing is. Called whenever something has arrived and
    /// at the time it has asked for; never early.
    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep

    /// Chunks it lets wait before it; then what is before it waits.
    var chunksMax: Int { get }
    /// Whether it can do something while there is no room behind it.
    var isUrgent: Bool { get }
    /// Whether it has begun with the first chunk of its input: that goes out at once when the toxic is updated.
    var holdsFirst: Bool { get }
    /// Whether bytes of the connection are missing without it, so that its removal must close the connection.
    var mustCloseOnRemoval: Bool { get }
}

extension ToxicMachine {
    var chunksMax: Int { 1 }
    var isUrgent: Bool { false }
    var holdsFirst: Bool { true }
    var mustCloseOnRemoval: Bool { false }
}

/// What a toxic does next.
enum ToxicStep {
    /// Nothing, until something arrives.
    case idle
    /// Nothing, until then.
    case wait(until: Instant)
    /// Passes bytes on.
    case pass(ByteBuffer)
    /// Passes bytes on, to be sent by themselves.
    case passAlone(ByteBuffer)
    /// Passes the end of the stream on.
    case finish
    /// Closes both sockets after what has passed, as soon as that has passed what stands behind too.
    case close
    /// Closes both sockets with a RST.
    case reset
}
