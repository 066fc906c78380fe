internal import Foundation
internal import Synchronization

/// What the user sees: results on standard output, everything else on standard error, and on a terminal a status line
/// that stays below them.
final class Console: Sendable {
    /// Where a line goes.
    enum Stream {
        case result
        case progress
    }

    private struct State {
        var status = ""
        var typed = ""
        var isShown = false
    }

    /// Whether there is a terminal to draw a status line on.
    let hasStatusLine: Bool
    private let state = Mutex(State())

    init(wantsStatusLine: Bool = false) {
        hasStatusLine =
            wantsStatusLine && Terminal.isTerminal(STDERR_FILENO) && Terminal.isTerminal(STDOUT_FILENO)
            && Terminal.isInForeground
    }

    /// Prints a line above the status line.
    func print(_ line: String, to stream: Stream = .result) {
        state.withLock { state in
            if hasStatusLine && state.isShown { Self.write("\r\u{1B}[K", to: .progress) }
            Self.write(line + "\n", to: stream)
            draw(&state)
        }
    }

    /// Replaces the status line.
    func show(status: String) {
        state.withLock { state in
            state.status = status
            draw(&state)
        }
    }

    /// Replaces what has been typed so far.
    func show(typed: String) {
        state.withLock { state in
            state.typed = typed
            draw(&state)
        }
    }

    /// Takes the status line away.
    func clearStatus() {
        state.withLock { state in
            if hasStatusLine && state.isShown { Self.write("\r\u{1B}[K", to: .progress) }
            state.isShown = false
            state.status = ""
        }
    }

    private func draw(_ state: inout State) {
        guard hasStatusLine, !state.status.isEmpty else { return }
        let columns = max(20, Terminal.columns - 1)
        let typed = "> " + state.typed.suffix(columns / 2)
        let status = state.status.prefix(max(0, columns - typed.count - 1))
        Self.write("\r\u{1B}[K\(status) \(typed)", to: .progress)
        state.isShown = true
    }

    /// A closed pipe behind us is no reason to fail.
    private static func write(_ text: String, to stream: Stream) {
        let handle = stream == .result ? FileHandle.standardOutput : FileHandle.standardError
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
