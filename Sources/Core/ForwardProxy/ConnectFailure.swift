/// The reason why a destination could not be connected, with what clients are told.
public enum ConnectFailure: Error, Hashable, Sendable, CaseIterable {
    /// The name does not exist (NXDOMAIN).
    case nameNotFound
    /// The name server failed (SERVFAIL).
    case nameServerFailure
    /// No name server responded.
    case lookupTimeout
    /// The destination refused the connection (RST).
    case connectionRefused
    /// The destination did not respond.
    case connectionTimeout
    /// There is no route to the destination.
    case unreachable
    /// A rule of the proxy refuses the host.
    case refusedByRule
    /// The proxy does not connect such destinations (``DestinationPolicy``).
    case notAllowed
    /// The destination is the proxy itself.
    case loop
    /// The proxy has as many connections as it may have.
    case tooManyConnections

    /// The status of the HTTP response.
    public var status: Int {
        switch self {
        case .nameNotFound, .nameServerFailure, .connectionRefused, .unreachable, .refusedByRule, .loop: 502
        case .lookupTimeout, .connectionTimeout: 504
        case .notAllowed: 403
        case .tooManyConnections: 503
        }
    }

    /// The error type of `Proxy-Status` with its parameters (RFC 9209, 2.3).
    var proxyStatus: String {
        switch self {
        case .nameNotFound: #"dns_error; rcode="NXDOMAIN""#
        case .nameServerFailure: #"dns_error; rcode="SERVFAIL""#
        case .lookupTimeout: "dns_timeout"
        case .connectionRefused: "connection_refused"
        case .connectionTimeout: "connection_timeout"
        case .unreachable: "destination_ip_unroutable"
        case .refusedByRule: #"connection_refused; details="a rule of the proxy refuses this host""#
        case .notAllowed: "http_request_denied"
        case .loop: "proxy_loop_detected"
        case .tooManyConnections: "connection_limit_reached"
        }
    }

    /// The reply code of SOCKS 5 (RFC 1928, 6).
    ///
    /// It has no code for a timeout. Code 6 (TTL expired) means that packets were lost on the way; code 4 is that of
    /// names, so that a client can tell the two.
    public var socks5Code: UInt8 {
        switch self {
        case .loop, .tooManyConnections: 1
        case .notAllowed: 2
        case .unreachable: 3
        case .nameNotFound, .nameServerFailure, .lookupTimeout: 4
        case .connectionRefused, .refusedByRule: 5
        case .connectionTimeout: 6
        }
    }

    /// The reason and the remedy, in words.
    var text: (reason: String, remedy: String) {
        switch self {
        case .nameNotFound:
            ("the name does not exist (NXDOMAIN)", "check the name, or map it to an address with --map NAME=HOST:PORT")
        case .nameServerFailure:
            ("the name server failed (SERVFAIL)", "try again, or map the name to an address with --map NAME=HOST:PORT")
        case .lookupTimeout:
            ("no name server responded", "check the conditions of the link and the network of the proxy's machine")
        case .connectionRefused:
            ("connection refused", "check that a server listens on this port")
        case .connectionTimeout:
            ("no response to the connection attempt (timeout)", "check the conditions of the link and the address")
        case .unreachable:
            ("no route to the destination", "check the network of the proxy's machine")
        case .refusedByRule:
            ("a rule of the proxy refuses this host", "remove the rule (--to PATTERN=refuse)")
        case .notAllowed:
            ("the proxy does not connect to link-local, multicast and metadata addresses", "use another address")
        case .loop:
            ("the destination is this proxy", "name the server, not the proxy")
        case .tooManyConnections:
            ("the proxy has no free connection", "raise --max-connections, or close connections")
        }
    }

    /// Returns the HTTP response for a destination.
    func response(for destination: Destination, closes: Bool, omitsBody: Bool = false) -> ProxyResponse {
        ProxyResponse(
            status: status, fields: [("Proxy-Status", "slowlane; error=\(proxyStatus)")],
            text: "cannot connect \(destination): \(text.reason)\n\(text.remedy)\n", closes: closes,
            omitsBody: omitsBody)
    }
}
