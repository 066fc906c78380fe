/// One of the two ends of a connection.
public enum Side: Hashable, Sendable, CaseIterable {
    /// The end that opens the connection: the app, the device.
    case client
    /// The end that accepts the connection: the upstream.
    case server

    /// The other end.
    public var opposite: Side { self == .client ? .server : .client }

    /// The direction in which this end sends.
    public var sendDirection: Direction { self == .client ? .up : .down }
}

/// One of the two directions of a link. Each has its own rate, delay and queue.
public enum Direction: Hashable, Sendable, CaseIterable {
    /// Client to server; Toxiproxy's stream `upstream`.
    case up
    /// Server to client; Toxiproxy's stream `downstream`.
    case down

    /// The other direction.
    public var opposite: Direction { self == .up ? .down : .up }

    /// The end that sends in this direction.
    public var sender: Side { self == .up ? .client : .server }

    /// The end that receives in this direction.
    public var receiver: Side { self == .up ? .server : .client }
}

/// A value for each direction.
public struct PerDirection<Value> {
    /// The value for client to server.
    public var up: Value
    /// The value for server to client.
    public var down: Value

    /// Creates a pair of values.
    @inlinable
    public init(up: Value, down: Value) {
        self.up = up
        self.down = down
    }

    /// The value of one direction.
    @inlinable
    public subscript(direction: Direction) -> Value {
        get { direction == .up ? up : down }
        _modify {
            switch direction {
            case .up: yield &up
            case .down: yield &down
            }
        }
    }
}

extension PerDirection: Sendable where Value: Sendable {}
extension PerDirection: Equatable where Value: Equatable {}
extension PerDirection: Hashable where Value: Hashable {}
