#if TLS
public import ForwardProxy
internal import NIOCore
package import NIOSSL

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The TLS of the connections to a server (of a proxy: its upstream): `https://api.example.com`. The certificate of the server
/// is verified, and HTTP/1.1 alone is offered.
public struct UpstreamTLS: Sendable {
    /// What the settings are made of.
    private struct Source: Hashable {
        var authority: OriginAuthority
        var certificates: UpstreamCertificates
        var rewritesHost: Bool
    }

    private let source: Source
    private let context: NIOSSLContext
    /// Whether the certificate of the upstream is verified.
    public var isVerified: Bool { source.certificates.isVerified }
    /// Whether the names in messages are changed (``ForwardProxy/UpstreamRewriter``).
    public var rewritesHost: Bool { source.rewritesHost }
    /// The host and the port.
    public var authority: OriginAuthority { source.authority }
    /// The URL of the upstream in its normal form.
    public var url: String { "https://\(authority)" }

    /// Returns whether other settings are the same.
    public func hasSameSettings(as other: UpstreamTLS) -> Bool { source == other.source }

    /// Creates the settings; reads the system's certificates of authorities, which takes some milliseconds.
    ///
    /// - Parameters:
    ///   - url: The URL of the upstream, without a path.
    ///   - certificates: The certificates of the connections.
    ///   - rewritesHost: Whether the names in messages are changed.
    public init(
        url: String, _ certificates: UpstreamCertificates = UpstreamCertificates(), rewritesHost: Bool = true
    ) throws(UpstreamTLSError) {
        let authority: OriginAuthority
        do throws(UpstreamURLError) {
            authority = try OriginAuthority(url: url)
        } catch {
            throw UpstreamTLSError(part: .url, problem: error.problem)
        }
        source = Source(authority: authority, certificates: certificates, rewritesHost: rewritesHost)
        context = try certificates.context(protocols: ["http/1.1"])
    }

    /// Returns whether a text is the URL of an upstream with TLS.
    public static func isURL(_ text: String) -> Bool { OriginAuthority.isURL(text) }

    /// Creates the handler of a connection.
    package func handler() throws -> NIOSSLClientHandler {
        // An address is not sent (RFC 6066, 3); the certificate must name it.
        let destination = authority.destination
        return try NIOSSLClientHandler(
            context: context, serverHostname: destination.isNumericAddress ? nil : destination.host)
    }
}

extension TLSFailure {
    /// Describes an error of a handshake, or of TLS after it.
    ///
    /// - Parameter certificate: The certificate that the upstream has sent.
    package init(_ error: any Error, _ certificate: NIOSSLCertificate?, upstream: OriginAuthority) {
        switch error {
        case NIOSSLError.handshakeFailed(let cause): self.init(cause, certificate)
        case let cause as BoringSSLError: self.init(cause, certificate)
        case let error as NIOSSLExtraError
        where error == .failedToValidateHostname || error == .serverHostnameImpossibleToMatch:
            self = .wrongName(upstream.destination.host)
        case NIOSSLError.unableToValidateCertificate: self = .wrongName(upstream.destination.host)
        case let error as IOError where error.errnoCode == ECONNRESET: self = .closed
        case NIOSSLError.uncleanShutdown: self = .closed
        default: self = .protocolError("\(SystemErrorDescription(error))")
        }
    }

    private init(_ cause: BoringSSLError, _ certificate: NIOSSLCertificate?) {
        guard case .sslError(let stack) = cause, let error = stack.first else {
            self = .protocolError("\(cause)")
            return
        }
        if error == .eofDuringHandshake {
            self = .closed
            return
        }
        // The description is "Error: CODE ..." or has the words of BoringSSL. A reason from 1000 on is an alert.
        let words = error.description.split(separator: " ")
        let reason = words.count > 1 ? (UInt32(words[1]) ?? 0) & 0xFFF : 0
        switch reason {
        case 125: self.init(invalid: certificate)
        case 247: self = .notTLS
        case 1000...1255: self = .alert(UInt8(reason - 1000))
        default: self = .protocolError(Self.words(of: error.description))
        }
    }

    /// Returns BoringSSL's word for an error: "WRONG_CURVE" of "error:100000f7:SSL routines:OPENSSL_internal:WRONG_CURVE
    /// at FILE:LINE".
    private static func words(of description: String) -> String {
        guard let marker = description.firstRange(of: "OPENSSL_internal:") else { return description }
        return String(description[marker.upperBound...].prefix { $0 != " " })
    }

    /// Describes the reason why a certificate is not accepted. The library does not name it, so the dates are checked
    /// first.
    private init(invalid certificate: NIOSSLCertificate?) {
        let now = Int64(time(nil))
        guard let certificate else {
            self = .unknownAuthority
            return
        }
        let (start, end) = (Int64(certificate.notValidBefore), Int64(certificate.notValidAfter))
        self = end < now ? .expired(end) : start > now ? .notYetValid(start) : .unknownAuthority
    }
}
#endif
