/// The body of a response; it is never sent in a response to HEAD.
public enum HTTPServerResponseBody: Sendable {
    /// A complete body; may be empty.
    case text(String)
    /// A body in parts, each produced when the previous one is written (``HTTPServerAction/producePart``).
    case parts
    /// A body of a known length in parts (``HTTPServerMachine/sendBytes(_:at:)``). The connection is aborted if the parts
    /// end before that length, or exceed it.
    case bytes(length: Int)
    /// No body, in a response to HEAD: the length of the body of a GET, if known.
    case omitted(length: Int?)
}
