package import LinkModel

/// Counters of a port's connections.
package struct RelayedTraffic: Sendable {
    /// Connections accepted.
    package var accepted = 0
    /// Payload bytes read, by direction.
    package var bytesRead = PerDirection(up: 0, down: 0)
    /// Payload bytes written, by direction.
    package var bytesCarried = PerDirection(up: 0, down: 0)
    /// The number of times that reading from a sender was paused because the receiving socket was full (back-pressure).
    package var readPauses = PerDirection(up: 0, down: 0)
    /// Payload bytes read and not written.
    package var bytesHeld = 0

    package init() {}

    package static func += (left: inout RelayedTraffic, right: RelayedTraffic) {
        left.accepted += right.accepted
        left.bytesHeld += right.bytesHeld
        for direction in Direction.allCases {
            left.bytesRead[direction] += right.bytesRead[direction]
            left.bytesCarried[direction] += right.bytesCarried[direction]
            left.readPauses[direction] += right.readPauses[direction]
        }
    }
}
