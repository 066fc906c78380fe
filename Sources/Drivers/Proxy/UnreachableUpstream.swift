/// The way in which a client is disconnected if the upstream cannot be reached.
public enum UnreachableUpstream: Hashable, Sendable {
    /// With a RST, as from a port without a listener. The RST may arrive before the client's `connect()` returns, which
    /// then fails.
    case reset
    /// With a FIN, as Toxiproxy does: `connect()` succeeds, and the first read returns the end of the stream.
    case close
}
