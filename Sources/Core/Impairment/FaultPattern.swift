/// A text in which each `*` stands for any number of bytes.
struct FaultPattern: Hashable, Sendable {
    private let bytes: [UInt8]

    /// The greatest length of a pattern.
    static let bytesMax = 1024

    init(_ text: String) { bytes = Array(text.utf8) }

    /// Returns whether the pattern matches all bytes of a text. The time is at most the product of both lengths.
    func matches(_ text: some StringProtocol) -> Bool {
        let text = Array(text.utf8)
        var (next, position) = (0, 0)
        // The last star, and the first byte of the text after those that it stands for.
        var star: (next: Int, position: Int)?
        while position < text.count {
            if next < bytes.count, bytes[next] == UInt8(ascii: "*") {
                star = (next + 1, position)
                next += 1
            } else if next < bytes.count, bytes[next] == text[position] {
                next += 1
                position += 1
            } else if let last = star {
                star = (last.next, last.position + 1)
                (next, position) = (last.next, last.position + 1)
            } else {
                return false
            }
        }
        return bytes[next...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
