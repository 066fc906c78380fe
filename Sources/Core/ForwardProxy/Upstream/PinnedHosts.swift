/// The hosts whose clients do not accept the certificates of a proxy that ends their TLS: their connections pass as they
/// are.
///
/// A client says so with an alert of TLS, or closes the connection instead of completing the handshake. The latter may have
/// other causes, such as a timeout of the client; it counts if it happens ``closingsMax`` times in a row, and if no client
/// has ever completed a handshake.
public struct PinnedHosts: Hashable, Sendable {
    /// The hosts, in the order in which they were recorded.
    public private(set) var hosts: [String] = []
    /// The same as bytes, because comparing strings would normalise them.
    private var keys: Set<[UInt8]> = []
    /// The handshakes that clients have closed in a row; -1 for a host with a complete handshake.
    private var closings: [[UInt8]: Int] = [:]

    /// The greatest number of hosts; further ones are not recorded.
    public static let hostsMax = 1_000
    /// The number of handshakes in a row that clients close after the certificate before their host is recorded.
    public static let closingsMax = 3

    /// Creates an empty table.
    public init() {}

    /// Returns whether the connections to a host pass as they are.
    public func contains(_ host: String) -> Bool { !keys.isEmpty && keys.contains(Array(host.utf8)) }

    /// Returns whether an alert of a client is about the certificate of the server (RFC 8446, 6.2).
    public static func isAboutCertificate(alert: UInt8) -> Bool {
        switch alert {
        // bad_certificate to certificate_unknown, unknown_ca, access_denied.
        case 42...46, 48, 49: true
        default: false
        }
    }

    /// Records an alert about the certificate. Returns whether the host is new.
    public mutating func recordAlert(_ host: String) -> Bool {
        let key = Array(host.utf8)
        guard keys.count < Self.hostsMax, keys.insert(key).inserted else { return false }
        hosts.append(host)
        closings[key] = nil
        return true
    }

    /// Records a handshake that the client has closed after the certificate. Returns whether the host is a new one.
    public mutating func recordClosing(_ host: String) -> Bool {
        let key = Array(host.utf8)
        let count = closings[key]
        guard count != -1, count != nil || closings.count < Self.hostsMax else { return false }
        closings[key] = (count ?? 0) + 1
        return closings[key] == Self.closingsMax && recordAlert(host)
    }

    /// Records a complete handshake.
    public mutating func recordHandshake(_ host: String) {
        let key = Array(host.utf8)
        if closings[key] != nil || closings.count < Self.hostsMax { closings[key] = -1 }
    }
}
