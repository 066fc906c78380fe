internal import NIOCore

/// A dial to an upstream with one or more addresses: Happy Eyeballs (RFC 8305, section 5).
///
/// Addresses are dialled in order, each ``attemptDelay`` after the previous one or as soon as that has failed. The
/// first that connects is used. Used on its proxy's event loop only.
final class UpstreamDial {
    /// RFC 8305's Connection Attempt Delay.
    static let attemptDelay = TimeAmount.milliseconds(250)

    private let eventLoop: any EventLoop
    private var addresses: ArraySlice<SocketAddress>
    private let timeout: TimeAmount
    private let deadline: NIODeadline
    /// Connects to an address within a time.
    private let connect: (SocketAddress, TimeAmount) -> EventLoopFuture<any Channel>
    /// Returns whether the connection still needs the upstream.
    private let isNeeded: () -> Bool
    private let onFailure: (any Error) -> Void
    private var attemptsUnderWay = 0
    private var isFinished = false
    private var nextAttempt: Scheduled<Void>?

    init(
        _ addresses: [SocketAddress], within timeout: TimeAmount, since start: NIODeadline, on eventLoop: any EventLoop,
        connect: @escaping (SocketAddress, TimeAmount) -> EventLoopFuture<any Channel>,
        isNeeded: @escaping () -> Bool, onFailure: @escaping (any Error) -> Void
    ) {
        self.addresses = addresses[...]
        self.timeout = timeout
        deadline = start + timeout
        self.eventLoop = eventLoop
        self.connect = connect
        self.isNeeded = isNeeded
        self.onFailure = onFailure
    }

    /// Dials the first address.
    func start() { attempt(after: ChannelError.connectTimeout(timeout)) }

    private func attempt(after failure: any Error) {
        nextAttempt?.cancel()
        nextAttempt = nil
        guard !isFinished else { return }
        let timeLeft = deadline - .now()
        guard isNeeded(), timeLeft > .zero, let address = addresses.popFirst() else {
            if attemptsUnderWay == 0 {
                isFinished = true
                onFailure(failure)
            }
            return
        }
        attemptsUnderWay += 1
        if !addresses.isEmpty {
            nextAttempt = eventLoop.assumeIsolated().scheduleTask(in: Self.attemptDelay) {
                self.nextAttempt = nil
                self.attempt(after: failure)
            }
        }
        connect(address, timeLeft).assumeIsolated().whenComplete { result in
            self.attemptsUnderWay -= 1
            switch result {
            case .success:
                self.isFinished = true
                self.nextAttempt?.cancel()
            case .failure(let error): self.attempt(after: error)
            }
        }
    }
}
