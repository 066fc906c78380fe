/// The reason why a text is not a host, a port or an authority; the value says what to write instead, where that helps.
struct HostSyntaxError: Error, Hashable {
    let problem: String
}

/// Hosts and authorities of URLs in their normal forms (RFC 3986, 3.2; RFC 1123, 2.1).
enum HostSyntax {
    /// The most bytes of a name without a trailing dot.
    static let nameBytesMax = 253
    /// The most bytes of a label of a name.
    static let labelBytesMax = 63

    /// Returns a name in lower case without a trailing dot, or an address in its canonical form. An IPv6 address has no
    /// brackets.
    static func host(_ text: some Collection<UInt8>) throws(HostSyntaxError) -> String {
        guard text.allSatisfy({ $0 < 0x80 }) else {
            throw HostSyntaxError(problem: "the host is not ASCII; write an international name as xn--... (punycode)")
        }
        var bytes = text.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
        if bytes.contains(UInt8(ascii: ":")) { return try address6(bytes[...]) }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        guard !bytes.isEmpty else { throw HostSyntaxError(problem: "the host is missing") }
        guard bytes.count <= nameBytesMax else {
            throw HostSyntaxError(problem: "the host has more than \(nameBytesMax) bytes")
        }
        for label in bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard (1...labelBytesMax).contains(label.count), label.allSatisfy(isNameByte) else {
                throw HostSyntaxError(
                    problem: "the host is not a name: between dots, a name has 1 to \(labelBytesMax) letters, digits, "
                        + "hyphens and underscores")
            }
        }
        let host = String(decoding: bytes, as: UTF8.self)
        // What ends in a number is an IPv4 address (WHATWG URL); inet_aton(3) takes "127.1" and "0x7f.1" for one.
        let last = bytes.split(separator: UInt8(ascii: ".")).last ?? []
        guard last.allSatisfy({ (48...57).contains($0) }) || last.starts(with: Array("0x".utf8)) else { return host }
        guard IPAddress(host) != nil else {
            throw HostSyntaxError(problem: "the host is not an IPv4 address; write four numbers, such as 127.0.0.1")
        }
        return host
    }

    /// Returns the canonical form of an IPv6 address.
    static func address6(_ text: ArraySlice<UInt8>) throws(HostSyntaxError) -> String {
        guard !text.contains(UInt8(ascii: "%")) else {
            throw HostSyntaxError(problem: "an IPv6 address with a zone identifier; write it without '%' and the zone")
        }
        guard let address = IPAddress(String(decoding: text, as: UTF8.self)), address.bytes.count == 16 else {
            throw HostSyntaxError(problem: "the host is not an IPv6 address")
        }
        return address.description
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Returns a port from its digits.
    static func port(_ text: some Collection<UInt8>) throws(HostSyntaxError) -> Int {
        guard (1...5).contains(text.count), text.allSatisfy({ (48...57).contains($0) }) else {
            throw HostSyntaxError(problem: "the port is not a number from 1 to 65535")
        }
        let port = text.reduce(0) { $0 * 10 + Int($1) - 48 }
        guard (1...65535).contains(port) else {
            throw HostSyntaxError(problem: "the port is not a number from 1 to 65535")
        }
        return port
    }

    /// Splits an authority into its host and the text of its port; `nil` without a colon after the host.
    static func split(
        _ text: ArraySlice<UInt8>
    ) throws(HostSyntaxError) -> (host: String, port: ArraySlice<UInt8>?) {
        guard !text.contains(UInt8(ascii: "@")) else {
            throw HostSyntaxError(problem: "a user name in the authority; send it in a header field")
        }
        let colon = UInt8(ascii: ":")
        if text.first == UInt8(ascii: "[") {
            guard let end = text.firstIndex(of: UInt8(ascii: "]")) else {
                throw HostSyntaxError(problem: "']' is missing after an IPv6 address")
            }
            let rest = text[(end + 1)...]
            guard rest.isEmpty || rest.first == colon else {
                throw HostSyntaxError(problem: "only ':' and a port may follow an IPv6 address in brackets")
            }
            return (try address6(text[(text.startIndex + 1)..<end]), rest.isEmpty ? nil : rest.dropFirst())
        }
        guard let separator = text.firstIndex(of: colon) else { return (try host(text), nil) }
        guard !text[(separator + 1)...].contains(colon) else {
            throw HostSyntaxError(problem: "an IPv6 address without brackets; write [ADDRESS]:PORT")
        }
        return (try host(text[..<separator]), text[(separator + 1)...])
    }

    /// Returns the destination of an authority.
    ///
    /// - Parameter defaultPort: The port if the authority has none; `nil` if it must have one.
    static func destination(
        _ text: ArraySlice<UInt8>, defaultPort: Int?
    ) throws(HostSyntaxError) -> Destination {
        let (host, digits) = try split(text)
        if let digits, !digits.isEmpty || defaultPort == nil {
            return Destination(host: host, port: try port(digits))
        }
        guard let defaultPort else { throw HostSyntaxError(problem: "the port is missing; write HOST:PORT") }
        return Destination(host: host, port: defaultPort)
    }
}
