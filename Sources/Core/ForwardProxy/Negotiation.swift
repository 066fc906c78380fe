public import NIOCore

/// The first bytes of a client: detects the protocol, reads the request for a destination, writes the replies.
public struct Negotiation: Sendable {
    /// What the driver does next.
    public enum Step: Sendable {
        /// Write these bytes; the negotiation goes on.
        case reply(ByteBuffer)
        /// Connect the destination. Write ``Negotiation/established()`` or ``Negotiation/failed(_:)``; after a failure,
        /// close the connection. Bytes of the client that arrive meanwhile stay in the negotiation.
        case open(Destination)
        /// The client sends requests in absolute form: give ``Negotiation/takeRemainder()`` and all later bytes to a
        /// ``RequestForwarder``.
        case forwardRequests
        /// Write these bytes and close the connection.
        case refuse(ByteBuffer)
    }

    /// Creates the negotiation of a new client.
    public init(_ settings: NegotiationSettings) {}

    /// The number of bytes that the negotiation holds. The driver stops reading while it exceeds
    /// ``bytesKeptMax`` (back-pressure).
    public var bytesKept: Int { 0 }

    /// The number of bytes above which the driver stops reading from the client until the connection is established.
    public static let bytesKeptMax = 128 << 10

    /// Reports bytes of the client.
    public mutating func received(_ bytes: ByteBuffer) {}

    /// Returns the next step; `nil` if more bytes are needed, or after a step that ends the negotiation.
    public mutating func next() -> Step? { nil }

    /// Returns the reply when the destination is connected.
    public func established() -> ByteBuffer { ByteBuffer() }

    /// Returns the reply when the destination cannot be connected. The driver closes the connection after it.
    public func failed(_ failure: ConnectFailure) -> ByteBuffer { ByteBuffer() }

    /// Takes the bytes after the negotiation; with ``Step/forwardRequests`` the requests from the first byte on.
    public mutating func takeRemainder() -> ByteBuffer { ByteBuffer() }
}
