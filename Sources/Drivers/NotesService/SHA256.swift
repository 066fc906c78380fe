internal import NotesContract

/// SHA-256 digests as text. The database stores tokens as such hashes.
enum SHA256 {
    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    /// Returns the digest in hexadecimal digits.
    static func hexadecimal(_ message: [UInt8]) -> String {
        var hasher = SHA256Hasher()
        hasher.update(message)
        let digest = hasher.digest()
        return String(unsafeUninitializedCapacity: digest.count * 2) { text in
            for (index, byte) in digest.enumerated() {
                text[index * 2] = digit(byte >> 4)
                text[index * 2 + 1] = digit(byte & 15)
            }
            return digest.count * 2
        }
    }
}
