internal import HTTPTypes
internal import Wire

/// The settings of negotiations, the same for all clients of a listener.
public struct NegotiationSettings: Sendable {
    /// The user and the password of clients; `nil` if clients need none.
    public let credentials: ProxyCredentials?
    /// The addresses under which clients reach the listener. The first one is in the PAC file, unless the client used
    /// another one of them. The page shows all.
    public let addresses: [Destination]
    /// Whether the proxy forwards datagrams.
    public let associates: Bool

    /// Creates the settings of a listener. Addresses that are not in their normal form are left out, because the page
    /// and the PAC file contain them.
    public init(addresses: [Destination], credentials: ProxyCredentials? = nil, associates: Bool = false) {
        self.associates = associates
        self.addresses = addresses.filter { Destination(authority: $0.description) == $0 }
        self.credentials = credentials
    }

    /// Returns whether the credentials of a request are valid, or none are needed.
    func permits(_ head: HTTPRequestHead) -> Bool {
        guard let credentials else { return true }
        let values = head.fields[values: .proxyAuthorization]
        return values.count == 1 && credentials.matches(basic: values[0])
    }
}

/// The user and the password that clients of the proxy must send. The description contains neither.
public struct ProxyCredentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let user: [UInt8]
    private let password: [UInt8]
    /// The Base64 of both (RFC 7617, 2).
    private let token: [UInt8]

    /// The most bytes of a user and of a password (RFC 1929, 2).
    public static let bytesMax = 255

    /// Creates credentials; `nil` if the user contains a colon, or if a part is empty or longer than ``bytesMax``.
    public init?(user: String, password: String) {
        let lengths = 1...Self.bytesMax
        guard lengths.contains(user.utf8.count), lengths.contains(password.utf8.count),
            !user.utf8.contains(UInt8(ascii: ":"))
        else { return nil }
        self.user = Array(user.utf8)
        self.password = Array(password.utf8)
        token = Array(Base64.encode(self.user + [UInt8(ascii: ":")] + self.password).utf8)
    }

    /// Returns whether the value of `Proxy-Authorization` has these credentials.
    func matches(basic value: String) -> Bool {
        let scheme = Array("basic ".utf8)
        let bytes = Array(value.utf8)
        guard bytes.prefix(scheme.count).map({ (65...90).contains($0) ? $0 | 0x20 : $0 }) == scheme else {
            return false
        }
        return Self.isSame(token, bytes.dropFirst(scheme.count).drop { $0 == 0x20 })
    }

    /// Returns whether a user and a password of SOCKS are these credentials.
    func matches(user: [UInt8], password: [UInt8]) -> Bool {
        // Both are compared, so that the time does not tell which one differs.
        let (hasUser, hasPassword) = (Self.isSame(self.user, user[...]), Self.isSame(self.password, password[...]))
        return hasUser && hasPassword
    }

    /// Compares bytes in a time that depends only on the number of those received.
    private static func isSame(_ secret: [UInt8], _ received: ArraySlice<UInt8>) -> Bool {
        var difference = secret.count == received.count ? UInt8(0) : 1
        for (index, byte) in received.enumerated() { difference |= byte ^ secret[index % secret.count] }
        return difference == 0
    }

    public var description: String { "credentials of clients" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
