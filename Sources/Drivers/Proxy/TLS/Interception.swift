public import Determinism
public import ForwardProxy
public import HTTPSockets

/// The interception of TLS connections: the hosts, and the certificates on both sides of the proxy.
public struct Interception: Sendable {
    /// The intercepted hosts.
    public var hosts: InterceptedHosts
    /// The authority whose certificates clients must accept.
    public var authority: CertificateAuthority
    /// The certificates for the connections to the upstreams.
    public var upstream: UpstreamCertificates
    /// The time limit for the handshakes of clients (``ForwardProxy/HandshakeLimit``).
    public var handshakeTimeMax = HandshakeLimit.timeMaxDefault

    /// Creates the settings.
    public init(
        hosts: InterceptedHosts, authority: CertificateAuthority,
        upstream: UpstreamCertificates = UpstreamCertificates()
    ) {
        self.hosts = hosts
        self.authority = authority
        self.upstream = upstream
    }

    /// Returns whether connections to a host are intercepted.
    public func includes(_ host: String) -> Bool { hosts.includes(host) }
}
