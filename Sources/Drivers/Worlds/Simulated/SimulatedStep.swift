public import Determinism
internal import NIOCore
public import Scenario

/// A step of a run in virtual time.
public enum SimulatedStep: Sendable {
    /// An event of the history.
    case event(History.Entry)
    /// An event of the world, such as the deadline of a link, in words.
    case world(Instant, String)
}

extension WorldEvent {
    /// The event in words.
    var stepText: String {
        func text(_ connection: Connection) -> String {
            let attempt = connection.number.attempt
            return "connection \(attempt.map { "\($0)" } ?? "past the queue") of \(connection.device.name)"
        }
        switch self {
        case .link(let device): return "deadline of the link of \(device.name)"
        case .client(let device, let process): return "deadline of process \(process) of \(device.name)"
        case .server(let connection): return "deadline of the server for \(text(connection))"
        case .syn(let connection, let tries): return "SYN \(tries) of \(text(connection))"
        case .clientSocket(let connection, let event):
            return "client's socket of \(text(connection)): \(event.stepText)"
        case .serverSocket(let connection, let event):
            return "server's socket of \(text(connection)): \(event.stepText)"
        case .rawDeadline(let connection, _): return "deadline of the request on \(text(connection))"
        case .restart(let device): return "restart of \(device.name)"
        case .commitEnd(let device, let process): return "end of a commit of process \(process) of \(device.name)"
        }
    }
}

extension ClientSocketEvent {
    fileprivate var stepText: String {
        switch self {
        case .connected: "connected"
        case .connectFailed(let reason): "connect failed: \(reason)"
        case .received(let bytes): "\(bytes.readableBytes) bytes received"
        case .written(let count): "\(count) bytes written"
        case .closed(let how): "closed: \(how)"
        case .drained: "drained"
        case .reset: "reset"
        }
    }
}

extension ServerSocketEvent {
    fileprivate var stepText: String {
        switch self {
        case .accepted: "accepted"
        case .received(let bytes): "\(bytes.readableBytes) bytes received"
        case .inputEnded: "input ended"
        case .closed: "closed"
        case .drained: "drained"
        }
    }
}
