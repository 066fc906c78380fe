/// The last bytes of a program's standard error.
struct OutputTail: Sendable {
    private var bytes: [UInt8] = []

    /// The maximum number of bytes that are kept.
    static let bytesMax = 16 * 1024
    /// The maximum number of lines, and of characters of a line, that are shown.
    static let linesMax = 12
    static let columnsMax = 300

    /// Adds bytes.
    mutating func add(_ new: some Collection<UInt8>) {
        bytes += new.suffix(Self.bytesMax)
        if bytes.count > 2 * Self.bytesMax { bytes.removeFirst(bytes.count - Self.bytesMax) }
    }

    /// The last lines; bytes that are not UTF-8 are replaced, and control characters removed.
    var lines: [String] {
        bytes.suffix(Self.bytesMax).split(separator: UInt8(ascii: "\n")).suffix(Self.linesMax).map { line in
            let text = String(decoding: line, as: UTF8.self).unicodeScalars.map { scalar -> Character in
                scalar == "\t" || scalar.properties.generalCategory == .control ? " " : Character(scalar)
            }
            return String(text.prefix(Self.columnsMax))
        }
    }
}
