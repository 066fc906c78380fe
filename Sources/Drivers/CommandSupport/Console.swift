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
        var typed = TypedText()
        /// Whether the process is suspended, or in the background after that.
        var isSuspended = false
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
            erase(&state)
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
    func show(typed: TypedText) {
        state.withLock { state in
            state.typed = typed
            draw(&state)
        }
    }

    /// Removes the status line.
    public func clearStatus() {
        state.withLock { state in
            erase(&state)
            state.status = ""
        }
    }

    /// Hides the status line until ``resume()``.
    func suspend() {
        state.withLock { state in
            erase(&state)
            state.isSuspended = true
        }
    }

    /// Shows the status line again after ``suspend()``.
    func resume() {
        state.withLock { state in
            state.isSuspended = false
            draw(&state)
        }
    }

    /// Rings the bell of the terminal.
    func ring() {
        state.withLock { state in write("\u{7}", to: .progress, &state) }
    }

    private func erase(_ state: inout State) {
        if hasStatusLine && state.isShown { write("\r\u{1B}[K", to: .progress, &state) }
        state.isShown = false
    }

    private func draw(_ state: inout State) {
        guard hasStatusLine, !state.status.isEmpty, !state.isSuspended else { return }
        write("\r\u{1B}[K" + Self.line(state, hasPrompt: hasPrompt, columns: Terminal.columns), to: .progress, &state)
        state.isShown = true
    }

    /// Returns the status line with the prompt, and the sequence that moves the cursor back to its position.
    private static func line(_ state: State, hasPrompt: Bool, columns: Int) -> String {
        // A terminal begins a new row when the last column has a character.
        let columns = max(columnsMin, columns - 1)
        guard hasPrompt else { return String(state.status.prefix(columns)) }
        let prompt = " > "
        let (text, behind) = state.typed.view(columns: columns - min(statusColumnsMin, columns / 2) - prompt.count)
        let status = state.status.prefix(max(0, columns - prompt.count - text.terminalWidth))
        return status + prompt + text + (behind > 0 ? "\u{1B}[\(behind)D" : "")
    }

    /// The narrowest terminal for which the line is made.
    private static let columnsMin = 20
    /// The columns of the status that a long typed text leaves.
    private static let statusColumnsMin = 16

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
