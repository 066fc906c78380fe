/// The error texts of Go's `net` package for addresses, which Toxiproxy's responses contain.
enum ListenErrorText {
    /// Returns the error of a text that cannot be `HOST:PORT`; `nil` if it can. Performs no lookup.
    static func ofSyntax(_ text: String) -> String? {
        if text.isEmpty { return nil }
        func malformed(_ reason: String) -> String { "address \(text): \(reason)" }
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else {
            return malformed("missing port in address")
        }
        var host = text[..<colon]
        if host.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return malformed("missing ']' in address") }
            if text.index(after: close) != colon { return malformed("missing port in address") }
            host = text[text.index(after: text.startIndex)..<close]
        } else if host.contains(":") {
            return malformed("too many colons in address")
        }
        let port = text[text.index(after: colon)...]
        if !port.isEmpty, port.allSatisfy({ $0.isASCII && $0.isNumber }), Int(port).map({ $0 > 65535 }) ?? true {
            return "address \(port): invalid port"
        }
        let isName = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        // The resolver checks IPv6 addresses. '*' is not looked up, because some resolvers map it to the loopback
        // address.
        return isName || host.contains(":") ? nil : "lookup \(host): no such host"
    }

    /// Returns the error of a failed lookup of a listen address.
    ///
    /// - Parameter reason: The resolver's reason, from ``Proxy/ProxyError``.
    static func ofLookup(_ text: String, reason: String) -> String {
        let colon = text.lastIndex(of: ":") ?? text.endIndex
        let port = text[colon...].dropFirst()
        let lookup = "lookup \(text[..<colon])"
        if reason == "its name has no address" { return "\(lookup): no such host" }
        let isNumber = port.allSatisfy { $0.isASCII && $0.isNumber }
        return isNumber ? "\(lookup): \(reason)" : "address tcp/\(port): unknown port"
    }
}
