internal import ArgumentParser
internal import Foundation
internal import Synchronization

/// What a command in the foreground waits for: lines typed and signals.
///
/// The first signal is a happening like others; a second one restores the terminal and ends the process on the spot,
/// whatever else hangs. Commands wait on their reader's thread while the replies to as many as may be have not been written.
final class Happenings: Sendable {
    enum Happening {
        case command(String)
        case signal
    }

    /// Lines taken whose replies have not been written.
    private static let commandsMax = 16

    private let stream: AsyncStream<Happening>
    private let source: AsyncStream<Happening>.Continuation
    private let places = DispatchSemaphore(value: Happenings.commandsMax)
    private let restoring = Mutex<(@Sendable () -> Void)?>(nil)
    private let signalCount = Mutex(0)

    /// Catches SIGINT and SIGTERM from now on, as long as the process lives.
    init() {
        (stream, source) = AsyncStream.makeStream(of: Happening.self)
        Signals.on([Signals.interrupt, Signals.terminate]) { [self] in takeSignal() }
    }

    /// Sets what restores the terminal when a second signal ends the process.
    func restore(with body: (@Sendable () -> Void)?) {
        restoring.withLock { $0 = body }
    }

    /// Takes a line; blocks while too many are not answered.
    func take(command: String) {
        places.wait()
        source.yield(.command(command))
    }

    /// The reply to a line has been written.
    func commandIsAnswered() { places.signal() }

    /// The next happening.
    func next() async -> Happening? {
        for await happening in stream { return happening }
        return nil
    }

    private func takeSignal() {
        let count = signalCount.withLock { count in
            count += 1
            return count
        }
        if count == 1 {
            source.yield(.signal)
        } else {
            restoring.withLock { $0 }?()
            Terminal.leave(ExitStatus.interrupted.rawValue)
        }
    }
}
