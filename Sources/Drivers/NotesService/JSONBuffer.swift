internal import NotesContract
internal import Wire

/// A growing buffer of UTF-8 text, for lists that are written without a `String` per field.
struct JSONBuffer {
    private(set) var bytes: [UInt8] = []

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Appends text without quoting.
    mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Appends a JSON string, or `null`.
    mutating func append(string: UnsafeRawBufferPointer?) {
        guard let string else { return append("null") }
        if string.allSatisfy(JSONText.isPlain) {
            bytes.append(0x22)
            bytes.append(contentsOf: string)
            bytes.append(0x22)
        } else {
            append(JSONText.string(String(decoding: string, as: UTF8.self)))
        }
    }

    /// Appends a revision as a JSON string. A suffix made by a client may need escapes.
    mutating func append(revision number: Int, _ suffix: UnsafeRawBufferPointer?) {
        guard let suffix, suffix.allSatisfy(JSONText.isPlain) else {
            let suffix = suffix.map { String(decoding: $0, as: UTF8.self) } ?? ""
            return append(JSONText.string(Revision(number: number, suffix: suffix).description))
        }
        bytes.append(0x22)
        append(String(number))
        bytes.append(UInt8(ascii: "-"))
        bytes.append(contentsOf: suffix)
        bytes.append(0x22)
    }
}
