/// The hosts whose clients do not accept the certificates of a proxy that ends their TLS: their connections pass as they
/// are.
///
/// A client says so with an alert of TLS, or closes the connection instead of completing the handshake. A host is recorded
/// if this happens ``refusalsMax`` times in a row: a browser whose user accepts any certificate sends an alert, too, and
/// then connects again. A closing may also have other causes, such as a timeout of the client; it counts only if no client
/// has ever completed a handshake.
public struct PinnedHosts: Hashable, Sendable {
    /// The handshakes with a host.
    private struct Handshakes: Hashable {
        var refusedInARow = 0
        var isAnyComplete = false
    }

    /// The hosts, in the order in which they were recorded.
    public private(set) var hosts: [String] = []
    /// The same as bytes, because comparing strings would normalise them.
    private var keys: Set<[UInt8]> = []
    private var handshakes: [[UInt8]: Handshakes] = [:]

    /// The greatest number of hosts; further ones are not recorded.
    public static let hostsMax = 1_000
    /// The number of handshakes in a row that clients refuse before their host is recorded.
    public static let refusalsMax = 3

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

    /// Records an alert about the certificate. Returns the number of refusals in a row, with which the host is recorded if
    /// it is ``refusalsMax``; 0 if the alert does not count.
    public mutating func recordAlert(_ host: String) -> Int { recordRefusal(host, countsAfterHandshake: true) }

    /// Records a handshake that the client has closed after the certificate. Returns the same as ``recordAlert(_:)``.
    public mutating func recordClosing(_ host: String) -> Int { recordRefusal(host, countsAfterHandshake: false) }

    private mutating func recordRefusal(_ host: String, countsAfterHandshake: Bool) -> Int {
        let key = Array(host.utf8)
        guard keys.count < Self.hostsMax, !keys.contains(key) else { return 0 }
        guard handshakes[key] != nil || handshakes.count < Self.hostsMax else { return 0 }
        var record = handshakes[key] ?? Handshakes()
        guard countsAfterHandshake || !record.isAnyComplete else { return 0 }
        record.refusedInARow += 1
        let isLast = record.refusedInARow >= Self.refusalsMax
        handshakes[key] = isLast ? nil : record
        if isLast {
            keys.insert(key)
            hosts.append(host)
        }
        return record.refusedInARow
    }

    /// Records a complete handshake.
    public mutating func recordHandshake(_ host: String) {
        let key = Array(host.utf8)
        guard handshakes[key] != nil || handshakes.count < Self.hostsMax else { return }
        handshakes[key] = Handshakes(isAnyComplete: true)
    }
}
