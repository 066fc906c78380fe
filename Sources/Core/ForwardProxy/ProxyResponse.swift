internal import HTTPTypes
internal import NIOCore
internal import Wire

/// A response of the proxy itself.
struct ProxyResponse: Error {
    var status: Int
    var fields: [(String, String)] = []
    var type = "text/plain; charset=utf-8"
    var text: String
    /// Whether the connection is closed after the response.
    var closes = true
    /// Whether the request was HEAD, and the response has no body.
    var omitsBody = false

    /// The bytes of the response.
    var bytes: ByteBuffer {
        let all =
            fields + [
                ("Content-Type", type), ("Content-Length", String(text.utf8.count)), ("Cache-Control", "no-store"),
                ("X-Content-Type-Options", "nosniff"), ("Connection", closes ? "close" : "keep-alive"),
            ]
        var buffer = ByteBuffer()
        let reason = HTTPResponseHead.standardReason(of: status)
        guard let head = try? HTTPResponseHead(status: status, reason: reason, fields: all) else {
            preconditionFailure("the texts of this module are valid field values")
        }
        head.write(into: &buffer)
        if !omitsBody { buffer.writeString(text) }
        return buffer
    }
}

extension ProxyResponse {
    /// Creates the response to bytes that are not a request.
    init(requestError error: HTTPError) {
        self.init(
            status: error.status.code,
            text: "this is not a request that the proxy can forward: \(error)\n"
                + "this port speaks HTTP/1.1, SOCKS 4a and SOCKS 5, without TLS; write http:// or socks5h:// before the "
                + "address of the proxy\n")
    }

    /// Creates the response to an OPTIONS or TRACE request that no further server may get. The proxy does not reflect
    /// requests, which may have credentials.
    static func lastRecipient(_ method: String) -> ProxyResponse {
        if method == "OPTIONS" { return ProxyResponse(status: 200, text: "") }
        return ProxyResponse(
            status: 405, fields: [("Allow", "OPTIONS")], text: "the proxy does not respond to \(method)\n")
    }

    /// Creates the response to a request without valid credentials.
    static func credentialsRequired(closes: Bool, omitsBody: Bool) -> ProxyResponse {
        ProxyResponse(
            status: 407, fields: [("Proxy-Authenticate", #"Basic realm="slowlane""#)],
            text: "the proxy needs a user and a password\nsend them in Proxy-Authorization, for example: "
                + "curl -x http://USER:PASSWORD@PROXY\n",
            closes: closes, omitsBody: omitsBody)
    }
}
