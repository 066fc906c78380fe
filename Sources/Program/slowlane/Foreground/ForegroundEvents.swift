internal import CommandSupport
internal import Foundation
internal import Synchronization

/// The events that a foreground command waits for: lines of standard input, signals, and reasons to stop.
///
/// The first SIGINT or SIGTERM is an event. A second one ends the process with status 130, after the last action. The
/// thread that reads lines blocks while the replies to 16 lines are unwritten.
final class ForegroundEvents: Sendable {
    /// An event.
    enum Event: Sendable {
        /// A line of standard input.
        case line(InputLine)
        /// SIGINT or SIGTERM.
        case signal
        /// SIGHUP.
        case reload
        /// The end of standard input.
        case inputEnded
        /// The end of the parent process.
        case parentExited
        /// The failure of standard output, or the end of its reader.
        case outputFailed
    }

    /// The maximum number of lines without a written reply.
    private static let unwrittenRepliesMax = 16
    /// The exit status after a second signal.
    private static let interruptedStatus: Int32 = 130

    private let stream: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let replySlots = DispatchSemaphore(value: ForegroundEvents.unwrittenRepliesMax)
    private let lastAction = Mutex<(@Sendable () -> Void)?>(nil)
    private let signalCount = Mutex(0)
    /// The parent process when the events began.
    let parent = ParentMonitor.parent

    /// Catches SIGINT and SIGTERM from now on, for the lifetime of the process.
    ///
    /// - Parameter endsWithOutput: Whether the failure of standard output is an event: for commands that do nothing but
    ///   print.
    init(endsWithOutput: Bool = false) {
        (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        if endsWithOutput { StandardStream.onOutputFailure { [continuation] in continuation.yield(.outputFailed) } }
        Signals.on([Signals.interrupt, Signals.terminate]) { [self] in receiveSignal() }
    }

    /// Catches SIGHUP from now on, unless the process ignores it (`nohup`).
    func catchReload() {
        if Signals.isIgnored(Signals.hangup) { return }
        Signals.on([Signals.hangup]) { [continuation] in continuation.yield(.reload) }
    }

    /// Sets the closure that is called before a second signal ends the process. It must return soon.
    func setLastAction(_ body: @escaping @Sendable () -> Void) {
        lastAction.withLock { $0 = body }
    }

    /// Adds a line of standard input. Blocks while the replies to 16 lines are unwritten.
    func receive(_ line: InputLine) {
        replySlots.wait()
        continuation.yield(.line(line))
    }

    /// Adds an event after the lines before it.
    func receive(_ event: Event) { continuation.yield(event) }

    /// Reports that the reply to a line has been written.
    func replyWritten() { replySlots.signal() }

    /// Waits for the next event.
    func next() async -> Event? {
        for await event in stream { return event }
        return nil
    }

    /// Returns at once, or never after a second signal: a command whose stop is complete must not end with status 0 before
    /// the thread of signals, which is still in the last action, ends the process with status 130.
    func checkSecondSignal() async {
        while signalCount.withLock({ $0 > 1 }) { try? await Task.sleep(for: .seconds(1)) }
    }

    private func receiveSignal() {
        let count = signalCount.withLock { count in
            count += 1
            return count
        }
        if count == 1 {
            continuation.yield(.signal)
        } else {
            lastAction.withLock { $0 }?()
            Terminal.exitImmediately(Self.interruptedStatus)
        }
    }
}
