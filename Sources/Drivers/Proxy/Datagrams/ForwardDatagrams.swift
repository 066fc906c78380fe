#if os(Linux)
internal import CRelay
internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The datagrams of a forward proxy: the ports to which clients send, and a socket to the server for each session.
///
/// A port belongs to an association of SOCKS 5, whose datagrams name their destinations, or to one destination, for clients that
/// a supervisor redirects. A session is the datagrams between one client and one destination, on the link of that destination.
/// Used on its event loop only.
final class ForwardDatagrams {
    /// Whether this system has the calls.
    static let isAvailable = true

    /// A port to which clients send.
    final class Port {
        /// The bound address.
        let own: crelay_address
        let descriptor: CInt
        /// The number of the bound port.
        var number: Int { Int(own.port) }
        /// The number among the sockets of the reader.
        let index: Int
        /// The client of an association; its port is 0 until its first datagram. `nil` for the port of a destination.
        var client: crelay_address?
        /// The routes by the headers of datagrams; without headers, the key is empty.
        var routes: [[UInt8]: Route] = [:]
        /// The destination of a port that is not one of an association.
        let destination: Destination?
        /// Whether the client is on this machine.
        let isLocal: Bool
        var isRefusing = false
        var refusalEnd = NIODeadline.uptimeNanoseconds(0)

        init(
            _ own: crelay_address, _ descriptor: CInt, index: Int, client: crelay_address?, destination: Destination?,
            isLocal: Bool
        ) {
            self.own = own
            self.descriptor = descriptor
            self.index = index
            self.client = client
            self.destination = destination
            self.isLocal = isLocal
        }
    }

    /// A destination of the datagrams of a port, from its lookup until its last session ends.
    final class Route {
        let number: UInt32
        let port: Port
        let header: [UInt8]
        let destination: Destination
        /// The link, and the addresses of the server; `nil` during the lookup.
        var found: ProxyCore.Route?
        /// The datagrams that wait for the lookup.
        var waiting: [(payload: ByteBuffer, client: crelay_address)] = []
        /// The position of the address that is used, as long as no other responds.
        var serverAddress = 0
        var serverHasResponded = false
        var sessions = 0

        init(_ number: UInt32, _ port: Port, _ header: [UInt8], _ destination: Destination) {
            self.number = number
            self.port = port
            self.header = header
            self.destination = destination
        }
    }

    /// A session, by the number of its link and its flow.
    struct Key: Hashable {
        let link: Int
        let flow: FlowID
    }

    /// The socket to the server.
    struct Session {
        let client: crelay_address
        let route: Route
        let driver: LinkDriver
        let index: Int
        var descriptor: CInt?
        /// The header of the server's datagrams.
        var header: [UInt8] = []
        /// The record of the loop detector.
        var dial: LoopDetector.Dial?
    }

    /// What a socket of the reader belongs to.
    private enum Owner {
        case port(Port)
        case session(Key)
    }

    unowned let core: ProxyCore
    let reader: DatagramReader
    let buffer = DatagramBuffer.current
    private var owners: [Owner?] = []
    private var freeIndices: [Int] = []
    private(set) var ports: [ObjectIdentifier: Port] = [:]
    private var destinationPorts: [Destination: Port] = [:]
    private var routes: [UInt32: Route] = [:]
    private var lastRoute: UInt32 = 0
    var sessions: [Key: Session] = [:]
    /// Datagrams that were dropped without a message: the kernel has not taken them, or they have waited for a lookup.
    private(set) var sendFailures = 0

    /// The maximum number of ports of destinations; the datagrams to further ones are not redirected.
    static let destinationsMax = 256
    /// The maximum number of destinations of an association; datagrams to further ones are dropped.
    static let routesMax = 1024
    /// The maximum number of datagrams that wait for a lookup.
    private static let waitingMax = 16
    private static let portBytes: CInt = 1 << 20

    init(_ core: ProxyCore) throws {
        self.core = core
        reader = try DatagramReader(core.linkDriver)
        reader.read = { [weak self] index in self?.read(index) ?? 0 }
    }

    // MARK: Ports

    /// Opens the port of an association.
    ///
    /// - Parameters:
    ///   - local: The address at which the client has connected.
    ///   - client: The client's address; datagrams of others are dropped.
    ///   - clientPort: The port from which the client sends; with 0, that of its first datagram.
    func associate(at local: SocketAddress, client: SocketAddress, port clientPort: Int) throws -> Port {
        guard var peer = crelay_address(client) else { throw IOError(errnoCode: EAFNOSUPPORT, reason: "bind") }
        peer.port = UInt16(truncatingIfNeeded: clientPort)
        return try open(at: local, client: peer, destination: nil, isLocal: Proxy.isOnThisMachine(client))
    }

    /// Returns the port of 127.0.0.1 whose datagrams go to a destination.
    func port(to destination: Destination) throws -> Int {
        if let known = destinationPorts[destination] { return known.number }
        guard destinationPorts.count < Self.destinationsMax else { throw IOError(errnoCode: EMFILE, reason: "bind") }
        let port = try open(
            at: SocketAddress(ipAddress: "127.0.0.1", port: 0), client: nil, destination: destination, isLocal: true)
        destinationPorts[destination] = port
        return port.number
    }

    private func open(
        at local: SocketAddress, client: crelay_address?, destination: Destination?, isLocal: Bool
    ) throws -> Port {
        guard var own = crelay_address(local) else { throw IOError(errnoCode: EAFNOSUPPORT, reason: "bind") }
        own.port = 0
        if FileBudget.shared.isFull { throw IOError(errnoCode: EMFILE, reason: "bind") }
        let descriptor = crelay_open_datagram_port(&own, Self.portBytes)
        guard descriptor >= 0 else { throw IOError(errnoCode: -descriptor, reason: "bind") }
        let index = takeIndex()
        let port = Port(own, descriptor, index: index, client: client, destination: destination, isLocal: isLocal)
        ports[ObjectIdentifier(port)] = port
        owners[index] = .port(port)
        FileBudget.shared.take()
        LoopDetector.datagrams.recordListening(port.number)
        updateRefusal(of: port)
        reader.watch(descriptor, index: index)
        return port
    }

    /// Closes a port and ends its sessions.
    func close(_ port: Port) {
        guard ports.removeValue(forKey: ObjectIdentifier(port)) != nil else { return }
        for (key, session) in sessions where session.route.port === port {
            session.driver.change { $0.endDatagramSession(key.flow, at: $1) }
        }
        for route in port.routes.values { routes[route.number] = nil }
        port.routes = [:]
        if let destination = port.destination { destinationPorts[destination] = nil }
        LoopDetector.datagrams.recordClosed(port.number)
        reader.close(port.index)
        FileBudget.shared.release()
        free(port.index)
    }

    /// Stops reading; datagrams in flight still arrive.
    func stopReading() { reader.stop() }

    /// Closes all sockets.
    func closeAll() {
        for session in sessions.values where session.descriptor != nil { FileBudget.shared.release() }
        for port in ports.values {
            port.routes = [:]
            FileBudget.shared.release()
            LoopDetector.datagrams.recordClosed(port.number)
        }
        (sessions, ports, routes, destinationPorts) = ([:], [:], [:], [:])
        reader.closeAll()
    }

    private func takeIndex() -> Int {
        if let index = freeIndices.popLast() { return index }
        owners.append(nil)
        return owners.count - 1
    }

    private func free(_ index: Int) {
        owners[index] = nil
        freeIndices.append(index)
    }

    // MARK: Reading

    private func read(_ index: Int) -> Int {
        switch owners.indices.contains(index) ? owners[index] : nil {
        case .port(let port): readClients(port)
        case .session(let key): readServer(key)
        case nil: 0
        }
    }

    private func receive(_ descriptor: CInt) -> CInt {
        var dropped: UInt32 = 0
        return crelay_receive_datagrams(
            descriptor, buffer.bytes, buffer.datagrams, CInt(DatagramBuffer.count), &dropped)
    }

    private func readClients(_ port: Port) -> Int {
        let count = Int(max(0, receive(port.descriptor)))
        for index in 0..<count {
            var client = buffer.datagrams[index].peer
            var length = 0
            if let expected = port.client {
                guard client.high == expected.high, client.low == expected.low,
                    expected.port == 0 || client.port == expected.port,
                    let header = SOCKSDatagram.headerLength(buffer.datagram(index))
                else { continue }
                port.client = client
                length = header
            }
            client.is_ipv4 = port.own.is_ipv4
            let header = Array(buffer.datagram(index).prefix(length))
            let payload = buffer.payload(index, droppingFirst: length)
            if let route = port.routes[header] {
                offer(payload, from: client, route)
            } else {
                addRoute(port, header, for: payload, from: client)
            }
        }
        return count
    }

    private func readServer(_ key: Key) -> Int {
        guard let session = sessions[key], let descriptor = session.descriptor else { return 0 }
        let received = receive(descriptor)
        if received == -ECONNREFUSED { refused(key) }
        let count = Int(max(0, received))
        if count == 0 { return 0 }
        session.route.serverHasResponded = true
        session.driver.change { link, now in
            for index in 0..<count {
                link.receiveDatagram(buffer.payload(index), fromServerOf: key.flow, at: now)
            }
        }
        return count
    }

    // MARK: Routes

    private func addRoute(_ port: Port, _ header: [UInt8], for payload: ByteBuffer, from client: crelay_address) {
        guard port.routes.count < Self.routesMax, routes.count < Int(UInt32.max),
            let destination = port.destination ?? SOCKSDatagram.destination(header)
        else { return sendFailures += 1 }
        repeat { lastRoute &+= 1 } while lastRoute == 0 || routes[lastRoute] != nil
        let route = Route(lastRoute, port, header, destination)
        route.waiting = [(payload, client)]
        routes[route.number] = route
        port.routes[header] = route
        core.route(to: destination, isLocal: port.isLocal) { [weak self] in self?.complete(route, $0) }
    }

    private func complete(_ route: Route, _ result: Result<ProxyCore.Route, ConnectFailure>) {
        guard routes[route.number] === route else { return }
        guard case .success(let found) = result, !found.target.addresses.isEmpty else {
            // SOCKS 5 has no message for it.
            core.countFailed(route.destination)
            remove(route)
            if let client = route.waiting.first?.client { reportUnreachable(route.port, client) }
            return
        }
        route.found = found
        found.driver.forwardDatagrams = self
        let waiting = route.waiting
        route.waiting = []
        for (payload, client) in waiting { offer(payload, from: client, route) }
    }

    private func remove(_ route: Route) {
        if routes[route.number] === route { routes[route.number] = nil }
        if ports[ObjectIdentifier(route.port)] != nil, route.port.routes[route.header] === route {
            route.port.routes[route.header] = nil
        }
    }

    private func offer(_ payload: ByteBuffer, from client: crelay_address, _ route: Route) {
        guard let found = route.found else {
            if route.waiting.count < Self.waitingMax {
                route.waiting.append((payload, client))
            } else {
                sendFailures += 1
            }
            return
        }
        var isAdmitted = false
        found.driver.change { [numbers = core.numbers] link, now in
            let key = client.key(route: route.number)
            isAdmitted = link.receiveDatagram(payload, from: key, number: numbers.next, at: now) != nil
        }
        // The next datagram asks again for the link and the addresses.
        if !isAdmitted && route.sessions == 0 { remove(route) }
    }

    // MARK: Actions

    /// Executes an action of a link.
    func execute(_ timed: SharedLink.TimedDatagramAction, on driver: LinkDriver) {
        let key = Key(link: driver.number, flow: timed.flow)
        switch timed.action {
        case .open(let client, _): open(key, client, driver)
        case .send(let payload, .up): send(payload, toServerOf: key)
        case .send(let payload, .down): send(payload, toClientOf: key)
        case .rebind:
            closeSocket(key)
            connect(key)
        case .reportUnreachable:
            if let session = sessions[key] { reportUnreachable(session.route.port, session.client) }
        case .close(_, let bytesRead):
            closeSocket(key)
            guard let session = sessions.removeValue(forKey: key) else { return }
            free(session.index)
            session.route.sessions -= 1
            core.hostTraffic.change(session.route.destination) { row in
                for direction in Direction.allCases { row.bytes[direction] += bytesRead[direction] }
            }
            if session.route.sessions == 0 { remove(session.route) }
        }
    }

    private func open(_ key: Key, _ client: DatagramAddress, _ driver: LinkDriver) {
        guard let route = routes[client.route], ports[ObjectIdentifier(route.port)] != nil else {
            return end(key.flow, driver)
        }
        let address = crelay_address(client, isIPv4: route.port.own.is_ipv4 != 0)
        sessions[key] = Session(client: address, route: route, driver: driver, index: takeIndex())
        route.sessions += 1
        core.hostTraffic.change(route.destination) { $0.connections += 1 }
        if FileBudget.shared.isFull, driver.link.datagramSessionCount > 1 { driver.link.evictDatagramSession() }
        connect(key)
    }

    private func connect(_ key: Key) {
        guard let session = sessions[key], let addresses = session.route.found?.target.addresses, !addresses.isEmpty
        else { return }
        let (route, own) = (session.route, session.route.port.own)
        let target = addresses[route.serverAddress % addresses.count]
        let passed = LoopDetector.datagrams.passed(from: session.client.socketAddress, to: own.socketAddress)
        guard !passed.contains(core.proxyNumber) else {
            core.loopDetected()
            return end(key.flow, session.driver)
        }
        var server = crelay_address(target) ?? crelay_address()
        var port: UInt16 = 0
        let opened = crelay_open_datagram_session(&server, DatagramPort.sessionBytes, &port)
        guard opened >= 0 else {
            core.dialFailed(IOError(errnoCode: -opened, reason: "connect"))
            return session.driver.change { $0.receiveUnreachable(fromServerOf: key.flow, at: $1) }
        }
        if Proxy.isOnThisMachine(target), LoopDetector.datagrams.mustRecord(target.port) {
            sessions[key]?.dial = LoopDetector.datagrams.recordDial(
                from: Int(port), passed: passed, by: core.proxyNumber)
        }
        if route.port.client != nil, let host = LoopDetector.host(target).flatMap({ IPAddress($0) }) {
            sessions[key]?.header = SOCKSDatagram.header(of: host, port: target.port ?? 0)
        }
        sessions[key]?.descriptor = opened
        owners[session.index] = .session(key)
        FileBudget.shared.take()
        reader.watch(opened, index: session.index)
    }

    /// Ends a session, later: the link's actions are being executed.
    private func end(_ flow: FlowID, _ driver: LinkDriver) {
        driver.eventLoop.assumeIsolated().execute { driver.change { $0.endDatagramSession(flow, at: $1) } }
    }

    private func closeSocket(_ key: Key) {
        guard let session = sessions[key], session.descriptor != nil else { return }
        reader.close(session.index)
        FileBudget.shared.release()
        sessions[key]?.descriptor = nil
        sessions[key]?.dial = nil
    }

    /// Handles that the server's machine has refused a datagram.
    private func refused(_ key: Key) {
        guard let session = sessions[key] else { return }
        let route = session.route
        if !route.serverHasResponded, (route.found?.target.addresses.count ?? 0) > route.serverAddress + 1 {
            // 'localhost' may be the IPv6 address only. The client repeats the datagram.
            route.serverAddress += 1
            closeSocket(key)
            return connect(key)
        }
        core.dialFailed(IOError(errnoCode: ECONNREFUSED, reason: "send"))
        session.driver.change { $0.receiveUnreachable(fromServerOf: key.flow, at: $1) }
    }

    private func send(_ payload: ByteBuffer, toServerOf key: Key) {
        guard let descriptor = sessions[key]?.descriptor else { return sendFailures += 1 }
        var code: CInt = 0
        let sent = payload.withUnsafeReadableBytes { bytes in
            crelay_send_datagram(descriptor, nil, nil, bytes.baseAddress, bytes.count, &code)
        }
        if sent == 0 { sendFailures += 1 }
        if code == ECONNREFUSED { refused(key) }
    }

    private func send(_ payload: ByteBuffer, toClientOf key: Key) {
        guard let session = sessions[key], ports[ObjectIdentifier(session.route.port)] != nil else { return }
        var message = ByteBuffer(bytes: session.header)
        message.writeImmutableBuffer(payload)
        var code: CInt = 0
        let sent = message.withUnsafeReadableBytes { bytes in
            withUnsafePointer(to: session.client) { client in
                crelay_send_datagram(session.route.port.descriptor, client, nil, bytes.baseAddress, bytes.count, &code)
            }
        }
        if sent == 0 { sendFailures += 1 }
    }

    // MARK: Refusal

    /// Makes the kernel refuse the datagrams of redirected clients, or accept them, as the link requires.
    func updateRefusal() { for port in ports.values where port.destination != nil { updateRefusal(of: port) } }

    private func updateRefusal(of port: Port) {
        guard port.destination != nil else { return }
        let driver = port.routes[[]]?.found?.driver ?? core.linkDriver
        let refuses = driver.link.refusesDatagrams || NIODeadline.now() < port.refusalEnd
        guard refuses != port.isRefusing else { return }
        port.isRefusing = refuses
        _ = withUnsafePointer(to: port.own) {
            refuses ? crelay_refuse_datagrams(port.descriptor, $0) : crelay_admit_datagrams(port.descriptor)
        }
    }

    /// Sends a redirected client an ICMP port unreachable; without the permission, its port refuses datagrams for a while. A
    /// client of SOCKS 5 learns nothing.
    private func reportUnreachable(_ port: Port, _ client: crelay_address) {
        guard port.destination != nil, ports[ObjectIdentifier(port)] != nil else { return }
        var (client, own) = (client, port.own)
        if crelay_send_unreachable(&client, &own) == 0 { return }
        port.refusalEnd = .now() + DatagramPort.refusalTime
        updateRefusal(of: port)
        core.eventLoop.assumeIsolated().scheduleTask(deadline: port.refusalEnd) { [weak self] in self?.updateRefusal() }
    }
}
#endif
