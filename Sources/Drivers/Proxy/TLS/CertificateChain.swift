#if TLS
internal import NIOSSL

/// The certificates of an upstream, as their verification has seen them.
final class CertificateChain {
    private var certificates: [NIOSSLCertificate] = []

    /// Returns the certificates that the upstream has sent, the first one for its name: those of the verified path without
    /// its anchor, which servers do not send.
    ///
    /// - Parameter leaf: The certificate for the upstream's name.
    func all(leaf: NIOSSLCertificate?) -> [NIOSSLCertificate] {
        guard let leaf else { return [] }
        // The path is verified from its anchor.
        return [leaf] + certificates.dropFirst().reversed().filter { $0 != leaf }
    }

    /// Creates a handler whose verification is recorded.
    func handler(_ context: NIOSSLContext, serverName: String?) throws -> NIOSSLClientHandler {
        try Self.handler(context, serverName) { [weak self] result, certificate in
            if let self, !certificates.contains(certificate) { certificates.append(certificate) }
            return result
        }
    }

    private static func handler<Handler: RecordedVerification>(
        _ context: NIOSSLContext, _ serverName: String?, _ callback: @escaping NIOSSLVerificationCallback
    ) throws -> Handler {
        try Handler(context: context, serverHostname: serverName, verificationCallback: callback)
    }
}

/// NIO's handler with a callback for each certificate of the path that it verifies. Its initializer is deprecated in favour
/// of one that replaces the verification.
private protocol RecordedVerification {
    init(context: NIOSSLContext, serverHostname: String?, verificationCallback: NIOSSLVerificationCallback?) throws
}

extension NIOSSLClientHandler: RecordedVerification {}
#endif
