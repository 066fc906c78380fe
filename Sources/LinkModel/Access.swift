/// What becomes of connections, beside what the link does to their packets.
///
/// A change cuts every connection that is there: whoever had one notices.
public enum Access: String, CaseIterable, Hashable, Sendable {
    /// They reach the server.
    case open
    /// A SYN is answered by a RST.
    case refuse
    /// The server's name has no address. Who looks up no name of the server is refused instead.
    case dns
    /// Something on the way answers HTTP itself, with a page of its own.
    case portal

    /// Whether a SYN is answered by a RST.
    public var isRefusal: Bool { self == .refuse || self == .dns }
}
