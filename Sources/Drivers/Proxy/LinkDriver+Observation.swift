internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The observers of a link, and its connections.
extension LinkDriver {
    /// Returns the open connections, also those on the links of rules.
    func connections() -> [ConnectionStatus] {
        links.flatMap { $0.isInsideTLS ? [] : $0.ownConnections() }
    }

    private func ownConnections() -> [ConnectionStatus] {
        let time = NIODeadline.now()
        return link.connections.compactMap { id in
            guard let session = sessions[id] else { return nil }
            return ConnectionStatus(
                id: ConnectionID(carrier: .link(id, number: number)), number: link.number(of: id),
                client: session.clientAddress, serverName: session.serverName,
                age: Nanoseconds((time - session.startedAt).nanoseconds), bytesRead: session.bytesRead,
                bytesHeld: PerDirection(up: link.bytesHeld(id, .up), down: link.bytesHeld(id, .down)))
        }
    }

    /// Adds an observer, which receives events from now on.
    func attach(_ observer: ProxyObserver) {
        if observers.isEmpty { lastConditions = link.conditions }
        observers.append(observer)
        updateObservation()
        guard observer.set.contains(.connections), !isInsideTLS else { return }
        for id in link.connections {
            guard let session = sessions[id] else { continue }
            observer.send(.connection(opening(of: session, isEarlier: true)))
            guard observer.set.contains(.exchanges), !link.isTracked(id) else { continue }
            let event = ExchangeEvent.notHTTP("not HTTP, or the link has not seen its beginning")
            observer.send(.exchange(event, connection: session.number, at: now))
        }
    }

    /// Removes an observer.
    func detach(_ observer: ProxyObserver) {
        observers.removeAll { $0 === observer }
        if !observesConnections { faultedFlows = [] }
        updateObservation()
    }

    /// Returns whether an observer is attached.
    func isObserved(by observer: ProxyObserver) -> Bool { observers.contains { $0 === observer } }

    /// The time of the model's start, in nanoseconds since 1970 by ``ProcessClock``.
    var startUnixNanoseconds: Int64 { ProcessClock.unixNanoseconds(of: origin) }

    /// Whether an observer wants connections.
    var observesConnections: Bool { observers.contains { $0.set.contains(.connections) } }

    /// Returns the event of a session.
    func opening(
        of session: Session, _ end: ConnectionEvent.End? = nil, isEarlier: Bool = false
    ) -> ConnectionEvent {
        ConnectionEvent(
            number: session.number, client: session.clientAddress,
            destination: (session.target?.destination ?? session.relayedDestination)
                .map { Endpoint(host: $0.host, port: $0.port) },
            opened: Instant(Nanoseconds((session.startedAt - origin).nanoseconds)), end: end, isEarlier: isEarlier)
    }

    /// Reports the end of a session to observers, after the events of its exchanges.
    func ended(_ session: Session) {
        guard observesConnections, session.number >= 0 else { return }
        let reason = session.endReason ?? .proxy
        let end = ConnectionEvent.End(time: now, reason: reason, bytesRead: session.bytesRead)
        closings.append((session.openedFlow, opening(of: session, end)))
        if !isExecutingActions { publishEvents() }
    }

    /// Reports to observers why the requests of a connection are not visible.
    func reportNotHTTP(_ reason: String, _ session: Session) {
        send(.exchange(.notHTTP(reason), connection: session.number, at: now), .exchanges)
    }

    /// Records that a fault has been injected into an exchange of a connection.
    func recordFault(on flow: FlowID) {
        guard isInsideTLS else { return _ = faultedFlows.insert(flow) }
        if let outside = sessions[flow]?.outside, let flow = outside.openedFlow {
            outside.driver.faultedFlows.insert(flow)
        }
    }

    /// Reports the ends of sessions.
    func publishClosings() {
        guard !closings.isEmpty else { return }
        for (flow, event) in closings {
            var event = event
            if let flow, faultedFlows.remove(flow) != nil, let end = event.end, end.reason == .proxy {
                event = ConnectionEvent(
                    number: event.number, client: event.client, destination: event.destination, opened: event.opened,
                    end: ConnectionEvent.End(time: end.time, reason: .fault, bytesRead: end.bytesRead))
            }
            send(.connection(event), .connections)
        }
        closings.removeAll(keepingCapacity: true)
    }

    func updateObservation() {
        var observation = observers.reduce(configuredObservation) { $0.union($1.set.link) }
        // The events of exchanges name the requests of faults.
        if link.hasFaultRules { observation.insert(.exchanges) }
        // The packets of the connections are those of TLS.
        if isInsideTLS { observation.remove(.packets) }
        if observation != link.observation { change { $0.setObservation(observation, at: $1) } }
    }

    /// Sends an event to the observers of its kind.
    func send(_ event: ProxyEvent, _ kind: ObservationSet) {
        for observer in observers where observer.set.contains(kind) { observer.send(event) }
    }
}
