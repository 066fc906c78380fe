/// Calls of connect(2) that were not redirected to the proxy.
package struct ConnectCounts: Hashable, Sendable {
    /// UDP sockets by the port to which they were connected.
    package var datagramSockets: [Int: Int] = [:]
    /// Connections to ports of this machine on which nothing listened.
    package var refused = 0
    /// Connections of processes whose memory or sockets this process may not read.
    package var unreadable = 0

    package init() {}
}
