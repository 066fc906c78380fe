package import LinkModel
package import NIOCore

/// The state of a relayed connection at one moment.
package struct RelayedConnectionStatus: Sendable {
    package let token: RelayToken
    package let number: Int
    /// The client's address; `nil` if the socket has none any more.
    package let client: SocketAddress?
    package let startedAt: NIODeadline
    package let lastActive: NIODeadline
    /// Payload bytes read, by direction.
    package let bytesRead: PerDirection<Int>
    /// Payload bytes read and not written, by direction.
    package let bytesHeld: PerDirection<Int>

    /// Whether bytes have been written in a direction.
    package var hasForwardedBytes: Bool { bytesRead.up > bytesHeld.up || bytesRead.down > bytesHeld.down }
}
