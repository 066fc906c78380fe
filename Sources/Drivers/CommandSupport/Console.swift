internal import Foundation
internal import Synchronization

/// The standard output and standard error of a command, with a status line below them on a terminal.
///
/// Writing blocks until ``writeAsynchronously()`` is called. After that, lines are written on dispatch queues, so that
/// a stalled reader blocks no other work. Log and progress lines are dropped when too many are pending; result lines
/// never are.
public final class Console: Sendable {
    /// The destination of a line.
    public enum Stream: Sendable {
        /// Standard output; never dropped.
        case result
        /// Standard output; dropped if too many lines are pending.
        case log
        /// Standard error; dropped if too many lines are pending.
        case progress

        var isOutput: Bool { self != .progress }
    }

    private struct State {
        var status = ""
        var typed = ""
        var isShown = false
        var isAsynchronous = false
        /// Log and progress lines that are not yet written.
        var pending = 0
    }

    /// The maximum number of log and progress lines that are not yet written.
    private static let pendingMax = 1000
    /// The longest time that ``flush()`` waits for a reader.
    private static let flushTimeout = DispatchTimeInterval.seconds(2)
    private let outputQueue: DispatchQueue
    private let errorQueue: DispatchQueue

    /// Whether a status line is drawn: standard output and standard error are a terminal, and the process is in its
    /// foreground process group.
    public let hasStatusLine: Bool
    /// Whether the status line ends with a prompt and the typed text.
    private let hasPrompt: Bool
    private let state = Mutex(State())

    /// Creates a console.
    ///
    /// - Parameters:
    ///   - wantsStatusLine: Whether to draw a status line if there is a terminal for it.
    ///   - hasPrompt: Whether the status line ends with a prompt and the typed text.
    public init(wantsStatusLine: Bool = false, hasPrompt: Bool = true) {
        self.hasPrompt = hasPrompt
        hasStatusLine =
            wantsStatusLine && Terminal.isStandardError && Terminal.isStandardOutput && Terminal.isInForeground
        outputQueue = DispatchQueue(label: "slowlane.console.output")
        // On a terminal the order of both streams matters; elsewhere, a blocked standard output must not delay errors.
        errorQueue = hasStatusLine ? outputQueue : DispatchQueue(label: "slowlane.console.errors")
    }

    /// Prints a line above the status line.
    ///
    /// - Parameter onWritten: Called on any thread when the line has been written or dropped.
    public func print(_ line: String, to stream: Stream = .result, onWritten: (@Sendable () -> Void)? = nil) {
        state.withLock { state in
            let erased = hasStatusLine && state.isShown ? "\r\u{1B}[K" : ""
            if !erased.isEmpty { write(erased, to: .progress, &state) }
            write(line + "\n", to: stream, &state, onWritten)
            draw(&state)
        }
    }

    /// Prints `error: ...` to standard error.
    public func error(_ message: some CustomStringConvertible) { print("error: \(message)", to: .progress) }

    /// Prints `error: ...` for each line of a text, such as the problems of a file.
    public func errors(_ text: some CustomStringConvertible) {
        for line in text.description.split(separator: "\n") { error(line) }
    }

    /// Makes ``print(_:to:onWritten:)`` return without waiting for the reader from now on.
    public func writeAsynchronously() { state.withLock { $0.isAsynchronous = true } }

    /// Waits until all lines are written, for two seconds at most.
    public func flush() {
        let deadline = DispatchTime.now() + Self.flushTimeout
        for queue in [outputQueue, errorQueue] {
            let done = DispatchSemaphore(value: 0)
            queue.async { done.signal() }
            _ = done.wait(timeout: deadline)
        }
    }

    /// Replaces the text of the status line.
    public func show(status: String) {
        state.withLock { state in
            state.status = status
            draw(&state)
        }
    }

    /// Replaces the typed text after the status line.
    public func show(typed: String) {
        state.withLock { state in
            state.typed = typed
            draw(&state)
        }
    }

    /// Removes the status line.
    public func clearStatus() {
        state.withLock { state in
            if hasStatusLine && state.isShown { write("\r\u{1B}[K", to: .progress, &state) }
            state.isShown = false
            state.status = ""
        }
    }

    private func draw(_ state: inout State) {
        guard hasStatusLine, !state.status.isEmpty else { return }
        let columns = max(20, Terminal.columns - 1)
        let typed = hasPrompt ? "> " + state.typed.suffix(columns / 2) : ""
        let status = state.status.prefix(max(0, columns - typed.count - 1))
        write("\r\u{1B}[K\(status) \(typed)", to: .progress, &state)
        state.isShown = true
    }

    private func write(
        _ text: String, to stream: Stream, _ state: inout State, _ onWritten: (@Sendable () -> Void)? = nil
    ) {
        guard state.isAsynchronous else {
            Self.write(text, to: stream)
            onWritten?()
            return
        }
        let isCounted = stream != .result
        if isCounted && state.pending >= Self.pendingMax {
            onWritten?()
            return
        }
        if isCounted { state.pending += 1 }
        (stream.isOutput ? outputQueue : errorQueue).async { [self] in
            Self.write(text, to: stream)
            if isCounted { self.state.withLock { $0.pending -= 1 } }
            onWritten?()
        }
    }

    private static func write(_ text: String, to stream: Stream) {
        (stream.isOutput ? StandardStream.output : .errors).write(text)
    }
}
