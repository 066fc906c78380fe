internal import Determinism
internal import NIOCore

/// The effect of a toxic on one stream of one connection.
protocol ToxicMachine {
    /// Consumes the front of the input and returns the result. The chain calls it after each input and at the time of
    /// ``ToxicStep/wait(until:)``.
    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep

    /// The maximum number of chunks that the input queue holds; when it is full, the toxic before it stops.
    var chunksMax: Int { get }
    /// Whether the toxic runs even if the next toxic or the link is full.
    var ignoresBackPressure: Bool { get }
    /// Whether the toxic has begun to process the first chunk of its input, so that an update releases that chunk.
    var hasBegunFirstChunk: Bool { get }
    /// Whether the toxic discards bytes, so that its removal must close the connection.
    var mustCloseOnRemoval: Bool { get }
}

extension ToxicMachine {
    var chunksMax: Int { 1 }
    var ignoresBackPressure: Bool { false }
    var hasBegunFirstChunk: Bool { true }
    var mustCloseOnRemoval: Bool { false }
}

/// The result of running a toxic.
enum ToxicStep {
    /// The toxic runs again at the next input.
    case idle
    /// The toxic runs again at the next input, or at this time.
    case wait(until: Instant)
    /// Passes bytes on.
    case pass(ByteBuffer)
    /// Passes bytes on, to be sent in a packet of their own.
    case passAlone(ByteBuffer)
    /// Passes the end of the stream on.
    case finish
    /// Closes both sockets after all bytes passed so far have left the following toxics.
    case close
    /// Aborts both sockets (RST).
    case reset
}
