internal import Wire

/// The reason why the TLS handshake with an upstream has failed.
public enum TLSFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// No certificate authority that is trusted has signed the certificate.
    case unknownAuthority
    /// The certificate has expired; the value is the end of its validity, in seconds since 1970.
    case expired(Int64)
    /// The certificate is not valid yet; the value is the start of its validity, in seconds since 1970.
    case notYetValid(Int64)
    /// The certificate is for other names than the one that was dialled.
    case wrongName(String)
    /// The upstream has sent a fatal alert (RFC 8446, 6).
    case alert(UInt8)
    /// The upstream does not speak TLS.
    case notTLS
    /// The upstream has closed the connection during the handshake.
    case closed
    /// Another error of the protocol; the value names it.
    case protocolError(String)

    /// The cause and the remedy in words: "the certificate has expired (valid until 2026-01-31)".
    public var text: (reason: String, remedy: String) {
        switch self {
        case .unknownAuthority:
            (
                "no trusted authority has signed the certificate",
                "trust its authority with --upstream-ca FILE (in the API: upstream_tls.ca)"
            )
        case .expired(let time):
            (
                "the certificate has expired (valid until \(HTTPDate.text(unixTime: time)))",
                "renew the certificate of the server"
            )
        case .notYetValid(let time):
            (
                "the certificate is not valid yet (valid from \(HTTPDate.text(unixTime: time)))",
                "check the clocks of the server and of this machine"
            )
        case .wrongName(let name):
            (
                "the certificate is not for '\(name)'",
                "use a name of the certificate in --upstream"
            )
        case .alert(let number):
            ("the server refused the handshake with the alert \(Self.name(ofAlert: number))", Self.remedy(for: number))
        case .notTLS:
            ("the server does not speak TLS on this port", "use --upstream HOST:PORT for a server without TLS")
        case .closed:
            ("the server closed the connection during the TLS handshake", "check that the port is that of HTTPS")
        case .protocolError(let text): ("the TLS handshake failed: \(text)", "check the settings of TLS of the server")
        }
    }

    public var description: String { text.reason }

    /// The error type of `Proxy-Status` with its parameters (RFC 9209, 2.3).
    var proxyStatus: String {
        switch self {
        case .unknownAuthority, .expired, .notYetValid, .wrongName: "tls_certificate_error"
        case .alert(let number):
            #"tls_alert_received; alert-id=\#(number); alert-message="\#(Self.name(ofAlert: number))""#
        case .notTLS, .closed, .protocolError: "tls_protocol_error"
        }
    }

    /// The response to a request for an upstream.
    func response(for upstream: String, omitsBody: Bool) -> ProxyResponse {
        ProxyResponse(
            status: 502, fields: [("Proxy-Status", "slowlane; error=\(proxyStatus)")],
            text: "cannot connect https://\(upstream): \(text.reason)\n\(text.remedy)\n", omitsBody: omitsBody)
    }

    // MARK: Alerts

    /// Returns the name of an alert in IANA's registry, or its number.
    public static func name(ofAlert number: UInt8) -> String { alertNames[number] ?? "\(number)" }

    private static let alertNames: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 22: "record_overflow",
        40: "handshake_failure", 42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked",
        45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
        49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
        71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
        109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
        113: "bad_certificate_status_response", 115: "unknown_psk_identity", 116: "certificate_required",
        120: "no_application_protocol",
    ]

    private static func remedy(for alert: UInt8) -> String {
        switch alert {
        case 40, 116: "the server may demand a certificate of the client: --upstream-cert FILE --upstream-key FILE"
        case 42...46, 48, 49: "check the certificate of --upstream-cert, which the server does not accept"
        case 112: "use a name of the server in --upstream"
        case 120: "the server must speak HTTP/1.1 (ALPN http/1.1); the proxy does not offer h2"
        default: "check the settings of TLS of the server"
        }
    }
}
