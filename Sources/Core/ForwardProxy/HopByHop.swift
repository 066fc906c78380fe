internal import HTTPTypes
internal import NIOCore
internal import Wire

/// The heads of forwarded messages: fields about one connection end with it (RFC 9110, 7.6.1).
///
/// The version stays that of the sender, so that an origin sees what the client speaks. `Via` is not added: the proxy
/// stands for a network.
enum HopByHop {
    private static let names = [
        "connection", "keep-alive", "proxy-connection", "te", "upgrade", "http2-settings", "proxy-authorization",
        "proxy-authenticate", "proxy-authentication-info",
    ]
    /// Fields that stay although `Connection` names them, because without them the message would be another one.
    private static let kept = ["host", "content-length", "transfer-encoding"]

    private static let proxyConnection = HTTPField.Name("Proxy-Connection")!
    private static let host = HTTPField.Name("Host")!
    private static let maxForwards = HTTPField.Name("Max-Forwards")!

    /// Returns whether the client keeps its connection open after a request. Clients before RFC 7230 send the option in
    /// `Proxy-Connection`.
    static func keepsAlive(_ head: HTTPRequestHead) -> Bool {
        func lists(_ option: String) -> Bool {
            head.fields.isListed(option, in: .connection) || head.fields.isListed(option, in: proxyConnection)
        }
        return !lists("close") && (head.version >= .http11 || lists("keep-alive"))
    }

    /// Returns whether a request asks for another protocol that passes through the proxy. HTTP/2 does not: its settings
    /// are for one connection.
    static func asksUpgrade(_ head: HTTPRequestHead) -> Bool {
        head.fields.isListed("upgrade", in: .connection) && head.fields.contains(.upgrade)
            && !head.fields.isListed("h2c", in: .upgrade)
    }

    /// Returns the number of proxies that may forward an OPTIONS or TRACE request (RFC 9110, 7.6.2); `nil` for no limit.
    static func forwardsMax(_ head: HTTPRequestHead) -> UInt64? {
        guard ["OPTIONS", "TRACE"].contains(head.method) else { return nil }
        return head.fields[maxForwards].flatMap { UInt64($0) }
    }

    /// Returns the head of a request for its origin.
    static func request(_ head: HTTPRequestHead, target: String, host value: String) -> ByteBuffer {
        var fields = endToEnd(head.fields, keepsUpgrade: asksUpgrade(head))
        var options: [String] = asksUpgrade(head) ? ["Upgrade"] : []
        if head.fields.isListed("trailers", in: .te) {
            fields.append(HTTPField(name: .te, value: "trailers"))
            options.append("TE")
        }
        // The connection to the origin is as persistent as that of the client.
        let keepsAlive = keepsAlive(head)
        if keepsAlive != (head.version >= .http11) { options.append(keepsAlive ? "keep-alive" : "close") }
        append(options, to: &fields)
        if let index = fields.firstIndex(where: { $0.name == host }) {
            fields[index] = HTTPField(name: fields[index].name, value: value)
        } else {
            fields.insert(HTTPField(name: host, value: value), at: fields.startIndex)
        }
        if let forwardsMax = forwardsMax(head), forwardsMax > 0 { fields[maxForwards] = "\(forwardsMax - 1)" }
        var buffer = ByteBuffer()
        head.with(target: target, fields).write(into: &buffer)
        return buffer
    }

    /// Returns the head of a response for the client.
    ///
    /// - Parameter keepsAlive: Whether the connection to the client stays open; `nil` in interim responses.
    static func response(_ head: HTTPResponseHead, keepsAlive: Bool?, to request: HTTPVersion) -> ByteBuffer {
        let changesProtocol = head.status == 101
        var fields = endToEnd(head.fields, keepsUpgrade: changesProtocol || head.status == 426)
        var options: [String] = changesProtocol ? ["Upgrade"] : []
        if let keepsAlive, keepsAlive != (min(request, head.version) >= .http11) {
            options.append(keepsAlive ? "keep-alive" : "close")
        }
        append(options, to: &fields)
        var buffer = ByteBuffer()
        head.with(fields).write(into: &buffer)
        return buffer
    }

    private static func append(_ options: [String], to fields: inout HTTPFields) {
        if !options.isEmpty { fields.append(HTTPField(name: .connection, value: options.joined(separator: ", "))) }
    }

    private static func endToEnd(_ fields: HTTPFields, keepsUpgrade: Bool) -> HTTPFields {
        let listed = fields[values: .connection] + fields[values: proxyConnection]
        var dropped = Set(names)
        for value in listed {
            // The name of a field is ASCII; of other texts, some are equal to it as strings.
            for name in value.utf8.split(separator: UInt8(ascii: ",")) where name.allSatisfy({ $0 < 0x80 }) {
                let lowered = name.filter { $0 != 0x20 && $0 != 0x09 }.map { (65...90).contains($0) ? $0 | 0x20 : $0 }
                dropped.insert(String(decoding: lowered, as: UTF8.self))
            }
        }
        dropped.subtract(kept)
        if keepsUpgrade { dropped.remove("upgrade") }
        var hasLength = false
        return fields.filter { field in
            if field.name == .contentLength {
                // Equal lengths are one (RFC 9110, 8.6); the parser refuses others.
                defer { hasLength = true }
                return !hasLength
            }
            return !dropped.contains(field.name.canonicalName)
        }
    }
}
