internal import HTTPSockets
internal import HTTPTypes
internal import Proxy

/// The upstream of a proxy in a request: `HOST:PORT`, or `:PORT` or `PORT` for this machine, or `https://HOST[:PORT]`.
enum UpstreamText {
    /// The fields of the TLS of an upstream.
    static let tlsFieldNames = ["ca", "certificate", "key", "insecure", "rewrite_host"]

    /// Returns the TLS of an upstream from the field `upstream_tls`; `nil` if the upstream is no URL of HTTPS. Reads the
    /// system's certificates of authorities.
    static func tls(_ text: String, _ fields: JSONFields) throws(APIError) -> UpstreamTLS? {
        let settings = try fields.object("upstream_tls")
        let isIntercepting = InterceptionRequest.fieldNames.contains { fields[$0] != nil }
        guard UpstreamTLS.isURL(text) else {
            if settings != nil && !isIntercepting {
                throw .badBody("upstream_tls needs an upstream https://HOST, or intercept, in the same request")
            }
            return nil
        }
        if isIntercepting {
            throw .badBody(
                "intercept is for clients that speak TLS; those of an upstream https://HOST speak HTTP, and faults "
                    + "already see their requests")
        }
        let certificates = try certificates(settings)
        let rewritesHost = try settings?.bool("rewrite_host") ?? true
        do throws(UpstreamTLSError) {
            return try UpstreamTLS(url: text, certificates, rewritesHost: rewritesHost)
        } catch {
            throw Self.error(error)
        }
    }

    /// Returns the certificates of `upstream_tls`.
    static func certificates(_ settings: JSONFields?) throws(APIError) -> UpstreamCertificates {
        func bytes(_ name: String) throws(APIError) -> [UInt8]? {
            try settings?.text(name, bytesMax: UpstreamCertificates.fileBytesMax).map { Array($0.utf8) }
        }
        let (certificate, key) = (try bytes("certificate"), try bytes("key"))
        guard (certificate == nil) == (key == nil) else {
            throw .badBody("upstream_tls needs certificate and key, or none")
        }
        var identity: UpstreamCertificates.Identity?
        if let certificate, let key { identity = UpstreamCertificates.Identity(certificates: certificate, key: key) }
        return UpstreamCertificates(
            authorities: try bytes("ca"), identity: identity, isVerified: try settings?.bool("insecure") != true)
    }

    /// Returns the error of settings that cannot be used.
    static func error(_ error: UpstreamTLSError) -> APIError {
        let part =
            switch error.part {
            case .url: "upstream"
            case .authorities: "upstream_tls.ca"
            case .certificate: "upstream_tls.certificate"
            case .key: "upstream_tls.key"
            }
        return .badBody(RequestWarnings.printable("\(part): \(error.problem)", bytesMax: 400))
    }

    /// Throws if the port is 0, which no server can have.
    static func check(_ text: String) throws(APIError) {
        guard Endpoint(text)?.port == 0 else { return }
        throw APIError(
            .badRequest, "the upstream '\(RequestWarnings.printable(text))' has port 0; use the port of the server")
    }

    /// Returns a warning about a text without a usable host or port; `nil` if there is none. Performs no lookup.
    static func warning(_ text: String) -> String? {
        if isPort(text) || UpstreamTLS.isURL(text) { return nil }
        let error =
            text.isEmpty || text.utf8.last == UInt8(ascii: ":")
            ? "address \(text): missing port in address" : ListenErrorText.ofSyntax(text)
        return error.map {
            "\(RequestWarnings.printable("upstream: \($0)", bytesMax: 160)); every connection to it fails"
        }
    }

    /// Returns the endpoint that a proxy dials. A text without a usable port becomes a host that no lookup finds.
    static func endpoint(_ text: String) async -> Endpoint {
        if isPort(text), let port = Int(text) { return Endpoint(host: "localhost", port: port) }
        let endpoint = await ListenAddress.upstream(text)
        // Otherwise a dial of '2001:db8::1' or 'redis' would use port 0, and '8.8' would mean 8.0.0.8.
        return endpoint.port == 0 ? Endpoint(host: "no port in '\(text)'", port: 0) : endpoint
    }

    private static func isPort(_ text: String) -> Bool {
        text.allSatisfy { $0.isASCII && $0.isNumber } && Int(text).map { (1...65535).contains($0) } ?? false
    }
}
