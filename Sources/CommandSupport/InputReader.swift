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
enum InputReader {
    /// The longest line in bytes; the rest of a longer one is dropped.
    static let lineBytesMax = 4096

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - console: Shows the typed text if the input is a terminal.
    ///   - onLine: Receives each line that is not empty.
    ///   - onEnd: Called at the end of the input.
    /// - Returns: A closure that restores the terminal, if its settings were changed.
    static func start(
        _ console: Console, onLine: @escaping @Sendable (String) -> Void, onEnd: @escaping @Sendable () -> Void = {}
    ) -> (@Sendable () -> Void)? {
        var restore: (@Sendable () -> Void)?
        if Terminal.isStandardInput {
            guard Terminal.isInForeground else { return nil }
            if console.hasStatusLine { restore = Terminal.disableLineBuffering() }
        }
        let editsLine = restore != nil
        let thread = Thread {
            var editor = LineEditor()
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

/// A line being typed: characters, backspace, control-U, return.
struct LineEditor {
    private var bytes: [UInt8] = []

    /// The text typed so far.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Adds a byte; returns the line if the byte finishes one that is not empty.
    mutating func append(_ byte: UInt8) -> String? {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
            let line = text.trimmingCharacters(in: .whitespaces)
            bytes = []
            return line.isEmpty ? nil : line
        case 0x7F, 0x08:
            while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
        case 0x15:
            bytes = []
        case 0x20..., 0x09:
            if bytes.count < InputReader.lineBytesMax { bytes.append(byte) }
        default:
            break
        }
        return nil
    }
}
