/// The URL of a server (RFC 9110, 4.2.1 and 4.2.2).
public struct ServerURL: Hashable, Sendable {
    /// The host's name or address, without the brackets of an IPv6 address.
    public let host: String
    /// The port.
    public let port: Int
    /// The path, without a slash at its end; empty for the root.
    public let path: String
    /// Whether the scheme is `https`.
    public let isSecure: Bool

    /// Whether the host is this machine, by a name or an address that does not depend on its settings.
    public var isLoopback: Bool { ["localhost", "127.0.0.1", "::1"].contains(host.lowercased()) }

    /// Parses a URL; `nil` if it is not an `http` or `https` URL with a host, or if it has a query, a fragment or a user.
    public init?(_ text: String) {
        isSecure = text.lowercased().hasPrefix("https://")
        let scheme = isSecure ? "https://" : "http://"
        guard text.lowercased().hasPrefix(scheme) else { return nil }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        guard rest.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"?#@\\".utf8.contains($0) }) else { return nil }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") }
        var path = rest.dropFirst(authority.count)
        while path.last == UInt8(ascii: "/") { path = path.dropLast() }
        var host = authority
        var port = isSecure ? 443 : 80
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            authority[colon...].firstIndex(of: UInt8(ascii: "]")) == nil
        {
            let digits = authority[authority.index(after: colon)...]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(String(digits) ?? ""),
                (1...65535).contains(number)
            else { return nil }
            port = number
            host = authority[..<colon]
        }
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.host = String(decoding: host, as: UTF8.self)
        self.port = port
        self.path = String(decoding: path, as: UTF8.self)
    }
}
