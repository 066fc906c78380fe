#if !TLS
public import ForwardProxy

// The settings and parts of TLS in a build without it. None of them can be created, so that their values are
// without meaning.

/// The TLS of the connections to an upstream, which needs the package trait `TLS`.
public struct UpstreamTLS: Sendable {
    public var isVerified: Bool { false }
    public var rewritesHost: Bool { false }
    public var url: String { "" }
    public var authority: OriginAuthority { OriginAuthority(Destination(host: "", port: 0)) }
    public func hasSameSettings(as other: UpstreamTLS) -> Bool { true }

    /// Throws ``TLSSupport/missing``.
    public init(
        url: String, _ certificates: UpstreamCertificates = UpstreamCertificates(), rewritesHost: Bool = true
    ) throws(UpstreamTLSError) {
        throw UpstreamTLSError(part: .url, problem: TLSSupport.missing)
    }

    /// Returns whether a text is the URL of an upstream with TLS.
    public static func isURL(_ text: String) -> Bool { OriginAuthority.isURL(text) }
}

extension UpstreamCertificates {
    /// Does nothing: what uses the certificates cannot be created.
    public func check() throws(UpstreamTLSError) {}
}

/// The handler between the TLS of a channel and the handler of its plain bytes.
package final class TLSUpstreamHandler {
    private init() {}

    package var isTruncated: Bool { false }

    package func closesAbortively() {}
}
#endif
