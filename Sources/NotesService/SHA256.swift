internal import NotesContract

/// SHA-256 digests as text. The database stores tokens as such hashes.
enum SHA256 {
    /// Returns the digest in hexadecimal digits.
    static func hexadecimal(_ message: [UInt8]) -> String {
        var hasher = SHA256Hasher()
        hasher.update(message)
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: hasher.digest().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
