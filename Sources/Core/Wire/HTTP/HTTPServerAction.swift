public import NIOCore

/// An instruction of an ``HTTPServerMachine`` for its driver.
public enum HTTPServerAction: Sendable {
    /// Handle a request. The driver reads its body, if it wants it, and then responds.
    case request(HTTPServerRequest)
    /// The body being read has grown by this number of bytes. A driver with a limit on all bodies together counts them,
    /// and fails the body with ``HTTPServerMachine/failBody(_:at:)`` when they exceed it.
    case bodyGrew(Int)
    /// The body that the driver has asked for.
    case body(Result<[UInt8], HTTPServerBodyError>)
    /// Write these bytes, and report those accepted with ``HTTPServerMachine/written(_:at:)``.
    case write(ByteBuffer)
    /// Produce the next part of the response's body, and pass it with ``HTTPServerMachine/sendPart(_:at:)``.
    case producePart
    /// The response is written; the request is done.
    case responseWritten
    /// Send FIN; input is still read.
    case closeOutput
    /// Close the connection.
    case close
    /// Abort the connection with a RST, so that a truncated response cannot pass for a complete one.
    case abort
}
