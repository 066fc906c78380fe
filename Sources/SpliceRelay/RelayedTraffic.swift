internal import LinkModel

/// What a port's connections have carried.
struct RelayedTraffic: Sendable {
    var accepted = 0
    var bytesRead = PerDirection(up: 0, down: 0)
    var bytesCarried = PerDirection(up: 0, down: 0)
    var stalls = PerDirection(up: 0, down: 0)
    /// Payload bytes read and not handed to a socket.
    var bytesHeld = 0

    static func += (left: inout RelayedTraffic, right: RelayedTraffic) {
        left.accepted += right.accepted
        left.bytesHeld += right.bytesHeld
        for direction in Direction.allCases {
            left.bytesRead[direction] += right.bytesRead[direction]
            left.bytesCarried[direction] += right.bytesCarried[direction]
            left.stalls[direction] += right.stalls[direction]
        }
    }
}
