internal import HTTPTypes

/// Who may call: keeps out web pages that reach a local server through a browser, and strangers without the token.
public struct Gatekeeper: Sendable {
    /// What `Authorization: Bearer` must carry; `nil` is nothing.
    public let token: String?
    /// Names and addresses that may stand in `Host`; `*` is any.
    private let hosts: Set<String>
    /// Whether any numeric address may: a page that was made to resolve to us has a name.
    private let allowsNumeric: Bool

    /// - Parameters:
    ///   - boundTo: The host that is listened on.
    ///   - allowedHosts: More names under which this server is called.
    public init(boundTo host: String, token: String?, allowedHosts: [String]) {
        self.token = token
        var hosts: Set<String> = ["localhost", "::1", host.lowercased()]
        hosts.formUnion(allowedHosts.map { $0.lowercased() })
        self.hosts = hosts
        allowsNumeric = host == "0.0.0.0" || host == "::" || host.isEmpty
    }

    /// Why a request is refused; `nil` if it is not.
    func refusal(of request: HTTPRequest) -> APIFailure? {
        // Under a name that is not known to be ours a web page may call that has made a browser take us for its own server.
        if hosts.contains("*"), request.headerFields[.userAgent]?.hasPrefix("Mozilla/") == true,
            let authority = request.authority, !isKnown(authority)
        {
            return APIFailure(
                .forbidden, "calls from browsers under '\(authority.prefix(100))' are refused; allow it by its name")
        }
        if let authority = request.authority, !hosts.contains("*"), !isKnown(authority) {
            return APIFailure(
                .forbidden,
                "the Host '\(authority.prefix(100))' is not this server's; start it with --allow-host "
                    + "\(Self.host(of: authority).prefix(100)) if it is")
        }
        let isSafe = [.get, .head, .options].contains(request.method)
        if !isSafe, let origin = request.headerFields[.origin], origin != "http://\(request.authority ?? "")" {
            return APIFailure(.forbidden, "calls from the web page \(origin.prefix(100)) are refused")
        }
        if let token {
            let given = request.headerFields[.authorization]?.split(separator: " ", maxSplits: 1) ?? []
            guard given.count == 2, given[0].lowercased() == "bearer", Self.isEqual(String(given[1]), token) else {
                return APIFailure(.unauthorized, "expected 'Authorization: Bearer TOKEN', with the token of --token")
            }
        }
        return nil
    }

    /// Whether the host is known to be this server's.
    private func isKnown(_ authority: String) -> Bool {
        let host = Self.host(of: authority).lowercased()
        if hosts.contains(host) { return true }
        let isIPv4 =
            host.split(separator: ".", omittingEmptySubsequences: false).count == 4
            && host.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
        if isIPv4 && host.hasPrefix("127.") { return true }
        return allowsNumeric && (isIPv4 || host.contains(":"))
    }

    /// Without the port and brackets.
    private static func host(of authority: String) -> String {
        if authority.hasPrefix("["), let close = authority.firstIndex(of: "]") {
            return String(authority[authority.index(after: authority.startIndex)..<close])
        }
        return String(authority.prefix { $0 != ":" })
    }

    /// Takes as long for every guess of a length.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
