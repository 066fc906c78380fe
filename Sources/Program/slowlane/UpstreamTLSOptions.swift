internal import ArgumentParser
internal import HTTPSockets
internal import Proxy

/// The options of an upstream with TLS, `--upstream https://HOST`.
struct UpstreamTLSOptions: ParsableArguments {
    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Change names between http://HOST:PORT of the client and https://HOST of the server: Host, Location, and the "
                + "attributes Domain and Secure of cookies."))
    var rewriteHost = true

    /// Returns the TLS of an upstream; `nil` if the upstream has none. Throws a validation error about the first option
    /// that is wrong.
    ///
    /// - Parameter isIntercepting: Whether the certificates are those of intercepted connections.
    func settings(
        upstream: String?, _ options: UpstreamCertificateOptions, isIntercepting: Bool
    ) throws -> UpstreamTLS? {
        guard let upstream, UpstreamTLS.isURL(upstream) else {
            if !rewriteHost || options.isGiven && !isIntercepting {
                throw ValidationError(
                    rewriteHost
                        ? "--upstream-ca, --upstream-cert, --upstream-key and --insecure need --upstream https://HOST or "
                            + "--intercept HOST" : "--no-rewrite-host needs --upstream https://HOST")
            }
            return nil
        }
        if isIntercepting {
            throw ValidationError(
                "--intercept is for clients that speak TLS; those of --upstream https://HOST speak HTTP, and faults "
                    + "already see their requests")
        }
        let certificates = try options.certificates()
        do throws(UpstreamTLSError) {
            return try UpstreamTLS(url: upstream, certificates, rewritesHost: rewriteHost)
        } catch {
            throw ValidationError(options.message(error))
        }
    }
}
