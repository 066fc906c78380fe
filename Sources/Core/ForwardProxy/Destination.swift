/// A destination that a client names.
public struct Destination: Hashable, Sendable, CustomStringConvertible {
    /// A name in lower case without a trailing dot, or an address in its canonical form, IPv6 without brackets. ASCII.
    public var host: String
    /// The port, 1 to 65535.
    public var port: Int

    /// Creates a destination from a host that is in its normal form.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Creates the destination of an authority of a URL (`api.test:443`, `[::1]:80`); `nil` if it is none.
    ///
    /// - Parameter defaultPort: The port if the authority has none; `nil` if it must have one.
    public init?(authority: String, defaultPort: Int? = nil) {
        guard let destination = try? HostSyntax.destination(Array(authority.utf8)[...], defaultPort: defaultPort) else {
            return nil
        }
        self = destination
    }

    /// The address, if the host is one.
    public var address: IPAddress? { IPAddress(host) }

    /// Whether the host is an address and needs no look-up.
    public var isNumericAddress: Bool { address != nil }

    /// The host and the port as in a URL.
    public var description: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
