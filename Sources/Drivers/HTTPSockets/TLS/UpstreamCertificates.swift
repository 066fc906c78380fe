internal import NIOCore

#if TLS
package import NIOSSL
#endif

/// The certificates of connections with TLS to servers: the trusted authorities, and the certificate of the client or proxy.
public struct UpstreamCertificates: Hashable, Sendable {
    /// The certificate and the private key of this side, for a server that demands them, in PEM form.
    public struct Identity: Hashable, Sendable, CustomStringConvertible {
        /// The certificate, followed by those of intermediate authorities.
        public var certificates: [UInt8]
        /// The private key, not encrypted.
        public var key: [UInt8]

        /// Creates an identity.
        public init(certificates: [UInt8], key: [UInt8]) {
            self.certificates = certificates
            self.key = key
        }

        public var description: String { "certificate and key" }
    }

    /// The certificates of the trusted authorities in PEM form; `nil` for those of the system.
    public let authorities: [UInt8]?
    /// The certificate for upstreams that demand one.
    public let identity: Identity?
    /// Whether the certificates of upstreams are verified.
    public let isVerified: Bool

    /// The time for which a closed connection waits for the upstream's close_notify, which has no effect on the client.
    private static let closeTimeMax = TimeAmount.milliseconds(250)
    /// The maximum number of bytes of a file of certificates or keys. The certificates of the public authorities have
    /// about 250 kB.
    public static let fileBytesMax = 4 << 20

    /// Creates the settings; ``check()`` reads them.
    public init(authorities: [UInt8]? = nil, identity: Identity? = nil, isVerified: Bool = true) {
        self.authorities = authorities
        self.identity = identity
        self.isVerified = isVerified
    }
}

#if TLS
extension UpstreamCertificates {
    /// Throws the reason why the settings cannot be used.
    public func check() throws(UpstreamTLSError) { _ = try context(protocols: []) }

    /// Creates the context of connections; reads the system's certificates of authorities, which takes some milliseconds.
    ///
    /// - Parameters:
    ///   - protocols: The protocols to offer (ALPN); empty for none.
    ///   - versionMax: The highest version of TLS to offer; `nil` for the highest one of the library.
    package func context(protocols: [String], versionMax: TLSVersion? = nil) throws(UpstreamTLSError) -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.maximumTLSVersion = versionMax
        configuration.applicationProtocols = protocols
        configuration.shutdownTimeout = Self.closeTimeMax
        configuration.certificateVerification = isVerified ? .fullVerification : .none
        if let authorities {
            configuration.trustRoots = .certificates(try Self.certificates(authorities, .authorities))
        }
        if let identity {
            configuration.certificateChain = try Self.certificates(identity.certificates, .certificate)
                .map { .certificate($0) }
            guard let key = try? NIOSSLPrivateKey(bytes: identity.key, format: .pem) else {
                throw UpstreamTLSError(part: .key, problem: "there is no private key in PEM form, without a passphrase")
            }
            configuration.privateKey = .privateKey(key)
        }
        do {
            return try NIOSSLContext(configuration: configuration)
        } catch {
            if case NIOSSLError.failedToLoadPrivateKey = error {
                throw UpstreamTLSError(part: .key, problem: "the private key does not belong to the certificate")
            }
            // Images of containers often have no store of certificates.
            throw UpstreamTLSError(
                part: .authorities,
                problem: authorities == nil
                    ? "this system has no certificates of authorities; install ca-certificates, or give those to trust"
                    : "the certificates cannot be used: \(error)")
        }
    }

    private static func certificates(
        _ bytes: [UInt8], _ part: UpstreamTLSError.Part
    ) throws(UpstreamTLSError) -> [NIOSSLCertificate] {
        guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
            throw UpstreamTLSError(part: part, problem: "there is no certificate in PEM form (BEGIN CERTIFICATE)")
        }
        return certificates
    }
}
#endif
