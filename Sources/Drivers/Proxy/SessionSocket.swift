internal import NIOCore

/// A socket of a session, as the session sees it: a channel, or the client's end of a connection to an origin that a
/// forward proxy has opened for requests in absolute form.
protocol SessionSocket: AnyObject {
    func write(_ buffer: ByteBuffer)
    func flush()
    /// Reports `.drained` once all writes so far have been sent.
    func awaitDrain()
    /// Sends a FIN after all pending writes.
    func closeOutput()
    /// Closes both directions after all pending writes.
    func closeAfterWrites()
    /// Aborts the connection (RST).
    func reset()
    /// Aborts the connection (RST) once the peer has acknowledged all written bytes.
    func resetAfterWrites()
    /// Handles that the connection to the upstream is established for the client.
    func established()
    func pauseReading()
    func resumeReading()
    /// Issues a deferred read, unless reading is paused.
    func readIfPending()
    /// Closes both directions: with a FIN, or with the RST that is due.
    func close()
    /// Bytes written and not yet sent to the kernel.
    var bytesUnsent: Int { get }
    /// Whether bytes of the peer have arrived that have not been read.
    var hasUnreadBytes: Bool { get }
}
