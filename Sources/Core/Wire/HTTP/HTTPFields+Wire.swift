public import HTTPTypes
internal import NIOCore

extension HTTPFields {
    /// Creates fields from names and values. Throws if one contains characters that could change the framing.
    init(checking fields: [(name: String, value: String)]) throws(HTTPError) {
        self.init()
        reserveCapacity(fields.count)
        for (name, value) in fields {
            guard let name = HTTPField.Name(name) else { throw .unwritable("header name") }
            guard value.utf8.allSatisfy(HTTPSyntax.isText) else { throw .unwritable("header value") }
            append(HTTPField(name: name, value: value.utf8))
        }
    }

    /// Returns whether the comma-separated list in a field contains an element (`Connection: close`); case is ignored.
    public func isListed(_ element: String, in name: HTTPField.Name) -> Bool {
        self[values: name].contains { value in
            // The comparison is by bytes, because a Character may be as long as the value and is then slow to compare.
            value.utf8.split(separator: UInt8(ascii: ",")).contains { part in
                HTTPSyntax.isSame(HTTPSyntax.trimmed(Substring(part)), element)
            }
        }
    }

    /// Writes the field lines and the empty line after them.
    func write(into buffer: inout ByteBuffer) {
        for field in self {
            buffer.writeString(field.name.rawName)
            buffer.writeString(": ")
            _ = field.withUnsafeBytesOfValue { buffer.writeBytes($0) }
            buffer.writeString("\r\n")
        }
        buffer.writeString("\r\n")
    }
}

extension HTTPField.Name {
    /// `Host`, which swift-http-types represents as the authority. In HTTP/1 it is a field that may be missing or
    /// repeated.
    static let hostOfHTTP1 = HTTPField.Name("Host")!
}
