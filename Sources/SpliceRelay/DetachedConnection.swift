internal import LinkModel
internal import NIOCore

/// A connection that the relay carried, and that somebody else goes on with.
struct HandedOver: Sendable {
    let status: ConnectionStatus
    /// The seed that its number goes with.
    let seed: UInt64
    let startedAt: NIODeadline
    let client: OwnedSocket
    /// `nil` while nobody has answered the dial.
    let server: OwnedSocket?
    /// What has been read, and not been handed to the other socket.
    let pending: PerDirection<ByteBuffer>
    /// Which directions' FIN has been passed on.
    let isFinished: PerDirection<Bool>
    /// The proxies of this process that it has passed before this one, and the records of its dials if they may lead to another.
    let passed: [LoopDetector.ProxyNumber]
    let dials: [LoopDetector.Dial]
}
