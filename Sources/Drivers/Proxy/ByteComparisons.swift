internal import Impairment
internal import LinkModel
internal import NIOCore

/// The comparison of the bytes of both ends of each connection of a link.
struct ByteComparisons {
    private let onChange: @Sendable (Direction, Int) -> Void
    /// The streams of each connection, by flow index.
    private var streams: [Int: (flow: FlowID, streams: PerDirection<StreamComparison>)] = [:]

    init(_ onChange: @escaping @Sendable (Direction, Int) -> Void) { self.onChange = onChange }

    /// Begins the comparison of a connection.
    mutating func opened(_ flow: FlowID) {
        streams[flow.index] = (flow, PerDirection(up: StreamComparison(), down: StreamComparison()))
    }

    /// Ends the comparison of a connection.
    mutating func stop(_ flow: FlowID) { if streams[flow.index]?.flow == flow { streams[flow.index] = nil } }

    /// Records an event of a socket.
    mutating func received(_ event: SocketEvent, on flow: FlowID) {
        guard case .bytes(let bytes, from: let side) = event, streams[flow.index]?.flow == flow else { return }
        streams[flow.index]?.streams[side.sendDirection].entered(bytes)
    }

    /// Records an action for a socket.
    mutating func executed(_ action: SocketAction, on flow: FlowID) {
        guard streams[flow.index]?.flow == flow else { return }
        switch action {
        case .write(let bytes, to: let side):
            let direction = side.opposite.sendDirection
            if let offset = streams[flow.index]?.streams[direction].left(bytes) { onChange(direction, offset) }
        case .ended: streams[flow.index] = nil
        default: break
        }
    }
}
