internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOConcurrencyHelpers
internal import NIOCore

/// The forward proxy: clients that name their destinations, the links of rules, counters by destination.
extension ProxyCore {
    /// Creates the handler of an accepted client.
    func acceptForward(_ channel: any Channel, passed: [LoopDetector.ProxyNumber]) throws {
        guard let admission = updateAdmission() else { return }
        let request = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
            of: NIOBSDSocket.Handle.self
        ) { admission.request(of: $0) }
        guard let request = request ?? nil else { throw ClientNotAllowedError() }
        let client = ForwardClient(self, passed: passed, request)
        try channel.pipeline.syncOperations.addHandler(client)
        forwardClients[ObjectIdentifier(client)] = client
    }

    /// The error that closes the channel of a client from another address than those allowed.
    private struct ClientNotAllowedError: Error {}

    /// Returns the admission of clients by the present settings, in effect from now on.
    @discardableResult
    func updateAdmission() -> ForwardAdmission? {
        guard let forward else { return nil }
        let current = ForwardAdmission(forward, listening: listener?.address)
        admission?.withLockedValue { $0 = current }
        return current
    }

    /// Handles that a client's connection has ended, or that a session has taken it over with its slot.
    func forwardClientEnded(_ client: ForwardClient, keepsSlot: Bool) {
        guard forwardClients.removeValue(forKey: ObjectIdentifier(client)) != nil, !keepsSlot else { return }
        let wasFull = slots.release()
        updateAccepting()
        if wasFull { fastPath?.slotReleased() }
    }

    // MARK: Destinations

    /// The link of a connection to a destination, and its addresses; none if the link responds in place of the destination
    /// or a rule refuses it.
    struct Route {
        let driver: LinkDriver
        let target: ForwardTarget
    }

    /// Looks up a destination for a client and chooses its link.
    func route(
        to destination: Destination, isLocal: Bool, _ done: @escaping (Result<Route, ConnectFailure>) -> Void
    ) {
        let fail: (ConnectFailure) -> Void = { done(.failure($0)) }
        // A client that has named its destination goes on during the grace period of a stop.
        guard let forward, !isClosed, .now() < drainDeadline else { return fail(.unreachable) }
        let target = forward.rules.mapped(destination)
        let isMapped = target != destination
        guard isMapped || forward.policy.isAllowed(destination) else { return fail(.notAllowed) }
        let treatment = forward.rules.rule(for: destination)?.treatment
        let driver = driver(for: treatment)
        let succeed: ([SocketAddress]) -> Void = { addresses in
            done(
                .success(Route(driver: driver, target: ForwardTarget(destination: destination, addresses: addresses))))
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

    /// Creates the session of a client's connection to a destination.
    func session(
        of client: any Channel, on route: Route, passed: [LoopDetector.ProxyNumber], ownsChannel: Bool = true
    ) -> Session {
        // Its row is added now, because the rows are in the order in which clients name the destinations.
        hostTraffic.change(route.target.destination) { _ in }
        return Session(client, on: route.driver, passed: passed, target: route.target, ownsChannel: ownsChannel) {
            [weak self] session in self?.dial(for: session)
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
        updateAdmission()
        let treatments = Set(settings.rules.rules.map(\.treatment))
        linkDriver.rulesChanged { treatments.contains($0) ? self.conditions(of: $0) : nil }
    }

    /// The counters by destination, with the bytes of open connections.
    func trafficByHost() -> [HostTraffic] {
        var table = hostTraffic
        for session in sessions.values { Self.count(session, in: &table) }
        countDatagrams(in: &table)
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
