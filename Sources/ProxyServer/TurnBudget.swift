internal import Impairment
internal import NIOCore

/// What one proxy may do on its event loop before the loop's other proxies, sockets and calls have their turn.
///
/// What is left waits for the proxy's next turn; meanwhile none of its sockets is read, so that it cannot fall behind without
/// bound.
struct TurnBudget {
    /// The most events of the model in one call: packets, timers, pieces of toxics.
    static let eventsMax = 1024
    /// The most actions in one turn, in units of a write to a socket's buffer.
    static let actionsMax = 512
    /// The most payload bytes handed to sockets in one turn.
    static let bytesMax = 1 << 20
    /// The most connections that are closed, or brought back from the relay, in one turn.
    static let connectionsMax = 16
    /// How long a proxy with more to do waits. SwiftNIO runs what is due before it asks the sockets, so that a continuation that
    /// is due at once would keep them waiting.
    static let pause = TimeAmount.microseconds(20)
    /// How long a call waits for what it has asked of connections; the rest goes on after it has returned.
    static let waitMax = TimeAmount.milliseconds(50)

    private var actionsLeft = TurnBudget.actionsMax
    private var bytesLeft = TurnBudget.bytesMax

    /// What an action that makes a system call costs.
    static let systemCallCost = 8

    var isSpent: Bool { actionsLeft <= 0 || bytesLeft <= 0 }

    /// Counts an action.
    mutating func spend(_ action: SocketAction) {
        switch action {
        case .write(let bytes, to: _):
            actionsLeft -= 1
            bytesLeft -= bytes.readableBytes
        case .awaitDrain, .closeOutput, .close, .flush, .reset, .resetAfterWrites: actionsLeft -= Self.systemCallCost
        case .pauseReading, .resumeReading, .ended: actionsLeft -= 1
        }
    }

    /// Counts a session that must be flushed at the end of the turn.
    mutating func spendFlush() { actionsLeft -= Self.systemCallCost }
}
