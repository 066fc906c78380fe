public import Determinism

/// The time limit for the handshake of a client whose TLS is intercepted.
///
/// The time during which the link carries bytes of the connection does not count, so that a slow link, or an outage, does
/// not exceed the limit. A driver looks at the link at each ``nextDeadline``.
public struct HandshakeLimit: Sendable {
    /// The longest time that a client may take.
    public let timeMax: Nanoseconds
    /// The time that the client has taken.
    private var taken = Nanoseconds.zero
    private var last: Instant

    /// The longest time in words.
    public var text: String { "\(timeMax.count / 1_000_000_000) s" }

    /// The default of ``timeMax``: half of what web servers permit for a handshake, in which the link's time counts.
    public static let timeMaxDefault = Nanoseconds.seconds(30)
    /// The time between two looks at the link.
    private static let intervalMax = Nanoseconds.seconds(1)

    /// Creates the limit of a client whose first byte has arrived.
    public init(_ timeMax: Nanoseconds = timeMaxDefault, at now: Instant) {
        self.timeMax = timeMax
        last = now
    }

    /// The time of the next look at the link.
    public var nextDeadline: Instant { last + min(Self.intervalMax, max(.milliseconds(1), timeMax - taken)) }

    /// Counts the time since the last look. Returns whether the client has exceeded the limit.
    ///
    /// - Parameter isCarrying: Whether the link carries bytes of the connection, in either direction.
    public mutating func advance(to now: Instant, isCarrying: Bool) -> Bool {
        // A late timer is not the client's fault.
        let span = min(now, nextDeadline) - last
        last = max(last, now)
        if !isCarrying { taken = taken + span }
        return taken >= timeMax
    }
}
