/// The authority of an upstream with TLS as it stands in URLs: the host, and the port unless it is 443.
public struct OriginAuthority: Hashable, Sendable, CustomStringConvertible {
    /// The destination.
    public let destination: Destination

    /// Creates the authority of a destination.
    public init(_ destination: Destination) { self.destination = destination }

    /// The port of HTTPS.
    public static let standardPort = 443

    /// Creates the authority of a URL such as `https://api.example.com` or `https://[::1]:8443/`. Throws the problem if the
    /// text is no such URL.
    public init(url: String) throws(UpstreamURLError) {
        guard Self.isURL(url) else {
            throw UpstreamURLError(problem: "the URL of an upstream begins with https://")
        }
        let rest = Array(url.utf8).dropFirst(Self.scheme.count)
        let authority = rest.prefix { !Self.authorityEnds.contains($0) }
        guard rest.count == authority.count || Array(rest.dropFirst(authority.count)) == [UInt8(ascii: "/")] else {
            throw UpstreamURLError(
                problem: "the URL of an upstream has no path; the path belongs to the URLs of the client")
        }
        do throws(HostSyntaxError) {
            destination = try HostSyntax.destination(authority, defaultPort: Self.standardPort)
        } catch {
            throw UpstreamURLError(problem: error.problem)
        }
    }

    private static let scheme = Array("https://".utf8)
    private static let authorityEnds = Array("/?#".utf8)

    /// Returns whether a text is a URL of HTTPS.
    public static func isURL(_ text: String) -> Bool { rest(ofURL: Array(text.utf8)[...]) != nil }

    /// Returns what follows the scheme of a URL of HTTPS; `nil` for another text.
    private static func rest(ofURL text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let start = text.prefix(scheme.count).map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        return start == scheme ? text.dropFirst(scheme.count) : nil
    }

    /// Returns what follows the authority of a URL of this authority; `nil` for another text. The scheme may be missing
    /// (`//HOST/PATH`).
    func path(ofURL text: [UInt8]) -> ArraySlice<UInt8>? {
        let hasNoScheme = text.starts(with: Array("//".utf8))
        guard let rest = hasNoScheme ? text.dropFirst(2) : Self.rest(ofURL: text[...]) else { return nil }
        let authority = rest.prefix { !Self.authorityEnds.contains($0) }
        let other = try? HostSyntax.destination(authority, defaultPort: Self.standardPort)
        return other == destination ? rest.dropFirst(authority.count) : nil
    }

    public var description: String {
        guard destination.port == Self.standardPort else { return "\(destination)" }
        return destination.host.utf8.contains(UInt8(ascii: ":")) ? "[\(destination.host)]" : destination.host
    }
}

/// The reason why a text is not the URL of an upstream.
public struct UpstreamURLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, with what to write instead where that helps.
    public let problem: String

    public var description: String { problem }
}
