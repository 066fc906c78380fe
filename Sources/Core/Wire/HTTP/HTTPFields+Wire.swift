public import HTTPTypes
internal import NIOCore

extension HTTPFields {
    /// Creates fields from names and values. Throws if one contains characters that could change the framing.
    init(checking fields: [(name: String, value: String)]) throws(HTTPError) {
        self.init()
        reserveCapacity(fields.count)
        for (name, value) in fields {
            guard let name = HTTPFieldNames.name(name) else { throw .unwritable("header name") }
            guard value.utf8.allSatisfy(HTTPSyntax.isText) else { throw .unwritable("header value") }
            append(HTTPField(name: name, value: value))
        }
    }

    /// Returns the value of a field, as the subscript does; faster for a field that is not repeated.
    public func value(of name: HTTPField.Name) -> String? {
        var found: String?
        for field in self where field.name == name {
            // The values of a repeated field are joined.
            if found != nil { return self[name] }
            found = field.value
        }
        return found
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
        // One array of bytes is written faster than many texts.
        var text: [UInt8] = []
        text.reserveCapacity(512)
        for field in self {
            text += field.name.rawName.utf8
            text += ": ".utf8
            field.withUnsafeBytesOfValue { text += $0 }
            text += "\r\n".utf8
        }
        text += "\r\n".utf8
        buffer.writeBytes(text)
    }
}

extension HTTPField.Name {
    /// `Host`, which swift-http-types represents as the authority. In HTTP/1 it is a field that may be missing or
    /// repeated.
    static let hostOfHTTP1 = HTTPField.Name("Host")!
}
