public import NIOCore

/// An instruction for the driver.
public enum HTTPClientAction: Sendable {
    /// Open a connection.
    case connect(HTTPConnectionID)
    /// Write these bytes, and report those that the kernel accepts with ``HTTPClientMachine/written(_:on:at:)``.
    case write(HTTPConnectionID, ByteBuffer)
    /// Close the connection, with a RST if abortive. No further action refers to it.
    case close(HTTPConnectionID, isAbortive: Bool)
    /// Report a piece of the body of a final response, to a request that streams.
    case piece(HTTPExchangeID, HTTPResponseHead, ByteBuffer)
    /// Report the result of an exchange.
    case finished(HTTPExchangeID, Result<HTTPClientResponse, HTTPClientError>)
}
