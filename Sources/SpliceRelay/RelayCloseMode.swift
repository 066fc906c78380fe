/// The treatment of a port's connections when the port closes.
package enum RelayCloseMode: Sendable {
    /// A connection with undelivered bytes is detached; any other is closed with a FIN on both sockets.
    case drain
    /// Each connection is closed with a FIN on both sockets.
    case discard
}
