internal import NIOCore

/// The header fields of a message, in order.
public struct HTTPHeaders: Hashable, Sendable, Sequence {
    /// A field: a name and its value.
    public struct Field: Hashable, Sendable {
        /// The name as received.
        public let name: String
        /// The value without surrounding whitespace.
        public let value: String
    }

    private var fields: [Field] = []

    /// Creates an empty list.
    public init() {}

    /// The number of fields.
    public var count: Int { fields.count }

    /// Appends a field.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Returns the first value of a name; case is ignored.
    public func first(_ name: String) -> String? { fields.first { Self.isSame($0.name, name) }?.value }

    /// Returns all values of a name in order; case is ignored.
    public func all(_ name: String) -> [String] { fields.filter { Self.isSame($0.name, name) }.map(\.value) }

    /// Returns whether a comma-separated list of a name contains an element (`Connection: close`); case is ignored.
    public func isListed(_ element: String, in name: String) -> Bool {
        all(name).contains { value in
            // By bytes: a Character may be as long as the value, and is slow to compare then.
            value.utf8.split(separator: UInt8(ascii: ",")).contains { part in
                Self.isSame(Self.trimmed(Substring(part)), element)
            }
        }
    }

    public func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }

    static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { lowered($0) == lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }

    private static func trimmed(_ text: Substring) -> Substring {
        var rest = text
        func isSpace(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }
        while isSpace(rest.utf8.first) { rest = Substring(rest.utf8.dropFirst()) }
        while isSpace(rest.utf8.last) { rest = Substring(rest.utf8.dropLast()) }
        return rest
    }

    /// Throws if a field contains characters that must not be sent.
    func check() throws(HTTPError) {
        for field in fields {
            guard HTTPSyntax.isToken(field.name) else { throw .unwritable("header name") }
            guard field.value.utf8.allSatisfy(HTTPSyntax.isText) else { throw .unwritable("header value") }
        }
    }

    /// Writes the field lines and the empty line behind them.
    func write(into buffer: inout ByteBuffer) {
        for field in fields { buffer.writeString("\(field.name): \(field.value)\r\n") }
        buffer.writeString("\r\n")
    }
}
