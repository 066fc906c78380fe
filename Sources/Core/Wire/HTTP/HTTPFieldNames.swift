internal import HTTPTypes

/// Field names by their bytes. The usual ones are prepared once, because each conversion takes three strings.
enum HTTPFieldNames {
    private static let texts = [
        "Accept", "Authorization", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Date", "ETag",
        "Host", "Idempotency-Key", "If-Match", "If-None-Match", "Link", "Location", "Transfer-Encoding", "User-Agent",
        "Vary", "X-Content-Type-Options",
    ]

    /// The prepared names by their lengths.
    private static let prepared: [[(bytes: [UInt8], name: HTTPField.Name)]] = {
        var found = [[(bytes: [UInt8], name: HTTPField.Name)]](repeating: [], count: 32)
        for text in texts {
            guard let name = HTTPField.Name(text) else { continue }
            found[text.utf8.count].append((Array(text.utf8), name))
        }
        return found
    }()

    /// Returns whether bytes of the same number are equal.
    private static func isSame(_ known: [UInt8], _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        known.withUnsafeBufferPointer { known in
            var index = 0
            while index < known.count, known[index] == bytes[index] { index += 1 }
            return index == known.count
        }
    }

    /// Returns the name with this text; `nil` if it is not a name.
    static func name(_ text: String) -> HTTPField.Name? {
        var text = text
        return text.withUTF8 { name($0) }
    }

    /// Returns the name with these bytes; `nil` if they are not a name.
    static func name(_ bytes: UnsafeBufferPointer<UInt8>) -> HTTPField.Name? {
        if bytes.count < prepared.count {
            for known in prepared[bytes.count] where isSame(known.bytes, bytes) { return known.name }
        }
        return HTTPField.Name(String(decoding: bytes, as: UTF8.self))
    }
}
