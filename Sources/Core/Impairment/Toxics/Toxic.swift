internal import Determinism
public import LinkModel

/// A change to one stream of a proxy's connections, before their bytes enter the link.
///
/// Names, attributes and units are Toxiproxy's. The toxics of a stream form a chain in the order in which they were
/// added; the last one is next to the link. Each effect is a ``ToxicMachine`` in a file of its own.
public struct Toxic: Hashable, Sendable {
    /// The name, unique among the proxy's toxics of both streams.
    public let name: String
    /// The stream that the toxic changes.
    public let stream: Direction
    /// The probability that the toxic applies to a connection: less than 0 counts as 0, more than 1 as 1. Drawn for
    /// each connection when it is opened, when the toxic is added and when it is updated.
    public var toxicity: Double
    /// The effect.
    public var effect: Effect

    /// Creates a toxic.
    public init(name: String, stream: Direction, toxicity: Double = 1, effect: Effect) {
        self.name = name
        self.stream = stream
        self.toxicity = toxicity
        self.effect = effect
    }

    /// The effect of a toxic, with its attributes. A value that is out of range counts as the nearest value in range.
    public enum Effect: Hashable, Sendable {
        /// Each chunk leaves `latency` ms ± up to `jitter` ms after its arrival.
        case latency(latency: Int64, jitter: Int64)
        /// The stream carries `rate` kB/s (1 kB = 1000 B); at 0 and below nothing passes.
        case bandwidth(rate: Int64)
        /// The end of the stream is delayed by `delay` ms.
        case slowClose(delay: Int64)
        /// All bytes are discarded, and both sockets are closed when no byte has arrived for `timeout` ms; 0 is never.
        case timeout(timeout: Int64)
        /// Both sockets are aborted (RST) `timeout` ms after the first byte or the end of the stream.
        case resetPeer(timeout: Int64)
        /// Chunks are split into pieces of about `averageSize` bytes, with a pause of `delay` µs after each.
        case slicer(averageSize: Int64, sizeVariation: Int64, delay: Int64)
        /// `bytes` bytes pass, then both sockets are closed.
        case limitData(bytes: Int64)
        /// Each packet is lost with probability `lossRate`, plus `correlation` after a lost packet. TCP retransmits
        /// them, so that bytes are delayed and none is missing.
        case packetLoss(lossRate: Double, correlation: Double)
        /// No effect.
        case noop
    }

    /// The maximum number of chunks that ``Effect/latency(latency:jitter:)`` holds; beyond them, reading from the
    /// sender pauses.
    public static let latencyChunksMax = 1024
    /// The longest time of an attribute: some 31 years, so that sums stay within 64 bits.
    static let millisecondsMax: Int64 = 1_000_000_000_000

    /// Returns milliseconds as a span; a negative number counts as 0.
    static func span(milliseconds: Int64) -> Nanoseconds {
        .milliseconds(min(max(0, milliseconds), millisecondsMax))
    }
}
