internal import HTTPTypes
internal import Wire

/// The authorization of requests: rejects web pages that reach a local server through a browser, and clients without
/// the token.
public struct RequestGuard: Sendable {
    /// The token that `Authorization: Bearer` must carry; `nil` if requests need none.
    public let token: String?
    /// Names and addresses allowed in `Host`; `*` allows any.
    private let hosts: Set<String>
    /// Whether `Host` may be any numeric address. A DNS-rebinding page always sends a name.
    private let allowsNumericHosts: Bool

    /// - Parameters:
    ///   - boundTo: The host that the server listens on.
    ///   - allowedHosts: Further host names of this server.
    public init(boundTo host: String, token: String?, allowedHosts: [String]) {
        self.token = token
        var hosts: Set<String> = ["localhost", "::1", host.lowercased()]
        hosts.formUnion(allowedHosts.map { $0.lowercased() })
        self.hosts = hosts
        allowsNumericHosts = host == "0.0.0.0" || host == "::" || host.isEmpty
    }

    /// Returns the error response of a request that is not allowed; `nil` if it is allowed.
    ///
    /// - Parameter needsToken: Whether the request needs the token.
    func rejection(of request: HTTPRequest, needsToken: Bool = true) -> APIError? {
        // '*' disables the check of `Host`, which rejects DNS-rebinding pages. A browser is therefore accepted only
        // with a known host.
        if hosts.contains("*"), request.headerFields[.userAgent]?.hasPrefix("Mozilla/") == true,
            let authority = request.authority, !isKnown(authority)
        {
            return APIError(
                .forbidden,
                "browser requests with the Host '\(authority.prefix(100))' are rejected; add it with --allow-host "
                    + "\(Self.host(of: authority).prefix(100))")
        }
        if let authority = request.authority, !hosts.contains("*"), !isKnown(authority) {
            return APIError(
                .forbidden,
                "the Host '\(authority.prefix(100))' is not allowed; if it is this server's name, restart the server with "
                    + "--allow-host \(Self.host(of: authority).prefix(100))")
        }
        let isSafe = [.get, .head, .options].contains(request.method)
        if !isSafe, let rejection = Self.rejectionOfForeignPage(request) { return rejection }
        if let token, needsToken {
            let given = request.headerFields[.authorization]?.split(separator: " ", maxSplits: 1) ?? []
            guard given.count == 2, given[0].lowercased() == "bearer", given[1].matchesSecret(token) else {
                return APIError(
                    .unauthorized, "send 'Authorization: Bearer TOKEN' with the token that --token gave the server")
            }
        }
        return nil
    }

    /// Returns the error of a request that a web page of another origin has sent; `nil` for other requests.
    ///
    /// It applies to requests that change something, and to those that hold a slot: streams of events. Browsers send
    /// `Origin` with each request that can change something, and with `fetch()` and `EventSource` of other origins;
    /// `Sec-Fetch-Site` also with the requests of images and scripts. Of its values, `same-origin` is this server's
    /// page and `none` the user. `same-site` is another origin: a page of the same host on another port.
    static func rejectionOfForeignPage(_ request: HTTPRequest) -> APIError? {
        if let origin = request.headerFields[.origin], origin != "http://\(request.authority ?? "")" {
            return APIError(.forbidden, "requests from the web page \(origin.prefix(100)) are rejected")
        }
        if let site = request.headerFields[Dashboard.fetchSite], !["same-origin", "none"].contains(site) {
            return APIError(.forbidden, "requests from web pages of other origins are rejected")
        }
        return nil
    }

    /// Returns whether a host is known to be this server's.
    private func isKnown(_ authority: String) -> Bool {
        let host = Self.host(of: authority).lowercased()
        if hosts.contains(host) { return true }
        let isIPv4 =
            host.split(separator: ".", omittingEmptySubsequences: false).count == 4
            && host.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
        if isIPv4 && host.hasPrefix("127.") { return true }
        return allowsNumericHosts && (isIPv4 || host.contains(":"))
    }

    /// Returns the host without port and brackets.
    private static func host(of authority: String) -> String {
        if authority.hasPrefix("["), let close = authority.firstIndex(of: "]") {
            return String(authority[authority.index(after: authority.startIndex)..<close])
        }
        return String(authority.prefix { $0 != ":" })
    }
}
