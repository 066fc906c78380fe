public import HTTPTypes
public import NIOCore

/// The head of a response: a response of swift-http-types with the version of HTTP/1.
public struct HTTPResponseHead: Hashable, Sendable {
    /// The status and the header fields.
    public let response: HTTPResponse
    /// The version.
    public let version: HTTPVersion

    /// Creates a head from its parts. Throws if a part contains characters that could change the framing.
    public init(
        version: HTTPVersion = .http11, status: Int, reason: String = "", fields: [(name: String, value: String)] = []
    ) throws(HTTPError) {
        guard (100...999).contains(status) else { throw .unwritable("status") }
        guard reason.unicodeScalars.allSatisfy({ $0.value <= 0xFF && HTTPSyntax.isText(UInt8($0.value)) }) else {
            throw .unwritable("reason")
        }
        self.init(version: version, status: status, reason: reason, fields: try HTTPFields(checking: fields))
    }

    /// Returns the head with other header fields.
    public func with(_ fields: HTTPFields) -> HTTPResponseHead {
        HTTPResponseHead(version: version, status: status, reason: reason, fields: fields)
    }

    init(version: HTTPVersion, status: Int, reason: String, fields: HTTPFields) {
        response = HTTPResponse(
            status: HTTPResponse.Status(code: status, reasonPhrase: reason), headerFields: fields)
        self.version = version
    }

    /// The status code, 100 to 999.
    public var status: Int { response.status.code }

    /// The reason phrase; its characters are the bytes received (ISO Latin 1).
    public var reason: String { response.status.reasonPhrase }

    /// Returns the reason phrase of a status code in IANA's registry; `Unassigned` if it has none.
    public static func standardReason(of status: Int) -> String { standardReasons[status] ?? "Unassigned" }

    private static let standardReasons = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
        305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
        417: "Expectation Failed", 418: "I'm a teapot", 421: "Misdirected Request", 422: "Unprocessable Content",
        423: "Locked", 424: "Failed Dependency", 425: "Too Early", 426: "Upgrade Required",
        428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
        507: "Insufficient Storage", 508: "Loop Detected", 510: "Not Extended",
        511: "Network Authentication Required",
    ]

    /// The header fields, in order.
    public var fields: HTTPFields { response.headerFields }

    /// The names and values of the header fields, in order.
    public var fieldLines: [(name: String, value: String)] { fields.map { ($0.name.rawName, $0.value) } }

    /// Whether the response allows the connection to be used again (RFC 9112, 9.3).
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, fields) }

    /// Serialises the head.
    public func write(into buffer: inout ByteBuffer) {
        buffer.writeString("\(version) \(status) ")
        buffer.writeBytes(reason.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
        buffer.writeString("\r\n")
        fields.write(into: &buffer)
    }
}
