internal import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A thread that reads lines from standard input.
///
/// A blocking read works on terminals, pipes, files and /dev/null alike. The thread ends with the input or with the
/// process.
package enum InputReader {
    /// The longest line in bytes.
    package static let lineBytesMax = 4096

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - console: Shows the typed text if the input is a terminal.
    ///   - onLine: Receives each line that is not empty.
    ///   - onEnd: Called at the end of the input.
    /// - Returns: A closure that restores the terminal, if its settings were changed.
    package static func start(
        _ console: Console, onLine: @escaping @Sendable (InputLine) -> Void, onEnd: @escaping @Sendable () -> Void = {}
    ) -> (@Sendable () -> Void)? {
        var restore: (@Sendable () -> Void)?
        if Terminal.isStandardInput {
            guard Terminal.isInForeground else { return nil }
            if console.hasStatusLine { restore = Terminal.disableLineBuffering() }
        }
        let editsLine = restore != nil
        let thread = Thread {
            var editor = LineEditor(hasEditingKeys: editsLine)
            var byte: UInt8 = 0
            while true {
                let count = read(STDIN_FILENO, &byte, 1)
                if count < 0 && errno == EINTR { continue }
                if count <= 0 { break }
                if let line = editor.append(byte) { onLine(line) }
                if editsLine { console.show(typed: editor.text) }
            }
            if let rest = editor.append(UInt8(ascii: "\n")) { onLine(rest) }
            onEnd()
        }
        thread.name = "slowlane.commands"
        thread.start()
        return restore
    }
}

/// A line of standard input.
public enum InputLine: Hashable, Sendable {
    /// A command without surrounding white space; never empty.
    case command(String)
    /// A line that cannot be a command, with the reason.
    case invalid(String)
}

/// A line being read or typed. On a terminal without line buffering, backspace and control-U edit it.
struct LineEditor {
    /// Whether keys edit the line. Elsewhere each byte belongs to the line.
    private let hasEditingKeys: Bool
    private var bytes: [UInt8] = []
    private var isTooLong = false

    init(hasEditingKeys: Bool) { self.hasEditingKeys = hasEditingKeys }

    /// The text typed so far.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Adds a byte; returns the line if the byte finishes one that has more than white space.
    mutating func append(_ byte: UInt8) -> InputLine? {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            return takeLine()
        case 0x7F where hasEditingKeys, 0x08 where hasEditingKeys:
            while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
        case 0x15 where hasEditingKeys:
            bytes = []
        case 0..<0x09 where hasEditingKeys, 0x0A..<0x20 where hasEditingKeys:
            break
        default:
            if bytes.count < InputReader.lineBytesMax { bytes.append(byte) } else { isTooLong = !hasEditingKeys }
        }
        return nil
    }

    private mutating func takeLine() -> InputLine? {
        let (bytes, text, isTooLong) = (bytes, text, isTooLong)
        self = LineEditor(hasEditingKeys: hasEditingKeys)
        if isTooLong { return .invalid("the line is longer than \(InputReader.lineBytesMax) bytes") }
        guard text.utf8.elementsEqual(bytes) else { return .invalid("the line is not valid UTF-8") }
        if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
            return .invalid("the line contains a control character")
        }
        let command = text.trimmingCharacters(in: .whitespaces)
        return command.isEmpty ? nil : .command(command)
    }
}
