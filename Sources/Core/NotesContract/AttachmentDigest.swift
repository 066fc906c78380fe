internal import Wire

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
            found = Base64.decode(value.dropFirst().dropLast())
            guard found?.count == AttachmentDigest.bytesCount else { return nil }
        }
        guard let found else { return nil }
        self.init(trusted: found)
    }

    /// The value of the header field `Repr-Digest`.
    public var field: String { "sha-256=:\(description):" }

    /// The digest in base64.
    public var description: String { Base64.encode(bytes) }
}
