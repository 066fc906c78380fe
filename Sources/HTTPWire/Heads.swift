public import NIOCore

/// The headers of a message, in the order in which they stand.
public struct HTTPHeaders: Hashable, Sendable, Sequence {
    /// A name and its value.
    public struct Field: Hashable, Sendable {
        /// The name as written.
        public let name: String
        /// The value without spaces at its ends.
        public let value: String
    }

    private var fields: [Field] = []

    /// No headers.
    public init() {}

    /// How many there are.
    public var count: Int { fields.count }

    /// Appends a header.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// The first value of a name, in whatever case.
    public func first(_ name: String) -> String? { fields.first { Self.isSame($0.name, name) }?.value }

    /// All values of a name, in order.
    public func all(_ name: String) -> [String] { fields.filter { Self.isSame($0.name, name) }.map(\.value) }

    /// Whether a word stands in the comma-separated lists of a name (`Connection: close`).
    public func isListed(_ word: String, in name: String) -> Bool {
        all(name).contains { value in
            // By bytes: a Character may be as long as the value, and is slow to compare then.
            value.utf8.split(separator: UInt8(ascii: ",")).contains { part in
                Self.isSame(Self.trimmed(Substring(part)), word)
            }
        }
    }

    public func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }

    static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { lowered($0) == lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }

    static func trimmed(_ text: Substring) -> Substring {
        var rest = text
        func isSpace(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }
        while isSpace(rest.utf8.first) { rest = Substring(rest.utf8.dropFirst()) }
        while isSpace(rest.utf8.last) { rest = Substring(rest.utf8.dropLast()) }
        return rest
    }
}

/// `HTTP/1.0` or `HTTP/1.1`.
public struct HTTPVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The part after the point.
    public let minor: Int

    /// HTTP/1.0.
    public static let http10 = HTTPVersion(minor: 0)
    /// HTTP/1.1.
    public static let http11 = HTTPVersion(minor: 1)

    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool { left.minor < right.minor }

    public var description: String { "HTTP/1.\(minor)" }

    static func keepsAlive(_ version: HTTPVersion, _ headers: HTTPHeaders) -> Bool {
        if headers.isListed("close", in: "Connection") { return false }
        return version >= .http11 || headers.isListed("keep-alive", in: "Connection")
    }
}

/// The head of a request.
public struct HTTPRequestHead: Hashable, Sendable {
    /// The method.
    public var method: String
    /// The path and query, or whatever stands there.
    public var target: String
    /// The version.
    public var version: HTTPVersion
    /// The headers.
    public var headers: HTTPHeaders

    /// Creates a head.
    public init(method: String, target: String, version: HTTPVersion = .http11, headers: HTTPHeaders = HTTPHeaders()) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
    }

    /// Whether the connection may be used again (RFC 9112, 9.3).
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, headers) }

    /// Writes the head, refusing what would end up as another message.
    public func write(into buffer: inout ByteBuffer) throws(HTTPError) {
        guard HTTPSyntax.isToken(method) else { throw .unwritable("method") }
        guard !target.isEmpty, target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .unwritable("target")
        }
        try headers.check()
        buffer.writeString("\(method) \(target) \(version)\r\n")
        headers.write(into: &buffer)
    }
}

/// The head of an answer.
public struct HTTPResponseHead: Hashable, Sendable {
    /// The version.
    public var version: HTTPVersion
    /// The status, 100 to 999.
    public var status: Int
    /// The words beside it.
    public var reason: String
    /// The headers.
    public var headers: HTTPHeaders

    /// Creates a head.
    public init(
        version: HTTPVersion = .http11, status: Int, reason: String = "", headers: HTTPHeaders = HTTPHeaders()
    ) {
        self.version = version
        self.status = status
        self.reason = reason
        self.headers = headers
    }

    /// Whether the connection may be used again, as far as the answer says.
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, headers) }

    /// Writes the head, refusing what would end up as another message.
    public func write(into buffer: inout ByteBuffer) throws(HTTPError) {
        guard (100...999).contains(status) else { throw .unwritable("status") }
        guard reason.utf8.allSatisfy({ HTTPSyntax.isText($0) }) else { throw .unwritable("reason") }
        try headers.check()
        buffer.writeString("\(version) \(status) \(reason)\r\n")
        headers.write(into: &buffer)
    }
}

extension HTTPHeaders {
    fileprivate func check() throws(HTTPError) {
        for field in fields {
            guard HTTPSyntax.isToken(field.name) else { throw .unwritable("header name") }
            guard field.value.utf8.allSatisfy(HTTPSyntax.isText) else { throw .unwritable("header value") }
        }
    }

    fileprivate func write(into buffer: inout ByteBuffer) {
        for field in fields { buffer.writeString("\(field.name): \(field.value)\r\n") }
        buffer.writeString("\r\n")
    }
}

/// Which bytes may stand where (RFC 9110, 5.5 and 5.6.2).
enum HTTPSyntax {
    static func isToken(_ text: some StringProtocol) -> Bool { !text.isEmpty && text.utf8.allSatisfy(isTokenByte) }

    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    static func isText(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }
}
