internal import Foundation
internal import Synchronization

/// What the user sees: results on standard output, everything else on standard error, and on a terminal a status line
/// that stays below them.
///
/// From ``writeLater()`` on writing happens on queues, so that a reader who does not read holds nobody up. What is not a
/// result is dropped when too much of it waits; of results, whoever prints many waits until they have been written. Before, a
/// line has been written when the call returns.
final class Console: Sendable {
    /// Where a line goes.
    enum Stream {
        /// Standard output; never dropped.
        case result
        /// Standard output; dropped if too much waits.
        case log
        /// Standard error; dropped if too much waits.
        case progress

        var isOutput: Bool { self != .progress }
    }

    private struct State {
        var status = ""
        var typed = ""
        var isShown = false
        var isLater = false
        /// Pieces that are not results and have not been written.
        var waiting = 0
    }

    /// Pieces that are no results and may wait to be written.
    private static let waitingMax = 1000
    /// A reader that does not read keeps the end of the program waiting for so long.
    private static let flushTimeout = DispatchTimeInterval.seconds(2)
    private let outputQueue: DispatchQueue
    private let errorQueue: DispatchQueue

    /// Whether there is a terminal to draw a status line on.
    let hasStatusLine: Bool
    private let state = Mutex(State())

    init(wantsStatusLine: Bool = false) {
        hasStatusLine =
            wantsStatusLine && Terminal.isTerminal(STDERR_FILENO) && Terminal.isTerminal(STDOUT_FILENO)
            && Terminal.isInForeground
        outputQueue = DispatchQueue(label: "slowlane.console.output")
        // On a terminal the order of both matters; elsewhere an output that nobody reads must not keep errors back.
        errorQueue = hasStatusLine ? outputQueue : DispatchQueue(label: "slowlane.console.errors")
    }

    /// Prints a line above the status line.
    ///
    /// - Parameter onWritten: Called when the line has been written, on any thread, or when it is dropped.
    func print(_ line: String, to stream: Stream = .result, onWritten: (@Sendable () -> Void)? = nil) {
        state.withLock { state in
            let erased = hasStatusLine && state.isShown ? "\r\u{1B}[K" : ""
            if !erased.isEmpty { write(erased, to: .progress, &state) }
            write(line + "\n", to: stream, &state, onWritten)
            draw(&state)
        }
    }

    /// From now on nobody waits for what is printed to be written.
    func writeLater() { state.withLock { $0.isLater = true } }

    /// Waits until everything has been written, but not for long.
    func flush() {
        let deadline = DispatchTime.now() + Self.flushTimeout
        for queue in [outputQueue, errorQueue] {
            let done = DispatchSemaphore(value: 0)
            queue.async { done.signal() }
            _ = done.wait(timeout: deadline)
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
            if hasStatusLine && state.isShown { write("\r\u{1B}[K", to: .progress, &state) }
            state.isShown = false
            state.status = ""
        }
    }

    private func draw(_ state: inout State) {
        guard hasStatusLine, !state.status.isEmpty else { return }
        let columns = max(20, Terminal.columns - 1)
        let typed = "> " + state.typed.suffix(columns / 2)
        let status = state.status.prefix(max(0, columns - typed.count - 1))
        write("\r\u{1B}[K\(status) \(typed)", to: .progress, &state)
        state.isShown = true
    }

    private func write(
        _ text: String, to stream: Stream, _ state: inout State, _ onWritten: (@Sendable () -> Void)? = nil
    ) {
        guard state.isLater else {
            Self.write(text, to: stream)
            onWritten?()
            return
        }
        let isCounted = stream != .result
        if isCounted && state.waiting >= Self.waitingMax {
            onWritten?()
            return
        }
        if isCounted { state.waiting += 1 }
        (stream.isOutput ? outputQueue : errorQueue).async { [self] in
            Self.write(text, to: stream)
            if isCounted { self.state.withLock { $0.waiting -= 1 } }
            onWritten?()
        }
    }

    /// A closed pipe behind us is no reason to fail.
    private static func write(_ text: String, to stream: Stream) {
        let handle = stream.isOutput ? FileHandle.standardOutput : FileHandle.standardError
        try? handle.write(contentsOf: Data(text.utf8))
    }
}
