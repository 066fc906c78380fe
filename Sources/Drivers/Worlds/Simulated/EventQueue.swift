internal import Determinism
internal import HeapModule
internal import NIOCore
internal import Wire

/// An event that is scheduled in a world.
enum WorldEvent {
    /// The deadline of a device's link.
    case link(SimulatedDevice)
    /// The deadline of a client.
    case client(SimulatedDevice, process: Int)
    /// The deadline of a connection of the server.
    case server(Connection)
    /// A SYN that a client sends: the first, or a retransmission.
    case syn(Connection, tries: Int)
    /// An event of a client's socket.
    case clientSocket(Connection, ClientSocketEvent)
    /// An event of a socket of the server.
    case serverSocket(Connection, ServerSocketEvent)
    /// The time limit of a request past the client's queue: to connect, or to get the response.
    case rawDeadline(Connection, ClientState)
    /// The restart of a killed client.
    case restart(SimulatedDevice)
    /// The end of a commit on a slow disk.
    case commitEnd(SimulatedDevice, process: Int)
}

/// An event of a client's socket.
enum ClientSocketEvent {
    case connected
    case connectFailed(HTTPConnectError)
    case received(ByteBuffer)
    case written(Int)
    case closed(HTTPCloseReason)
    /// The application has read everything.
    case drained
    /// The kernel responds with a RST, because the socket is closed.
    case reset
}

/// An event of a socket of the server.
enum ServerSocketEvent {
    case accepted
    case received(ByteBuffer)
    case inputEnded
    case closed
    /// The application has read everything.
    case drained
}

/// The events of a world in the order of their times; events of the same time in the order of insertion.
struct EventQueue {
    private struct Entry: Comparable {
        let time: Instant
        let sequence: Int
        let event: WorldEvent

        static func < (left: Entry, right: Entry) -> Bool {
            (left.time, left.sequence) < (right.time, right.sequence)
        }

        static func == (left: Entry, right: Entry) -> Bool { left.sequence == right.sequence }
    }

    private var entries = Heap<Entry>()
    private var nextSequence = 0

    /// The time of the next event; `nil` if there is none.
    var nextTime: Instant? { entries.min?.time }

    /// Schedules an event.
    mutating func schedule(_ event: WorldEvent, at time: Instant) {
        entries.insert(Entry(time: time, sequence: nextSequence, event: event))
        nextSequence += 1
    }

    /// Takes the next event.
    mutating func takeNext() -> (time: Instant, event: WorldEvent)? {
        entries.popMin().map { ($0.time, $0.event) }
    }
}
