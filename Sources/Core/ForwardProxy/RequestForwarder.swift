public import NIOCore

/// Forwards the requests in absolute form of one client connection to several origins, one request at a time.
public struct RequestForwarder: Sendable {
    /// The number of a connection to an origin; it is used once.
    public typealias Origin = Int

    /// An instruction for the driver.
    public enum Action: Sendable {
        /// Connect the destination; report ``established(_:)`` or ``failed(_:_:)``.
        case open(Origin, Destination)
        /// Write bytes to the origin.
        case send(ByteBuffer, Origin)
        /// Close the sending side to the origin after all bytes (FIN).
        case finishSending(Origin)
        /// Close the connection to the origin; also one that is not established yet. No event of it has an effect.
        case closeOrigin(Origin)
        /// Abort the connection to the origin (RST), because the client has aborted.
        case resetOrigin(Origin)
        /// Write bytes to the client.
        case reply(ByteBuffer)
        /// Pause reading from the client.
        case pauseClient
        /// Resume reading from the client.
        case resumeClient
        /// Close the sending side to the client after all bytes (FIN). After an upgrade the client may still send.
        case closeClient
        /// Abort the connection to the client (RST) after all bytes.
        case resetClient
    }

    /// Creates the forwarder of one client connection.
    public init(_ settings: NegotiationSettings) {}

    /// Whether no action follows, whatever happens: when the last actions are done, the driver closes the connection.
    public var isFinished: Bool { false }

    /// The number of bytes of the client that the forwarder holds.
    public var bytesKept: Int { 0 }

    /// Reports bytes of the client.
    public mutating func receivedFromClient(_ bytes: ByteBuffer) {}
    /// Reports that the client has closed its sending side (FIN).
    public mutating func clientClosed() {}
    /// Reports that the client has aborted the connection (RST).
    public mutating func clientGone() {}
    /// Reports that an origin is connected.
    public mutating func established(_ origin: Origin) {}
    /// Reports that an origin cannot be connected.
    public mutating func failed(_ origin: Origin, _ failure: ConnectFailure) {}
    /// Reports bytes of an origin.
    public mutating func received(_ bytes: ByteBuffer, from origin: Origin) {}
    /// Reports that an origin has closed its sending side (FIN).
    public mutating func finished(_ origin: Origin) {}
    /// Reports that an origin has aborted the connection (RST).
    public mutating func reset(_ origin: Origin) {}
    /// Returns the next action.
    public mutating func takeAction() -> Action? { nil }
}
