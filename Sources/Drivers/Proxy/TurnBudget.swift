internal import Impairment
internal import NIOCore

/// The work that one proxy may do in one turn of its event loop, before other proxies, sockets and calls of that loop
/// run.
///
/// The rest continues in the proxy's next turn. Until then none of its sockets is read, which bounds the backlog.
struct TurnBudget {
    /// The maximum number of events of the model in one call: packets, timers, pieces of toxics.
    static let eventsMax = 1024
    /// The maximum number of actions in one turn, in units of a write to a channel.
    static let actionsMax = 512
    /// The maximum number of payload bytes written in one turn.
    static let bytesMax = 1 << 20
    /// The maximum number of connections that are closed, or moved from the fast path to the link, in one turn.
    static let connectionsMax = 16
    /// The pause before a proxy with a backlog continues. NIO runs due tasks before it polls its sockets, so a
    /// continuation without a pause would starve them.
    static let pause = TimeAmount.microseconds(20)
    /// The longest time that a call waits for its effect on connections. Remaining effects follow after the call has
    /// returned.
    static let waitMax = TimeAmount.milliseconds(50)

    private var actionsLeft = TurnBudget.actionsMax
    private var bytesLeft = TurnBudget.bytesMax

    /// The cost of an action that makes a system call, in units of a write.
    static let systemCallCost = 8

    var isSpent: Bool { actionsLeft <= 0 || bytesLeft <= 0 }

    /// Subtracts the cost of an action.
    mutating func spend(_ action: SocketAction) {
        switch action {
        case .write(let bytes, to: _):
            actionsLeft -= 1
            bytesLeft -= bytes.readableBytes
        case .awaitDrain, .closeOutput, .close, .flush, .reset, .resetAfterWrites, .established:
            actionsLeft -= Self.systemCallCost
        case .pauseReading, .resumeReading, .ended: actionsLeft -= 1
        }
    }

    /// Subtracts the cost of an action of datagrams.
    mutating func spend(_ action: DatagramAction) {
        switch action {
        case .send(let payload, _):
            actionsLeft -= 1
            bytesLeft -= payload.readableBytes
        case .open, .rebind, .reportUnreachable, .close: actionsLeft -= Self.systemCallCost
        }
    }

    /// Subtracts the cost of flushing a session at the end of the turn.
    mutating func spendFlush() { actionsLeft -= Self.systemCallCost }
}
