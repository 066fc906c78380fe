#if os(Linux)
internal import CRelay
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The sockets to the server, and the refusal of datagrams.
extension DatagramPort {
    func open(_ flow: FlowID, _ client: DatagramAddress, _ number: Int) {
        while sockets.count <= flow.index { sockets.append(nil) }
        var socket = DatagramSocket(
            flow: flow, number: number, client: crelay_address(client, isIPv4: own.is_ipv4 != 0), openedAt: .now())
        socket.local = locals.removeValue(forKey: flow)
        sockets[flow.index] = socket
        FileBudget.shared.take()
        if FileBudget.shared.isFull, driver.link.datagramSessionCount > 1 { driver.link.evictDatagramSession() }
        if driver.observesConnections { driver.send(.connection(event(of: socket)), .connections) }
        connect(flow)
    }

    /// Opens the socket to the server, after the lookup of its name if it has to be looked up.
    func connect(_ flow: FlowID) {
        let upstream = core.upstream
        guard core.configuration.resolvesPerConnection, upstream.immediate == nil else {
            return connect(flow, upstream.immediate ?? upstream.current(on: core.eventLoop))
        }
        sockets[flow.index]?.isConnecting = true
        upstream.fresh(within: core.configuration.connectTimeout, on: core.eventLoop).whenComplete { result in
            guard !self.isClosed, self.socket(flow) != nil else { return }
            self.sockets[flow.index]?.isConnecting = false
            switch result {
            case .success(let addresses): self.connect(flow, addresses)
            case .failure(let error): self.failed(flow, error)
            }
        }
    }

    private func connect(_ flow: FlowID, _ addresses: [SocketAddress]) {
        guard let socket = socket(flow) else { return }
        let others = addresses.filter { !Proxy.reaches(address, from: $0) }
        let client = socket.client.socketAddress
        let passed = LoopDetector.datagrams.passed(
            from: client, to: socket.local?.socketAddress ?? address)
        if others.isEmpty && !addresses.isEmpty || passed.contains(core.proxyNumber) {
            core.loopDetected()
            _ = end(flow)
            return
        }
        guard !others.isEmpty, var server = crelay_address(others[serverAddress % others.count]) else {
            return failed(flow, IOError(errnoCode: EADDRNOTAVAIL, reason: "connect"))
        }
        var port: UInt16 = 0
        let opened = crelay_open_datagram_session(&server, Self.sessionBytes, &port)
        guard opened >= 0 else {
            if opened == -EMFILE || opened == -ENFILE { driver.link.evictDatagramSession() }
            return failed(flow, IOError(errnoCode: -opened, reason: "connect"))
        }
        let target = others[serverAddress % others.count]
        if Proxy.isOnThisMachine(target), LoopDetector.datagrams.mustRecord(target.port) {
            sockets[flow.index]?.dial = LoopDetector.datagrams.recordDial(
                from: Int(port), passed: passed, by: core.proxyNumber)
        }
        sockets[flow.index]?.descriptor = opened
        sockets[flow.index]?.waiting = []
        reader.watch(opened, index: flow.index + 1)
        for payload in socket.waiting { send(payload, toServerOf: flow) }
    }

    /// Handles a failed lookup of the server's name: the client gets what it would get if no socket had the server's port.
    private func failed(_ flow: FlowID, _ error: any Error) {
        core.dialFailed(error)
        sockets[flow.index]?.waiting = []
        driver.change { $0.receiveUnreachable(fromServerOf: flow, at: $1) }
    }

    /// Handles that the server's machine has refused a datagram.
    func refused(_ flow: FlowID) {
        if !serverHasResponded, core.upstream.known.count > serverAddress + 1 {
            // 'localhost' may be the IPv6 address only. The client repeats the datagram.
            serverAddress += 1
            closeDescriptor(flow)
            return connect(flow)
        }
        core.dialFailed(IOError(errnoCode: ECONNREFUSED, reason: "send"))
        driver.change { $0.receiveUnreachable(fromServerOf: flow, at: $1) }
    }

    func closeDescriptor(_ flow: FlowID) {
        guard socket(flow)?.descriptor != nil else { return }
        reader.close(flow.index + 1)
        sockets[flow.index]?.descriptor = nil
        sockets[flow.index]?.dial = nil
    }

    // MARK: Refusal

    /// Makes the kernel refuse the clients' datagrams, or accept them, as the link requires.
    func updateRefusal() {
        if isClosed { return }
        let refuses =
            driver.link.refusesDatagrams || (refusalEnd > .uptimeNanoseconds(0) && NIODeadline.now() < refusalEnd)
        guard refuses != isRefusing else { return }
        isRefusing = refuses
        let code = withUnsafePointer(to: own) {
            refuses ? crelay_refuse_datagrams(descriptor, $0) : crelay_admit_datagrams(descriptor)
        }
        if code != 0 {
            core.logger.error(
                "cannot \(refuses ? "refuse" : "admit") datagrams: \(SystemErrorDescription(errno: code))")
        }
    }

    /// Sends the client of a session an ICMP port unreachable; without the permission, the port refuses the next datagrams of
    /// all clients.
    func reportUnreachable(_ flow: FlowID) {
        guard let socket = socket(flow) else { return }
        var server = socket.local ?? own
        server.port = own.port
        let code = withUnsafePointer(to: socket.client) { crelay_send_unreachable($0, &server) }
        if code == 0 { return }
        refusalEnd = .now() + Self.refusalTime
        updateRefusal()
        core.eventLoop.assumeIsolated().scheduleTask(deadline: refusalEnd) { self.updateRefusal() }
    }
}
#endif
