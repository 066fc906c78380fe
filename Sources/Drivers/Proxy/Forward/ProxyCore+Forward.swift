internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The forward proxy: clients that name their destinations, the links of rules, counters by destination.
extension ProxyCore {
    /// Creates the handler of an accepted client.
    func acceptForward(_ channel: any Channel, passed: [LoopDetector.ProxyNumber]) throws {
        guard let forward, mayConnect(channel, forward) else { throw ClientNotAllowedError() }
        let redirected =
            channel.remoteAddress.flatMap { forward.redirections?.take(from: $0) }
            ?? (forward.isTransparent ? originalDestination(of: channel) : nil)
        let client = ForwardClient(self, passed: passed, redirected: redirected)
        try channel.pipeline.syncOperations.addHandler(client)
        forwardClients[ObjectIdentifier(client)] = client
    }

    /// The error that closes the channel of a client from another address than those allowed.
    private struct ClientNotAllowedError: Error {}

    /// Returns the destination of a connection that the firewall has redirected; `nil` for a client that has connected to
    /// the proxy itself.
    private func originalDestination(of channel: any Channel) -> Destination? {
        guard let address = OriginalDestination.address(of: channel), let host = LoopDetector.host(address),
            let port = address.port, !isOwnAddress(address), let local = channel.localAddress,
            port != local.port || host != LoopDetector.host(local)
        else { return nil }
        return Destination(host: host, port: port)
    }

    private func mayConnect(_ channel: any Channel, _ forward: ForwardSettings) -> Bool {
        guard !forward.clientsAllowed.isEmpty else { return true }
        guard let client = channel.remoteAddress, let host = LoopDetector.host(client) else { return false }
        // Only connections of this machine reach its loopback addresses, redirected ones under the sender's own address.
        if let local = channel.localAddress.flatMap(LoopDetector.host), LoopDetector.isLoopback(local) { return true }
        let peer = Destination(host: host, port: client.port ?? 0)
        return LoopDetector.isLoopback(host) || forward.clientsAllowed.contains { $0.matches(peer) }
    }

    /// Handles that a client's connection has ended, or that a session has taken it over with its slot.
    func forwardClientEnded(_ client: ForwardClient, keepsSlot: Bool) {
        guard forwardClients.removeValue(forKey: ObjectIdentifier(client)) != nil, !keepsSlot else { return }
        slots.release()
        updateAccepting()
    }

    /// The settings of negotiations.
    var negotiationSettings: NegotiationSettings {
        let listening = listener?.address.map { address in
            Destination(host: LoopDetector.host(address) ?? "127.0.0.1", port: address.port ?? 0)
        }
        let addresses = (forward?.addresses ?? []).map { address in
            Destination(host: address.host, port: address.port == 0 ? listening?.port ?? 0 : address.port)
        }
        return NegotiationSettings(
            addresses: addresses.isEmpty ? listening.map { [$0] } ?? [] : addresses, credentials: forward?.credentials)
    }

    // MARK: Destinations

    /// Looks up a destination and chooses its link. Passes a function to `done` that creates the session of a client's
    /// channel, or the reason for which there is none.
    func openForward(
        _ destination: Destination, for client: ForwardClient,
        _ done: @escaping (Result<(_ channel: any Channel, _ ownsChannel: Bool) -> Session, ConnectFailure>) -> Void
    ) {
        let fail: (ConnectFailure) -> Void = { failure in
            self.hostTraffic.change(destination) { $0.connectionsFailed += 1 }
            done(.failure(failure))
        }
        guard let forward, !isStopping else { return fail(.unreachable) }
        let target = forward.rules.mapped(destination)
        let isMapped = target != destination
        let isLocal = client.isOnThisMachine
        guard isMapped || forward.policy.isAllowed(destination) else { return fail(.notAllowed) }
        let treatment = forward.rules.treatment(of: destination)?.treatment
        let driver = driver(for: treatment)
        let succeed: ([SocketAddress]) -> Void = { addresses in
            done(
                .success { channel, ownsChannel in
                    let target = ForwardTarget(destination: destination, addresses: addresses)
                    return Session(
                        channel, on: driver, passed: client.passed, target: target, ownsChannel: ownsChannel
                    ) { [weak self] session in self?.dial(for: session) }
                })
        }
        switch driver.conditions.connectionPolicy {
        case .open: break
        // The portal responds in place of the destination.
        case .portal: return succeed([])
        case .offline: return fail(.unreachable)
        case .dns: return fail(destination.isNumericAddress ? .unreachable : .nameServerFailure)
        }
        switch treatment {
        case .refuse: succeed([])
        case .conditions, .direct, .block, .dnsFailure, nil:
            names.look(up: destination, at: target, on: driver, answer: treatment?.lookupAnswer) { outcome in
                switch outcome {
                case .failure(let failure): fail(failure)
                case .success(let found):
                    let others = found.filter { !self.isOwnAddress($0) }
                    if others.isEmpty { return fail(.loop) }
                    let addresses = others.filter { address in
                        isMapped || Self.isAllowed(address, of: destination, forward.policy, isLocal: isLocal)
                    }
                    if addresses.isEmpty { fail(.notAllowed) } else { succeed(addresses) }
                }
            }
        }
    }

    private static func isAllowed(
        _ address: SocketAddress, of destination: Destination, _ policy: DestinationPolicy, isLocal: Bool
    ) -> Bool {
        guard let host = LoopDetector.host(address), let address = IPAddress(host) else { return false }
        // Servers on the loopback interface are not meant for other machines.
        if !isLocal && LoopDetector.isLoopback(host) { return false }
        return policy.isAllowed(address, of: destination)
    }

    /// Whether the fast path may carry a tunnel: no conditions apply to it.
    func mayRelay(_ session: Session) -> Bool {
        fastPath?.isOpen == true && !isStopping && session.driver === linkDriver
    }

    /// Passes an established tunnel to the fast path; calls `otherwise` if it has carried a byte, or conditions apply.
    ///
    /// Later, so that the link has finished with the action that reported the establishment.
    func moveToFastPath(_ session: Session, of client: ForwardClient, otherwise: @escaping () -> Void) {
        linkDriver.runLater { _ in
            guard let fastPath = self.fastPath, self.mayRelay(session), client.hasNoEarlyBytes,
                let connection = session.handOver()
            else {
                return otherwise()
            }
            self.relayed[connection.key] = session.target?.destination
            fastPath.adopt(connection)
        }
    }

    /// Handles that the fast path has closed a tunnel.
    func tunnelClosed(_ key: ConnectionKey, _ bytes: PerDirection<Int>) {
        updateAccepting()
        guard let destination = relayed.removeValue(forKey: key) else { return }
        hostTraffic.change(destination) { row in
            for direction in Direction.allCases { row.bytes[direction] += bytes[direction] }
        }
    }

    /// The slot of a forward proxy's connection.
    enum SessionSlot {
        /// The slot of the client, which the session releases.
        case takenOver
        /// The slot of the client, which the client releases.
        case shared
        /// A slot of its own.
        case own
    }

    /// Adds a session of a client.
    ///
    /// - Parameter slot: The slot of its connection.
    func add(_ session: Session, _ slot: SessionSlot) {
        session.onEnd = { [weak self, unowned session] in self?.sessionEnded(session) }
        sessions[ObjectIdentifier(session)] = session
        session.holdsSlot = slot != .shared
        if slot == .own {
            slots.acquire()
            updateAccepting()
        }
        updateReadSizes()
    }

    /// Returns the reason for which a dial has failed.
    static func failure(of error: any Error) -> ConnectFailure {
        switch error {
        case ChannelError.connectTimeout: return .connectionTimeout
        case let error as IOError:
            return switch error.errnoCode {
            case ETIMEDOUT: .connectionTimeout
            case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EACCES, EPERM: .unreachable
            default: .connectionRefused
            }
        default: return .connectionRefused
        }
    }

    // MARK: Links of rules

    /// Returns the link of a rule; the device's if the rule has no conditions of its own.
    func driver(for treatment: HostRules.Treatment?) -> LinkDriver {
        guard let treatment, let conditions = conditions(of: treatment) else { return linkDriver }
        return linkDriver.link(of: treatment, conditions, configuration)
    }

    private func conditions(of treatment: HostRules.Treatment) -> Conditions? {
        switch treatment {
        case .refuse, .dnsFailure: nil
        case .direct: .clear
        case .block:
            Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
        case .conditions(let name): forward?.conditions[name]
        }
    }

    /// Replaces the rules. They apply to connections that are opened from now on; changed conditions of a rule also to
    /// its open connections.
    func setForward(_ settings: ForwardSettings) {
        forward = settings
        let treatments = Set(settings.rules.rules.map(\.treatment))
        linkDriver.rulesChanged { treatments.contains($0) ? self.conditions(of: $0) : nil }
    }

    /// The counters by destination, with the bytes of open connections.
    func trafficByHost() -> [HostTraffic] {
        var table = hostTraffic
        for session in sessions.values { Self.count(session, in: &table) }
        return table.all
    }

    /// Adds the traffic of a session that has ended to the counters of its destination.
    func countEnded(_ session: Session) { Self.count(session, in: &hostTraffic, hasEnded: true) }

    private static func count(_ session: Session, in table: inout HostTrafficTable, hasEnded: Bool = false) {
        guard let destination = session.target?.destination ?? session.relayedDestination else { return }
        table.change(destination) { row in
            if session.isEstablished {
                row.connections += 1
            } else if hasEnded, session.relayedDestination == nil {
                row.connectionsFailed += 1
            }
            for direction in Direction.allCases { row.bytes[direction] += session.bytesRead[direction] }
            if let name = session.serverName { row.serverName = name }
        }
    }
}
