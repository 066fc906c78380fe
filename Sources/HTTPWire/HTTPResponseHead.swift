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
    public static func standardReason(of status: Int) -> String {
        let known = HTTPResponse.Status(integerLiteral: status).reasonPhrase
        return known.isEmpty ? rareReasons[status] ?? "Unassigned" : known
    }

    /// Reason phrases that swift-http-types does not have.
    private static let rareReasons = [
        207: "Multi-Status", 208: "Already Reported", 226: "IM Used", 305: "Use Proxy", 402: "Payment Required",
        418: "I'm a teapot", 423: "Locked", 424: "Failed Dependency", 506: "Variant Also Negotiates",
        507: "Insufficient Storage", 508: "Loop Detected", 510: "Not Extended",
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
