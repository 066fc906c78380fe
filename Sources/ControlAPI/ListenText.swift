/// Where a proxy is to listen as callers write it, looked at without looking anything up.
///
/// What is refused, and in which words, is what Go's `net.Listen` does, on which Toxiproxy stands.
enum ListenText {
    /// What is wrong with a text; `nil` if it can be an address. Whether its names exist is not known by that.
    static func problem(with text: String) -> String? {
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
        // With colons it is an IPv6 address or nothing, which the resolver knows. '*' is every interface to some resolvers and
        // the loopback to others.
        return isName || host.contains(":") ? nil : "lookup \(host): no such host"
    }

    /// What a failed look-up of a text means.
    static func problem(with text: String, notFound reason: String) -> String {
        let colon = text.lastIndex(of: ":") ?? text.endIndex
        let port = text[colon...].dropFirst()
        let lookUp = "lookup \(text[..<colon])"
        if reason == "its name has no address" { return "\(lookUp): no such host" }
        let isNumber = port.allSatisfy { $0.isASCII && $0.isNumber }
        return isNumber ? "\(lookUp): \(reason)" : "address tcp/\(port): unknown port"
    }
}
