/// The settings of negotiations, the same for all clients of a listener.
public struct NegotiationSettings: Sendable {
    /// The user and the password of clients; `nil` if clients need none.
    public var credentials: ProxyCredentials?
    /// The addresses under which clients reach the listener. The first one is in the PAC file, unless the client used
    /// another one of them. The page shows all.
    public var addresses: [Destination]

    /// Creates the settings of a listener.
    public init(addresses: [Destination], credentials: ProxyCredentials? = nil) {
        self.addresses = addresses
        self.credentials = credentials
    }
}

/// The user and the password that clients of the proxy must send. The description does not contain the password.
public struct ProxyCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    let user: [UInt8]
    let password: [UInt8]

    /// Creates credentials; `nil` if the user contains a colon, or if a part is empty or longer than 255 bytes.
    public init?(user: String, password: String) {
        self.user = Array(user.utf8)
        self.password = Array(password.utf8)
    }

    public var description: String { "ProxyCredentials" }
    public var debugDescription: String { description }
}
