/// The SHA-256 digest of an attachment.
public struct AttachmentDigest: Hashable, Sendable, CustomStringConvertible {
    /// The number of bytes of a digest.
    public static let bytesCount = 32
    /// The digest.
    public let bytes: [UInt8]

    /// Wraps a digest; `nil` if it does not have 32 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == AttachmentDigest.bytesCount else { return nil }
        self.bytes = bytes
    }

    private init(trusted bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the digest of the bytes that a hasher has seen.
    public init(of hasher: SHA256Hasher) { self.init(trusted: hasher.digest()) }

    /// Returns the digest of bytes.
    public init(of bytes: some Collection<UInt8>) {
        var hasher = SHA256Hasher()
        hasher.update(bytes)
        self.init(of: hasher)
    }

    /// Takes the member `sha-256` of the header field `Repr-Digest` (RFC 9530), and ignores the others; `nil` if it is
    /// missing or malformed. Of several such members the last one counts (RFC 9651, 4.2.2).
    public init?(field: String) {
        let space: Set<UInt8> = [0x20, 0x09]
        var found: [UInt8]?
        for member in field.utf8.split(separator: UInt8(ascii: ",")) {
            let trimmed = member.drop { space.contains($0) }
            guard let equals = trimmed.firstIndex(of: UInt8(ascii: "=")),
                trimmed[..<equals].elementsEqual("sha-256".utf8)
            else { continue }
            // Parameters have no meaning here.
            var value = trimmed[trimmed.index(after: equals)...].prefix { $0 != UInt8(ascii: ";") }
            while let last = value.last, space.contains(last) { value = value.dropLast() }
            guard value.count >= 2, value.first == UInt8(ascii: ":"), value.last == UInt8(ascii: ":") else {
                return nil
            }
            found = Base64.decoded(value.dropFirst().dropLast())
            guard found?.count == AttachmentDigest.bytesCount else { return nil }
        }
        guard let found else { return nil }
        self.init(trusted: found)
    }

    /// The value of the header field `Repr-Digest`.
    public var field: String { "sha-256=:\(description):" }

    /// The digest in base64.
    public var description: String { Base64.encoded(bytes) }
}

/// Base64 (RFC 4648, 4).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    static func encoded(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let some = bytes[start..<min(start + 3, bytes.count)]
            let bits = some.reduce(0 as UInt32) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - some.count))
            for position in 0..<4 {
                text.append(
                    position <= some.count ? alphabet[Int(bits >> UInt32(18 - 6 * position) & 63)] : padding)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of a text, with or without its padding; `nil` if the text is not base64.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        var digits = Array(text)
        if digits.count % 4 == 0 {
            for _ in 0..<2 where digits.last == padding { digits.removeLast() }
        }
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for digit in digits {
            guard let value = alphabet.firstIndex(of: digit) else { return nil }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> count))
        }
        return bytes
    }
}
