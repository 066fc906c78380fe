internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NotesService
internal import Scenario
internal import Wire

/// The state of a client's socket.
enum ClientState {
    /// The SYN has got no response.
    case connecting
    case open
    case closed
}

/// A connection of a client: the client's socket, the connection on the device's link, and the server's socket with its
/// machine.
final class Connection {
    unowned let device: SimulatedDevice
    /// The number of the process that has opened the connection.
    let process: Int
    /// The client's identifier; `nil` for a request past the client's queue.
    let id: HTTPConnectionID?
    /// The number in the ledger of the device.
    let number: ExchangeLedger.ConnectionID
    /// The request past the client's queue.
    var raw: RawExchange?
    var flow: FlowID?
    var client = ClientState.connecting {
        didSet {
            if client == .closed { device.record(device.ledger.end(number, &world.recorder)) }
        }
    }
    /// Whether reading from each socket is paused, by the direction in which the socket sends.
    private var isPaused = PerDirection(up: false, down: false)
    /// What each socket has to send while reading from it is paused.
    private var unread = PerDirection(up: [Unread](), down: [Unread]())

    private enum Unread {
        case bytes(ByteBuffer)
        case end
    }

    /// The comparison of the bytes of both ends.
    private var comparison = PerDirection(up: StreamComparison(), down: StreamComparison())
    private var machine: HTTPServerMachine?
    private var isServerClosed = false
    /// The deadline for which an event is scheduled.
    private var armedDeadline: Instant?
    /// Input that the server does not read yet.
    private var serverInput: [ServerSocketEvent] = []
    /// The body of the response that is being sent in parts.
    private var content: NotesService.Body?
    private var request: HTTPServerRequest?

    /// The largest read from a client's socket, in bytes.
    private static let readBytesMax = 64 << 10

    init(_ device: SimulatedDevice, process: Int, _ id: HTTPConnectionID?, _ number: ExchangeLedger.ConnectionID) {
        self.device = device
        self.process = process
        self.id = id
        self.number = number
    }

    private var world: SimulatedWorld { device.world }

    // MARK: Sockets of the client and the server

    /// Sends bytes of a socket, at once or when reading from it is resumed.
    private func send(_ bytes: ByteBuffer, from side: Side) {
        if isPaused[side.sendDirection] || !unread[side.sendDirection].isEmpty {
            unread[side.sendDirection].append(.bytes(bytes))
            return
        }
        var rest = bytes
        while let piece = rest.readSlice(length: min(rest.readableBytes, Self.readBytesMax)), piece.readableBytes > 0 {
            report(.bytes(piece, from: side))
        }
        if side == .client { world.schedule(.clientSocket(self, .written(bytes.readableBytes)), after: .zero) }
    }

    /// Sends the FIN of a socket after its bytes.
    private func sendEnd(from side: Side) {
        if unread[side.sendDirection].isEmpty { return report(.inputClosed(side)) }
        unread[side.sendDirection].append(.end)
    }

    /// Reads what a socket has sent while reading was paused.
    private func resumeReading(_ side: Side) {
        isPaused[side.sendDirection] = false
        while !isPaused[side.sendDirection], !unread[side.sendDirection].isEmpty {
            let next = unread[side.sendDirection].removeFirst()
            let later = unread[side.sendDirection]
            unread[side.sendDirection] = []
            switch next {
            case .bytes(let bytes): send(bytes, from: side)
            case .end: report(.inputClosed(side))
            }
            unread[side.sendDirection] = later
        }
    }

    private func report(_ event: SocketEvent) {
        guard let flow else { return }
        if case .bytes(let bytes, from: let side) = event { comparison[side.sendDirection].entered(bytes) }
        device.report(event, on: flow)
    }

    /// Ends the comparison of the bytes of both ends: a fault, or a response of the link itself, may change them.
    func stopComparing() {
        comparison.up.stop()
        comparison.down.stop()
    }

    private func compare(_ bytes: ByteBuffer, _ direction: Direction) {
        guard let offset = comparison[direction].left(bytes) else { return }
        world.record(.bytesChanged(device: device.name, direction, offset: offset))
    }

    // MARK: The client's socket

    /// The client writes.
    func write(_ bytes: ByteBuffer) {
        guard client == .open else { return }
        send(bytes, from: .client)
    }

    /// The client closes its socket: with FIN, after the bytes of its exchanges, which may still arrive, or abortively with
    /// RST.
    func closeByClient(isAbortive: Bool = false) {
        guard client != .closed else { return }
        let wasOpen = client == .open
        client = .closed
        if wasOpen, isAbortive {
            unread[Side.client.sendDirection] = []
            report(.gone(.client))
        } else if wasOpen {
            sendEnd(from: .client)
        }
    }

    /// Executes an action of the link.
    func execute(_ action: SocketAction) {
        if case .write(let bytes, to: let side) = action { compare(bytes, side.opposite.sendDirection) }
        switch action {
        case .write(let bytes, to: .client):
            // A closed socket responds with a RST.
            world.schedule(.clientSocket(self, client == .open ? .received(bytes) : .reset), after: .zero)
        case .closeOutput(.client), .close(.client): world.schedule(.clientSocket(self, .closed(.fin)), after: .zero)
        case .reset(.client), .resetAfterWrites(.client):
            world.schedule(.clientSocket(self, .closed(.reset)), after: .zero)
        case .awaitDrain(.client): world.schedule(.clientSocket(self, .drained), after: .zero)
        case .write(let bytes, to: .server): world.schedule(.serverSocket(self, .received(bytes)), after: .zero)
        case .closeOutput(.server): world.schedule(.serverSocket(self, .inputEnded), after: .zero)
        case .close(.server), .reset(.server), .resetAfterWrites(.server):
            world.schedule(.serverSocket(self, .closed), after: .zero)
        case .awaitDrain(.server): world.schedule(.serverSocket(self, .drained), after: .zero)
        case .pauseReading(let side): isPaused[side.sendDirection] = true
        case .resumeReading(let side): resumeReading(side)
        case .flush, .established: break
        case .ended:
            flow = nil
            world.schedule(.serverSocket(self, .closed), after: .zero)
        }
    }

    // MARK: The server's socket

    /// Processes an event of the server's socket.
    func receive(_ event: ServerSocketEvent) {
        switch event {
        case .accepted:
            guard flow != nil else { return }
            var limits = HTTPServerLimits()
            limits.bodyBytesMax = NotesService.Limits.bodyBytesMax
            machine = HTTPServerMachine(
                limits: limits, defaultHeaders: NotesService.commonHeaderFields, at: world.now)
            report(.connected)
        case .closed:
            machine?.connectionClosed(at: world.now)
            isServerClosed = true
            serverInput = []
        case .received where isServerClosed: return report(.gone(.server))
        case .received, .inputEnded, .drained: serverInput.append(event)
        }
        runServer()
    }

    /// Advances the machine to its deadline.
    func advanceServer() {
        // The event of a deadline that has been replaced by an earlier one.
        guard armedDeadline == world.now else { return }
        armedDeadline = nil
        if let deadline = machine?.nextDeadline, deadline <= world.now { machine?.advance(to: world.now) }
        runServer()
    }

    /// Executes the machine's actions, and passes it the input that it wants.
    private func runServer() {
        guard machine != nil else { return }
        while true {
            if let action = machine?.takeAction() {
                execute(action)
            } else if let next = serverInput.first, machine?.wantsInput == true || !isInput(next) {
                serverInput.removeFirst()
                pass(next)
            } else {
                break
            }
        }
        guard !isServerClosed, let deadline = machine?.nextDeadline else { return }
        if let armedDeadline, armedDeadline <= deadline { return }
        armedDeadline = max(deadline, world.now)
        world.schedule(.server(self), at: max(deadline, world.now))
    }

    private func isInput(_ event: ServerSocketEvent) -> Bool {
        switch event {
        case .received, .drained: true
        case .accepted, .inputEnded, .closed: false
        }
    }

    private func pass(_ event: ServerSocketEvent) {
        switch event {
        case .received(var bytes):
            let readBytesMax = machine?.limits.readBytesMax ?? .max
            guard let piece = bytes.readSlice(length: min(bytes.readableBytes, readBytesMax)) else { return }
            if bytes.readableBytes > 0 { serverInput.insert(.received(bytes), at: 0) }
            machine?.received(piece, at: world.now)
        case .inputEnded: machine?.inputEnded(at: world.now)
        case .drained: report(.drained(.server))
        case .accepted, .closed: break
        }
    }

    private func execute(_ action: HTTPServerAction) {
        switch action {
        case .request(let request):
            self.request = request
            readBody(of: request)
        case .bodyGrew: break
        case .body(let result): respond(result)
        case .write(let bytes):
            machine?.unixTime = Int64(RunServer.startMilliseconds) / 1000 + world.now.sinceStart.count / 1_000_000_000
            send(bytes, from: .server)
            machine?.written(bytes.readableBytes, at: world.now)
        case .producePart: sendPart()
        case .responseWritten: content = nil
        case .closeOutput: sendEnd(from: .server)
        case .close:
            isServerClosed = true
            sendEnd(from: .server)
        case .abort:
            isServerClosed = true
            report(.gone(.server))
        }
    }

    /// Starts to read the body. That of an unauthenticated request is limited, or not read at all.
    private func readBody(of request: HTTPServerRequest) {
        let unauthenticatedBytesMax = NotesService.Limits.unauthenticatedBodyBytesMax
        if let bytes = request.declaredBodyBytes, bytes <= unauthenticatedBytesMax {
            machine?.readBody(at: world.now)
            return
        }
        world.server.setTime(world.now)
        switch world.server.service.admission(of: request.request) {
        case .authenticated: machine?.readBody(at: world.now)
        case .publicResource: machine?.readBody(bytesMax: unauthenticatedBytesMax, at: world.now)
        case .unauthenticated: respond(.success([]))
        }
    }

    private func respond(_ body: Result<[UInt8], HTTPServerBodyError>) {
        guard let request = request?.request else { return }
        let response: NotesService.Response
        switch body {
        case .success(let bytes): response = world.server.respond(to: request, bytes, at: world.now)
        case .failure(let error):
            let (status, text): (HTTPResponse.Status, String) =
                switch error {
                case .tooLarge: (.contentTooLarge, "The body is too large")
                case .tooSlow: (.requestTimeout, "The body arrived too slowly")
                case .budgetExceeded: (.serviceUnavailable, "Too many bodies at once; try again")
                case .malformed: (.badRequest, "The body is incomplete or malformed")
                }
            world.server.setTime(world.now)
            response = world.server.service.errorResponse(status, text, to: request)
        }
        machine?.unixTime = Int64(RunServer.startMilliseconds) / 1000 + world.now.sinceStart.count / 1_000_000_000
        switch response.body {
        case .text(let text): machine?.respond(response.head, .text(text), at: world.now)
        case .omitted(let length): machine?.respond(response.head, .omitted(length: length), at: world.now)
        case .pages:
            content = response.body
            machine?.respond(response.head, .parts, at: world.now)
        case .bytes(let bytes):
            content = response.body
            machine?.respond(response.head, .bytes(length: bytes.length), at: world.now)
        }
    }

    /// Sends the next part of the body.
    private func sendPart() {
        do {
            switch content {
            case .pages(let pages)?:
                if let page = try pages.next() {
                    _ = machine?.sendPart(page, at: world.now)
                    return
                }
            case .bytes(let bytes)?:
                if let part = try bytes.next() {
                    _ = machine?.sendBytes(part, at: world.now)
                    return
                }
            case .text?, .omitted?, nil: break
            }
            machine?.endParts(at: world.now)
        } catch {
            machine?.abort(at: world.now)
        }
    }
}
