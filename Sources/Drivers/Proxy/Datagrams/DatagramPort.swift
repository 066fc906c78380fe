#if os(Linux)
internal import CRelay
internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The datagrams of a proxy: the socket of its port, and a socket to the server for each session.
///
/// Sessions and the times of datagrams are those of the link (``Impairment/SharedLink``); while no conditions apply,
/// datagrams go from socket to socket, many with one system call. Used on its event loop only.
final class DatagramPort {
    /// The bound address.
    let address: SocketAddress
    let own: crelay_address
    let descriptor: CInt
    unowned let driver: LinkDriver
    unowned let core: ProxyCore
    private let buffer = DatagramBuffer.current
    /// The sockets of sessions, by the index of the flow.
    var sockets: [DatagramSocket?] = []
    /// Reads socket 0, the port, and those of sessions, whose numbers are the index of the flow and 1.
    let reader: DatagramReader
    var isClosed = false
    /// Whether the kernel refuses the clients' datagrams.
    var isRefusing = false
    /// The end of the time for which the port refuses all datagrams, because the server's machine has refused one.
    var refusalEnd = NIODeadline.uptimeNanoseconds(0)
    /// Datagrams that the kernel has not taken.
    private var sendFailures = 0
    /// Datagrams that the kernel has dropped because the port's buffer was full.
    private var overflows: UInt32 = 0
    /// The position of the server's address that is used, as long as no other responds.
    var serverAddress = 0
    var serverHasResponded = false

    /// The size of the port's receive buffer, as far as the system permits it (`net.core.rmem_max`).
    private static let portBytes: CInt = 4 << 20
    /// The same for the socket of a session.
    static let sessionBytes: CInt = 1 << 20
    /// The maximum number of datagrams of a session that wait for the lookup of the server's name.
    private static let waitingMax = 16
    /// The time for which the port refuses all datagrams if the message for one client cannot be sent.
    static let refusalTime = TimeAmount.seconds(1)

    /// Whether this system has the calls.
    static let isAvailable = true

    /// Binds the port.
    init(_ requested: SocketAddress, _ core: ProxyCore) throws {
        guard var own = crelay_address(requested) else { throw IOError(errnoCode: EAFNOSUPPORT, reason: "bind") }
        reader = try DatagramReader(core.linkDriver)
        let descriptor = crelay_open_datagram_port(&own, Self.portBytes)
        guard descriptor >= 0 else { throw IOError(errnoCode: -descriptor, reason: "bind") }
        self.own = own
        self.descriptor = descriptor
        self.core = core
        driver = core.linkDriver
        var address = requested
        address.port = Int(own.port)
        self.address = address
        reader.read = { [weak self] index in self.map { index == 0 ? $0.readClients() : $0.readServer(index - 1) } ?? 0
        }
        LoopDetector.datagrams.recordListening(Int(own.port))
        updateRefusal()
        reader.watch(descriptor, index: 0)
    }

    // MARK: State

    var status: DatagramStatus {
        var status = DatagramStatus()
        status.sessions = driver.link.datagramSessionCount
        status.counters = driver.link.datagramCounters
        status.sendFailures = sendFailures
        status.bufferOverflows = Int(overflows)
        status.isRefusing = isRefusing
        return status
    }

    /// The sessions, as connections.
    var connections: [ConnectionStatus] {
        let now = NIODeadline.now()
        return driver.link.datagramSessions.compactMap { session in
            guard let socket = socket(session.id) else { return nil }
            return ConnectionStatus(
                id: ConnectionID(carrier: .datagrams(session.id)), number: session.number,
                client: socket.client.endpoint, serverName: nil,
                age: Nanoseconds((now - socket.openedAt).nanoseconds), bytesRead: session.bytesRead,
                bytesHeld: PerDirection(up: 0, down: 0), isDatagrams: true)
        }
    }

    func socket(_ flow: FlowID) -> DatagramSocket? {
        guard flow.index < sockets.count, let socket = sockets[flow.index], socket.flow == flow else { return nil }
        return socket
    }

    // MARK: Reading

    /// Reads datagrams of clients. Returns their number.
    private func readClients() -> Int {
        let received = receive(descriptor)
        let count = Int(max(0, received))
        if count == 0 { return 0 }
        let evicted = driver.link.datagramCounters.sessionsEvicted
        if driver.link.passesDatagramsAtOnce {
            openSessions(count)
            // With very few sessions, one of another client may have taken the place of a datagram's session.
            if driver.link.datagramCounters.sessionsEvicted == evicted {
                driver.start()
                forward(count, .up)
                return count
            }
        }
        driver.change { [self] link, now in
            for index in 0..<count {
                let datagram = buffer.datagrams[index]
                let id = link.receiveDatagram(
                    buffer.payload(index), from: datagram.peer.key, number: driver.numbers.next, at: now)
                if let id { record(datagram.local, of: id) }
            }
        }
        return count
    }

    /// Finds the sessions of received datagrams, and opens those of new clients. The group of a datagram is the index of its
    /// flow.
    private func openSessions(_ count: Int) {
        let now = driver.now
        var known: (peer: crelay_address, id: FlowID)?
        for index in 0..<count {
            let datagram = buffer.datagrams[index]
            var id = known.flatMap { $0.peer == datagram.peer ? $0.id : nil }
            if id == nil {
                id = driver.link.openDatagramSession(of: datagram.peer.key, number: driver.numbers.next, at: now)
                if let id {
                    known = (datagram.peer, id)
                    record(datagram.local, of: id)
                }
            }
            buffer.datagrams[index].group = id.map { Int32($0.index) } ?? -1
        }
    }

    /// Sends received datagrams on, those of each group together.
    private func forward(_ count: Int, _ direction: Direction) {
        for first in 0..<count {
            let group = buffer.datagrams[first].group
            guard group >= 0, let socket = sockets.indices.contains(Int(group)) ? sockets[Int(group)] : nil else {
                continue
            }
            var (number, bytes) = (0, 0)
            for index in first..<count where buffer.datagrams[index].group == group {
                buffer.indices[number] = Int32(index)
                buffer.datagrams[index].group = -1
                number += 1
                bytes += Int(buffer.datagrams[index].length)
            }
            driver.link.recordPassedDatagrams(number, bytes: bytes, of: socket.flow, direction)
            if direction == .up, socket.descriptor == nil {
                for index in 0..<number { send(buffer.payload(Int(buffer.indices[index])), toServerOf: socket.flow) }
                continue
            }
            var code: CInt = 0
            let sent: CInt
            if direction == .up {
                sent = crelay_send_datagrams(
                    socket.descriptor ?? -1, nil, nil, buffer.bytes, buffer.datagrams, buffer.indices, CInt(number),
                    &code)
            } else {
                sent = withUnsafePointer(to: socket.client) { client in
                    Self.withPointer(to: socket.local) { local in
                        crelay_send_datagrams(
                            descriptor, client, local, buffer.bytes, buffer.datagrams, buffer.indices, CInt(number),
                            &code)
                    }
                }
            }
            sendFailures += number - Int(sent)
            if direction == .up, code == ECONNREFUSED { refused(socket.flow) }
        }
    }

    /// Reads datagrams of the server of a session. Returns their number.
    private func readServer(_ index: Int) -> Int {
        guard index < sockets.count, let socket = sockets[index], let descriptor = socket.descriptor else { return 0 }
        let received = receive(descriptor)
        if received == -ECONNREFUSED { refused(socket.flow) }
        let count = Int(max(0, received))
        if count == 0 { return 0 }
        serverHasResponded = true
        if driver.link.passesDatagramsAtOnce {
            for datagram in 0..<count { buffer.datagrams[datagram].group = Int32(index) }
            forward(count, .down)
        } else {
            driver.change { [self] link, now in
                for datagram in 0..<count {
                    link.receiveDatagram(buffer.payload(datagram), fromServerOf: socket.flow, at: now)
                }
            }
        }
        return count
    }

    private func receive(_ descriptor: CInt) -> CInt {
        var dropped: UInt32 = 0
        let count = crelay_receive_datagrams(
            descriptor, buffer.bytes, buffer.datagrams, CInt(DatagramBuffer.count), &dropped)
        if descriptor == self.descriptor, dropped > overflows { overflows = dropped }
        return count
    }

    /// Records the address of this machine to which a client has sent; replies come from it.
    private func record(_ local: crelay_address, of id: FlowID) {
        guard local.isKnown else { return }
        if socket(id) == nil { locals[id] = local } else { sockets[id.index]?.local = local }
    }

    /// The addresses of sessions whose action to open a socket is still to be executed.
    var locals: [FlowID: crelay_address] = [:]

    // MARK: Actions

    /// Executes an action of the link.
    func execute(_ action: SharedLink.TimedDatagramAction) {
        if isClosed { return }
        switch action.action {
        case .open(let client, let number): open(action.flow, client, number)
        case .send(let payload, .up): send(payload, toServerOf: action.flow)
        case .send(let payload, .down): send(payload, toClientOf: action.flow)
        case .rebind:
            closeDescriptor(action.flow)
            connect(action.flow)
        case .reportUnreachable: reportUnreachable(action.flow)
        case .close(let cause, let bytesRead): close(action.flow, cause, bytesRead)
        }
    }

    private func send(_ payload: ByteBuffer, toClientOf flow: FlowID) {
        guard let socket = socket(flow) else { return }
        var code: CInt = 0
        let sent = payload.withUnsafeReadableBytes { bytes in
            withUnsafePointer(to: socket.client) { client in
                Self.withPointer(to: socket.local) { local in
                    crelay_send_datagram(descriptor, client, local, bytes.baseAddress, bytes.count, &code)
                }
            }
        }
        if sent == 0 { sendFailures += 1 }
    }

    func send(_ payload: ByteBuffer, toServerOf flow: FlowID) {
        guard let socket = socket(flow) else { return }
        guard let descriptor = socket.descriptor else {
            guard socket.waiting.count < Self.waitingMax else { return sendFailures += 1 }
            sockets[flow.index]?.waiting.append(payload)
            if !socket.isConnecting { connect(flow) }
            return
        }
        var code: CInt = 0
        let sent = payload.withUnsafeReadableBytes { bytes in
            crelay_send_datagram(descriptor, nil, nil, bytes.baseAddress, bytes.count, &code)
        }
        if sent == 0 { sendFailures += 1 }
        if code == ECONNREFUSED { refused(flow) }
    }

    private static func withPointer<Result>(
        to address: crelay_address?, _ body: (UnsafePointer<crelay_address>?) -> Result
    ) -> Result {
        guard let address else { return body(nil) }
        return withUnsafePointer(to: address) { body($0) }
    }

    // MARK: End

    /// Ends a session. Returns `false` if it has ended already.
    func end(_ flow: FlowID) -> Bool {
        guard socket(flow) != nil else { return false }
        driver.change { $0.endDatagramSession(flow, at: $1) }
        return true
    }

    private func close(_ flow: FlowID, _ cause: DatagramSessionEnd, _ bytesRead: PerDirection<Int>) {
        locals[flow] = nil
        guard let socket = socket(flow) else { return }
        closeDescriptor(flow)
        sockets[flow.index] = nil
        FileBudget.shared.release()
        guard driver.observesConnections else { return }
        let reason: ConnectionEndReason =
            switch cause {
            case .idle: .idle
            case .evicted: .evicted
            case .closed: .proxy
            }
        let end = ConnectionEvent.End(time: driver.now, reason: reason, bytesRead: bytesRead)
        driver.send(.connection(event(of: socket, end)), .connections)
    }

    func event(of socket: DatagramSocket, _ end: ConnectionEvent.End? = nil) -> ConnectionEvent {
        var event = ConnectionEvent(
            number: socket.number, client: socket.client.endpoint,
            opened: Instant(Nanoseconds((socket.openedAt - driver.origin).nanoseconds)), end: end)
        event.isDatagrams = true
        return event
    }

    /// Stops reading; datagrams in flight still arrive.
    func stopReading() { reader.stop() }

    deinit { close() }

    /// Closes all sockets.
    func close() {
        if isClosed { return }
        isClosed = true
        LoopDetector.datagrams.recordClosed(Int(own.port))
        for case _? in sockets { FileBudget.shared.release() }
        sockets = []
        reader.closeAll()
    }
}
#endif
