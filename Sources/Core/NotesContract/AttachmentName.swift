public import Wire

/// The name of an attachment, unique within its note and compared by bytes: 1 to 255 bytes of UTF-8 without `/` and
/// NUL. The names `.` and `..` are excluded, because clients remove them from paths (RFC 3986, 5.2.4).
public struct AttachmentName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The longest name in bytes.
    public static let bytesMax = 255
    /// The name.
    public let key: ByteKey

    /// Wraps a name; `nil` if it is not valid.
    public init?(_ text: String) {
        guard (1...AttachmentName.bytesMax).contains(text.utf8.count),
            !text.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }),
            !text.utf8.elementsEqual(".".utf8), !text.utf8.elementsEqual("..".utf8)
        else { return nil }
        key = ByteKey(text)
    }

    /// Decodes a percent-encoded segment of a path; `nil` if it is malformed or the name is not valid.
    public init?(percentEncoded segment: some StringProtocol) {
        guard segment.utf8.count <= 3 * AttachmentName.bytesMax else { return nil }
        var bytes: [UInt8] = []
        var rest = Array(segment.utf8)[...]
        while let first = rest.popFirst() {
            guard first == UInt8(ascii: "%") else {
                bytes.append(first)
                continue
            }
            guard let high = rest.popFirst().flatMap(AttachmentName.value),
                let low = rest.popFirst().flatMap(AttachmentName.value)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        self.init(text)
    }

    /// The name as a segment of a path: all bytes but the unreserved ones (RFC 3986, 2.3) are encoded.
    public var percentEncoded: String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in key.text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    public var description: String { key.text }

    public static func < (left: AttachmentName, right: AttachmentName) -> Bool { left.key < right.key }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
