/// A point of a handshake of TLS at which a fault fires.
///
/// Only what is not encrypted is known: the messages of TLS 1.3 after ServerHello are not.
public enum HandshakePoint: String, Hashable, Sendable, CaseIterable {
    /// The ClientHello has been written to the server, and nothing of the server's stream to the client.
    case afterClientHello = "after-client-hello"
    /// Half of the first record of the server, which begins with ServerHello, has been written to the client.
    case midServerHello = "mid-server-hello"
    /// The first record of the server has been written to the client.
    case afterServerHello = "after-server-hello"
    /// A number of bytes of the server's stream has been written to the client.
    case midStream = "mid-stream"

    /// The point of an exchange at the same socket.
    var exchangePoint: FaultPoint { self == .afterClientHello ? .beforeRequestEnd : .midResponse }
}
