internal import Foundation

/// A line of standard input.
public enum InputLine: Hashable, Sendable {
    /// A command without surrounding white space; never empty.
    case command(String)
    /// A line that cannot be a command, with the reason.
    case invalid(String)

    /// Checks the bytes of a line; `nil` if there is only white space.
    init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.elementsEqual(bytes) else {
            self = .invalid("the line is not valid UTF-8")
            return
        }
        if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
            self = .invalid("the line contains a control character")
            return
        }
        let command = text.trimmingCharacters(in: .whitespaces)
        if command.isEmpty { return nil }
        self = .command(command)
    }
}

/// The lines of an input that is not edited, such as a pipe.
struct LineSplitter {
    private var bytes: [UInt8] = []
    private var isTooLong = false

    /// Adds a byte; returns the line if the byte finishes one that has more than white space.
    mutating func receive(_ byte: UInt8) -> InputLine? {
        guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
            isTooLong = isTooLong || bytes.count >= InputReader.lineBytesMax
            if !isTooLong { bytes.append(byte) }
            return nil
        }
        defer { self = LineSplitter() }
        return isTooLong ? .invalid("the line is longer than \(InputReader.lineBytesMax) bytes") : InputLine(bytes)
    }
}
