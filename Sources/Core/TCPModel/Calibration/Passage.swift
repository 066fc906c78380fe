internal import LinkModel

/// The passage of one packet over a direction of the link, as far as the captured end sees it.
///
/// Times are those of the capture's clock. A clock of the other end is aligned so that its fastest packet takes no time;
/// ``exit`` - ``sent`` is therefore the time beyond that of the fastest packet of the same peer.
struct Passage: Sendable {
    /// The accuracy of ``exit``.
    enum Timing: UInt8, Sendable {
        /// Unknown: the packet arrived no later than ``exit``.
        case bounded
        /// The ACK may have been delayed by the receiver's timer.
        case delayedACK
        /// Known up to the resolution of the timestamps.
        case exact
    }

    /// The time at which the packet entered the link.
    var sent: Int64
    /// The time at which it left the queue.
    var exit: Int64
    /// The bytes of the IP packet.
    var bytes: Int32
    /// The number of the connection.
    var connection: Int32
    /// Whether the packet did not arrive.
    var isLost = false
    /// Whether the packet counts for the loss probability: it would be known if it were lost.
    var isTrial = false
    /// Whether the packet repeats bytes that were sent before.
    var isRetransmission = false
    var timing = Timing.bounded

    /// The time beyond that of the fastest packet.
    var excess: Int64 { exit - sent }
}
