internal import NIOCore

/// One connection's dial to the addresses of its upstream: Happy Eyeballs (RFC 8305, section 5).
///
/// The addresses are tried in order, each ``attemptDelay`` after the one before or as soon as that has failed; the first that
/// answers is taken. Lives and is used on its proxy's event loop only.
final class UpstreamDial {
    /// RFC 8305's Connection Attempt Delay.
    static let attemptDelay = TimeAmount.milliseconds(250)

    private let eventLoop: any EventLoop
    private var addresses: ArraySlice<SocketAddress>
    private let timeout: TimeAmount
    private let deadline: NIODeadline
    /// Connects to an address within a time.
    private let connect: (SocketAddress, TimeAmount) -> EventLoopFuture<any Channel>
    /// Whether anybody still wants the connection.
    private let isAwaited: () -> Bool
    private let onFailure: (any Error) -> Void
    /// Attempts under way.
    private var attempts = 0
    private var isOver = false
    private var nextAttempt: Scheduled<Void>?

    init(
        _ addresses: [SocketAddress], within timeout: TimeAmount, since start: NIODeadline, on eventLoop: any EventLoop,
        connect: @escaping (SocketAddress, TimeAmount) -> EventLoopFuture<any Channel>,
        isAwaited: @escaping () -> Bool, onFailure: @escaping (any Error) -> Void
    ) {
        self.addresses = addresses[...]
        self.timeout = timeout
        deadline = start + timeout
        self.eventLoop = eventLoop
        self.connect = connect
        self.isAwaited = isAwaited
        self.onFailure = onFailure
    }

    /// Begins with the first address.
    func start() { attempt(after: ChannelError.connectTimeout(timeout)) }

    private func attempt(after failure: any Error) {
        nextAttempt?.cancel()
        nextAttempt = nil
        guard !isOver else { return }
        let timeLeft = deadline - .now()
        guard isAwaited(), timeLeft > .zero, let address = addresses.popFirst() else {
            if attempts == 0 {
                isOver = true
                onFailure(failure)
            }
            return
        }
        attempts += 1
        if !addresses.isEmpty {
            nextAttempt = eventLoop.assumeIsolated().scheduleTask(in: Self.attemptDelay) {
                self.nextAttempt = nil
                self.attempt(after: failure)
            }
        }
        connect(address, timeLeft).assumeIsolated().whenComplete { result in
            self.attempts -= 1
            switch result {
            case .success:
                self.isOver = true
                self.nextAttempt?.cancel()
            case .failure(let error): self.attempt(after: error)
            }
        }
    }
}
