#if !TLS
public import ForwardProxy
internal import HTTPSockets
internal import NIOCore
internal import Wire

// The settings and parts of TLS in a build without it. None of them can be created, so that their values are
// without meaning.

/// A certificate authority for intercepted TLS connections, which needs the package trait `TLS`.
public struct CertificateAuthority: Sendable {
    public static let daysMax = 90
    public var hosts: InterceptedHosts { .all }
    public var certificatePEM: String { "" }
    public var certificateBytes: [UInt8] { [] }
    public var issuerPEM: String { "" }
    public var keyPEM: String { "" }
    public var name: String { "" }
    public var fingerprint: String { "" }
    public var keyDigest: String { "" }
    public var validity: ClosedRange<Int64> { 0...0 }
    public func check(_ hosts: InterceptedHosts, now: Int64) throws(CertificateAuthorityError) {}
    public func javaKeyStore(with others: String = "") -> [UInt8] { [] }

    /// Throws ``TLSSupport/missing``.
    public init(for hosts: InterceptedHosts, now: Int64, days: Int = 7) throws(CertificateAuthorityError) {
        throw CertificateAuthorityError(TLSSupport.missing)
    }

    /// Throws ``TLSSupport/missing``.
    public init(certificates: String, key: String) throws(CertificateAuthorityError) {
        throw CertificateAuthorityError(TLSSupport.missing)
    }
}

extension ProxyCore {
    func addTLS(
        to channel: any Channel, of session: Session, within timeout: TimeAmount
    ) throws -> TLSUpstreamHandler? { nil }

    func whenTLSIsEstablished(
        on connected: EventLoopFuture<any Channel>, of session: Session
    ) -> EventLoopFuture<any Channel> { connected }

    func tlsFailed(_ failure: TLSFailure, for session: Session) {}

    func addGate(to session: Session) {}

    func interceptedDestination(_ hello: ClientHello, of session: Session) -> Destination? { nil }
}
#endif
