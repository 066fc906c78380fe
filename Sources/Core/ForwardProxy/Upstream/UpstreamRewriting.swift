internal import HTTPTypes
internal import Wire

/// A change of a message between a client that speaks HTTP and an upstream that speaks HTTPS. The description contains
/// no path, no query and no value of a cookie.
public enum UpstreamRewriting: Hashable, Sendable, CustomStringConvertible {
    /// `Host` of a request: the value of the client, and that for the upstream.
    case host(String, String)
    /// `Location` of a response: the origin that the upstream has named, and the one that the client gets.
    case location(String, String)
    /// `Set-Cookie` of a response: the name of the cookie, and the attributes that were removed.
    case cookie(String, [String])

    public var description: String {
        switch self {
        case .host(let old, let new): "Host: \(old) -> \(new)"
        case .location(let old, let new): "Location: \(old) -> \(new)"
        case .cookie(let name, let attributes): "Set-Cookie: \(name) without \(attributes.joined(separator: ", "))"
        }
    }

    static let hostName = HTTPField.Name("Host")!

    /// Returns the fields of a response for the client, with the changes in them.
    ///
    /// - Parameter clientHost: The value of `Host` in the client's request; without one, `Location` becomes a path.
    static func fields(
        of head: HTTPResponseHead, from upstream: OriginAuthority, clientHost: String?
    ) -> (fields: HTTPFields, rewritings: [UpstreamRewriting]) {
        var fields = head.fields
        var rewritings: [UpstreamRewriting] = []
        for index in fields.indices {
            let name = fields[index].name
            guard name == .location || name == .setCookie else { continue }
            let value = fields[index].withUnsafeBytesOfValue { Array($0) }
            let changed = name == .location ? location(value, upstream, clientHost) : cookie(value, upstream)
            guard let (changed, rewriting) = changed else { continue }
            fields[index] = HTTPField(name: name, value: changed)
            rewritings.append(rewriting)
        }
        return (fields, rewritings)
    }

    // MARK: Location

    private static func location(
        _ value: [UInt8], _ upstream: OriginAuthority, _ clientHost: String?
    ) -> (value: [UInt8], UpstreamRewriting)? {
        guard let path = upstream.path(ofURL: value) else { return nil }
        let origin = "https://\(upstream)"
        if let clientHost, (try? HostSyntax.split(Array(clientHost.utf8)[...])) != nil {
            let own = "http://\(clientHost)"
            return (Array(own.utf8) + path, .location(origin, own))
        }
        let isPath = path.first == UInt8(ascii: "/")
        // A path that begins with two slashes would name another host.
        guard !path.starts(with: Array("//".utf8)) else { return nil }
        return ((isPath ? [] : [UInt8(ascii: "/")]) + path, .location(origin, "a path"))
    }

    // MARK: Cookies

    /// The prefixes of names with which browsers accept a cookie only if it has the attribute Secure (RFC 6265bis).
    private static let prefixesOfSecureNames = ["__secure-", "__host-"].map { Array($0.utf8) }

    private static func cookie(
        _ value: [UInt8], _ upstream: OriginAuthority
    ) -> (value: [UInt8], UpstreamRewriting)? {
        let parts = value.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let name = trimmed(parts[0].prefix { $0 != UInt8(ascii: "=") })
        let mustBeSecure = prefixesOfSecureNames.contains { lowered(name).starts(with: $0) }
        let isSecure = parts.dropFirst().contains { lowered(trimmed($0)) == Array("secure".utf8) }
        var kept: [ArraySlice<UInt8>] = [parts[0]]
        var removed: [String] = []
        for part in parts.dropFirst() {
            let key = lowered(trimmed(part.prefix { $0 != UInt8(ascii: "=") }))
            let attribute = lowered(trimmed(part.drop { $0 != UInt8(ascii: "=") }.dropFirst()))
            switch String(decoding: key, as: UTF8.self) {
            case "secure" where !mustBeSecure: removed.append("Secure")
            // Browsers accept SameSite=None only with Secure.
            case "samesite" where !mustBeSecure && isSecure && attribute == Array("none".utf8):
                removed.append("SameSite=None")
            case "domain" where isDomain(attribute, of: upstream): removed.append("Domain")
            default: kept.append(part)
            }
        }
        if removed.isEmpty { return nil }
        return (
            Array(kept.joined(separator: [UInt8(ascii: ";")])), .cookie(String(decoding: name, as: UTF8.self), removed)
        )
    }

    /// Returns whether the attribute Domain covers the upstream's host. Clients ignore other cookies, with or without a
    /// proxy.
    private static func isDomain(_ domain: [UInt8], of upstream: OriginAuthority) -> Bool {
        let name = domain.first == UInt8(ascii: ".") ? Array(domain.dropFirst()) : domain
        let host = Array(upstream.destination.host.utf8)
        if name.isEmpty || host.count < name.count || !host.suffix(name.count).elementsEqual(name) { return false }
        return host.count == name.count || host[host.count - name.count - 1] == UInt8(ascii: ".")
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = text.drop { $0 == 0x20 || $0 == 0x09 }
        return start.prefix(
            (start.lastIndex { $0 != 0x20 && $0 != 0x09 } ?? start.startIndex - 1) - start.startIndex + 1)
    }

    private static func lowered(_ text: ArraySlice<UInt8>) -> [UInt8] {
        text.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
    }
}
