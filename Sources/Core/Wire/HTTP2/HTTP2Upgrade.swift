internal import HTTPTypes

/// The upgrade of a connection of HTTP/1.1 to HTTP/2 without TLS (RFC 7540, section 3.2).
extension HTTPRequestHead {
    /// The greatest length of the SETTINGS of a request for an upgrade, in base64.
    private static let upgradeSettingsBytesMax = 1024

    /// The payload of SETTINGS in a request for an upgrade to HTTP/2; `nil` if the request does not ask for one.
    public var upgradeSettings: [UInt8]? {
        guard let text = value(of: "HTTP2-Settings"), text.utf8.count <= Self.upgradeSettingsBytesMax,
            let name = HTTPField.Name("Upgrade"), fields.isListed("h2c", in: name)
        else { return nil }
        // Base64url has two other digits.
        let digits: [UInt8: UInt8] = [UInt8(ascii: "-"): UInt8(ascii: "+"), UInt8(ascii: "_"): UInt8(ascii: "/")]
        return Base64.decode(text.utf8.map { digits[$0] ?? $0 })
    }
}

extension HTTPResponseHead {
    /// Whether the response upgrades the connection to HTTP/2.
    public var upgradesToHTTP2: Bool {
        guard status == 101, let name = HTTPField.Name("Upgrade") else { return false }
        return fields.isListed("h2c", in: name)
    }
}
