package import NIOCore

/// The treatment of a port's connections when the port closes.
package enum RelayCloseMode: Sendable {
    /// A connection is closed with a FIN on both sockets if no byte has passed for a time and nothing is outstanding. Any
    /// other is detached.
    case drain(idleTimeMin: TimeAmount)
    /// Each connection is closed with a FIN on both sockets.
    case discard
}
