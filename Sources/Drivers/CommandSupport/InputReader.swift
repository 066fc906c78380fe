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
    /// The bytes that are read from a terminal at once: pasted text is drawn once per read.
    private static let terminalReadBytes = 1024
    /// The interval at which a process in the background looks whether it has returned to the foreground.
    private static let backgroundInterval: UInt32 = 200_000

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - console: Shows the line while it is edited, if the input is a terminal.
    ///   - words: Returns the words that Tab can complete at the end of a text, in place of its last word.
    ///   - onLine: Receives each line that is not empty.
    ///   - onEnd: Called at the end of the input.
    /// - Returns: A closure that restores the terminal, if its settings were changed.
    package static func start(
        _ console: Console, words: @escaping @Sendable (String) -> [String] = { _ in [] },
        onLine: @escaping @Sendable (InputLine) -> Void, onEnd: @escaping @Sendable () -> Void = {}
    ) -> (@Sendable () -> Void)? {
        var mode: EditingMode?
        if Terminal.isStandardInput {
            guard Terminal.isInForeground else { return nil }
            if console.hasStatusLine { mode = EditingMode() }
        }
        mode?.followJobControl(console)
        let thread = Thread { [mode] in
            if let mode {
                editLines(console, mode, LineEditor(words: words), onLine)
            } else {
                splitLines(onLine)
            }
            onEnd()
        }
        thread.name = "slowlane.commands"
        thread.start()
        guard let mode else { return nil }
        return { mode.leave() }
    }

    private static func splitLines(_ onLine: (InputLine) -> Void) {
        var splitter = LineSplitter()
        // A byte at a time: the rest of the input stays in the pipe while replies are unwritten.
        while case .bytes(let bytes) = read(bytesMax: 1) {
            for byte in bytes { if let line = splitter.receive(byte) { onLine(line) } }
        }
        if let rest = splitter.receive(UInt8(ascii: "\n")) { onLine(rest) }
    }

    private static func editLines(
        _ console: Console, _ mode: EditingMode, _ editor: LineEditor, _ onLine: (InputLine) -> Void
    ) {
        var editor = editor
        while true {
            let bytes: [UInt8]
            switch read(bytesMax: terminalReadBytes) {
            case .bytes(let read): bytes = read
            case .background:
                // Not every return to the foreground comes with SIGCONT.
                while Terminal.isInBackground { usleep(backgroundInterval) }
                mode.resume(console)
                continue
            case .end: return
            }
            for byte in bytes {
                switch editor.receive(byte) {
                case .line(let line):
                    console.show(typed: editor.typed)
                    if case .command(let text) = line { console.print("> \(text)", to: .progress) }
                    onLine(line)
                case .words(let words):
                    let text = words.joined(separator: "  ")
                    console.print(TextTable.wrapped(text, width: Terminal.columns), to: .progress)
                case .bell: console.ring()
                case nil: break
                }
            }
            console.show(typed: editor.typed)
        }
    }

    private enum ReadResult {
        case bytes([UInt8])
        /// The process is in the background and ignores SIGTTIN, so that it cannot read its terminal.
        case background
        case end
    }

    /// Waits for input.
    private static func read(bytesMax: Int) -> ReadResult {
        var bytes = [UInt8](repeating: 0, count: bytesMax)
        while true {
            let count = systemRead(STDIN_FILENO, &bytes, bytesMax)
            if count > 0 { return .bytes(Array(bytes.prefix(count))) }
            if count < 0 && errno == EINTR { continue }
            return count < 0 && errno == EIO && Terminal.isInBackground ? .background : .end
        }
    }
}

private func systemRead(_ descriptor: CInt, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(descriptor, buffer, count)
}
