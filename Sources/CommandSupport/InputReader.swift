internal import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Reads commands from standard input, a line each, on a thread of its own: a blocking read works on terminals,
/// pipes, files and /dev/null alike. The thread ends with the input, or with the process.
enum CommandReader {
    /// A longer line is cut and refused by whoever takes it.
    static let lineBytesMax = 4096

    /// - Parameters:
    ///   - console: Shows what is typed if the input is a terminal.
    ///   - take: Gets every line that is not empty.
    /// - Returns: What restores the terminal, if its settings were changed.
    static func start(
        _ console: Console, _ take: @escaping @Sendable (String) -> Void
    ) -> (@Sendable () -> Void)? {
        var restore: (@Sendable () -> Void)?
        let isTerminal = Terminal.isTerminal(STDIN_FILENO)
        if isTerminal {
            guard Terminal.isInForeground else { return nil }
            if console.hasStatusLine { restore = Terminal.readKeysOneByOne() }
        }
        let editsLine = restore != nil
        let thread = Thread {
            var line = LineEditor()
            var byte: UInt8 = 0
            while true {
                let count = read(STDIN_FILENO, &byte, 1)
                if count < 0 && errno == EINTR { continue }
                if count <= 0 { break }
                if let finished = line.take(byte) { take(finished) }
                if editsLine { console.show(typed: line.text) }
            }
            if let rest = line.take(UInt8(ascii: "\n")) { take(rest) }
        }
        thread.name = "slowlane.commands"
        thread.start()
        return restore
    }
}

/// A line as it is typed: characters, backspace, control-U, return.
struct LineEditor {
    private var bytes: [UInt8] = []

    /// What has been typed so far.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Takes a byte; gives the line when it is finished and not empty.
    mutating func take(_ byte: UInt8) -> String? {
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
            if bytes.count < CommandReader.lineBytesMax { bytes.append(byte) }
        default:
            break
        }
        return nil
    }
}
