internal import ConfigFiles
internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// The events of one proxy and its snapshot.
struct ProxyFeed {
    /// An event for the log.
    struct Event {
        let type: EventType
        let json: String
    }

    /// An open connection, or one that has closed since the last flush.
    private struct Connection {
        var event: ConnectionEvent
        /// The number of exchanges, as far as known.
        var exchanges = 0
        var notHTTP: String?
        /// The name that the client of TLS has sent.
        var serverName: String?
        var isTLS = false
        /// Whether requests inside of the connection's TLS are visible.
        var isIntercepted = false
        /// The time of the last change.
        var changed: Int64
    }

    private var proxy: ManagedProxy
    /// The members of the last event `proxy`.
    private var definition: [(key: String, value: String)] = []
    private var isKnown = false
    /// The time of the last change of the definition.
    private var definitionTime: Int64 = 0
    /// The last event `link`, and its members without time and cause.
    private var link = ""
    private var linkMembers: [(key: String, value: String)] = []
    private var linkName = "none"
    private var faults: [StoredFault] = []
    private var status: ProxyStatus?
    private var hasNewStatus = false
    private var summary = ProxySummary()
    private var exchanges = ExchangeTable()
    private var connections: [Int: Connection] = [:]
    private var changedConnections: [Int] = []
    /// The time of the start of the model of the observed proxy.
    private var start: Int64 = 0
    private var faultEvents: [Event] = []
    private var firedFaults: [String: Int] = [:]
    /// The number of events that were left out since the last flush.
    private var dropped: Int64 = 0

    init(_ proxy: ManagedProxy) { self.proxy = proxy }

    // MARK: Snapshots

    /// Returns the data of the event `proxy`.
    func definition(change: String, at time: Int64) -> String {
        JSONText.object(
            [
                ("t", EventText.milliseconds(time)), ("proxy", JSONText.string(proxy.name)),
                ("change", JSONText.string(change)),
            ] + definition)
    }

    /// Returns the snapshot for the event `hello`.
    func snapshot(exchangesMax: Int, connectionsMax: Int) -> String {
        let numbers = connections.filter { $0.value.event.end == nil }.keys.sorted().suffix(connectionsMax)
        let definitionText = definition(change: "created", at: definitionTime)
        let faultTexts = faults.map { fault in
            fault.json(status?.faultRules.first { $0.number == fault.number })
        }
        return JSONText.object([
            ("proxy", JSONText.string(proxy.name)), ("definition", definitionText), ("link", link),
            ("faults", JSONText.array(faultTexts)), ("summary", summary.json ?? "null"),
            ("connections", JSONText.array(numbers.compactMap { connections[$0].map(connection) })),
            ("exchanges", JSONText.array(exchanges.snapshot(max: exchangesMax).map { $0.json(proxy: proxy.name) })),
        ])
    }

    // MARK: Changes

    /// Records the state of the proxy after a change. Returns the resulting events.
    mutating func update(
        _ new: ManagedProxy, _ status: ProxyStatus?, by cause: ChangeCause, at time: Int64
    ) -> [Event] {
        proxy = new
        self.status = new.running == nil ? nil : status ?? self.status
        hasNewStatus = true
        var events: [Event] = []
        let newDefinition: [(key: String, value: String)] = [
            ("listen", JSONText.string(new.listen)), ("upstream", JSONText.string(new.upstream)),
            ("enabled", new.isListening ? "true" : "false"), ("seed", "\(new.seed)"),
            ("toxics", JSONText.array(new.orderedToxics.map(\.json))),
            (
                "intercept",
                JSONText.array((new.interception?.hosts.patterns ?? []).map { JSONText.string("\($0)") })
            ),
        ]
        if !isKnown || newDefinition.map(\.value) != definition.map(\.value) {
            definition = newDefinition
            definitionTime = time
            if cause != .start {
                let change = isKnown ? "changed" : "created"
                events.append(Event(type: .proxy, json: self.definition(change: change, at: time)))
            }
        }
        events += updateFaults(isSnapshot: cause == .start, at: time)
        if let event = updateLink(by: cause, at: time), cause != .start { events.append(event) }
        isKnown = true
        return events
    }

    private mutating func updateFaults(isSnapshot: Bool, at time: Int64) -> [Event] {
        let (old, new) = (faults, proxy.faults)
        faults = new
        if isSnapshot { return [] }
        var events: [Event] = []
        func isIn(_ faults: [StoredFault], _ fault: StoredFault) -> Bool {
            faults.contains { $0.name.hasSameBytes(as: fault.name) && $0.rule == fault.rule }
        }
        for fault in old where !isIn(new, fault) { events.append(self.event(of: fault, "removed", at: time)) }
        for fault in new where !isIn(old, fault) {
            firedFaults[fault.name] = 0
            events.append(self.event(of: fault, "added", at: time))
        }
        return events
    }

    private func event(
        of fault: StoredFault, _ change: String, exchange: Int64? = nil, point: String? = nil, offset: Int64? = nil,
        at time: Int64
    ) -> Event {
        let json = JSONText.object([
            ("t", EventText.milliseconds(time)), ("proxy", JSONText.string(proxy.name)),
            ("change", JSONText.string(change)), ("name", JSONText.string(fault.name)),
            ("rule", JSONText.string(fault.rule.text(bodyBytesMax: EventText.otherBytesMax))),
            ("fired", "\(firedFaults[fault.name] ?? 0)"), ("exchange", exchange.map { "\($0)" } ?? "null"),
            ("point", JSONText.string(point)), ("offset", offset.map { "\($0)" } ?? "null"),
        ])
        return Event(type: .fault, json: json)
    }

    /// Returns the event of a changed link; `nil` if nothing has changed.
    private mutating func updateLink(by cause: ChangeCause, at time: Int64) -> Event? {
        let conditions = proxy.running == nil ? proxy.link.initialConditions : status?.link.conditions
        linkName = Self.name(of: proxy, status)
        let (profile, timeline) = proxy.link.names
        let members: [(key: String, value: String)] =
            [
                ("name", JSONText.string(linkName)), ("profile", JSONText.string(profile)),
                ("timeline", EventText.string(timeline, bytesMax: EventText.otherBytesMax)),
            ] + (conditions ?? proxy.link.initialConditions).jsonMembers + [
                ("outage", EventText.pair(proxy.outage)), ("applies", proxy.isImpaired ? "true" : "false"),
                ("since", EventText.milliseconds(proxy.impairedSince)),
                ("reset_at", EventText.milliseconds(proxy.resetAt)),
            ]
        if members.map(\.value) == linkMembers.map(\.value) { return nil }
        linkMembers = members
        link = JSONText.object(
            [
                ("t", EventText.milliseconds(time)), ("proxy", JSONText.string(proxy.name)),
                ("by", JSONText.string(cause.rawValue)),
            ] + members)
        return Event(type: .link, json: link)
    }

    /// Returns the short name of the conditions that apply.
    private static func name(of proxy: ManagedProxy, _ status: ProxyStatus?) -> String {
        switch proxy.link {
        case .constant(let conditions, let profile):
            return profile ?? (conditions.isClear && conditions.connectionPolicy == .open ? "none" : "custom")
        case .timeline(let file):
            let position = proxy.pausedTimeline ?? status?.link.timeline
            return position?.name ?? file.name
        }
    }

    // MARK: Observed events

    /// Records the start of an observation.
    mutating func observationStarted(start: Int64, at time: Int64) {
        self.start = start
        exchanges.linkEnded(at: time)
        for number in connections.keys.sorted() { close(number, at: time) }
    }

    private mutating func close(_ number: Int, at time: Int64) {
        guard let old = connections[number]?.event, old.end == nil else { return }
        let end = ConnectionEvent.End(time: instant(time), reason: .proxy, bytesRead: PerDirection(up: 0, down: 0))
        connections[number]?.event = ConnectionEvent(
            number: number, client: old.client, destination: old.destination, opened: old.opened, end: end)
        connections[number]?.changed = time
        changedConnections.append(number)
    }

    private func unix(_ time: Instant) -> Int64 { start.addingSaturating(time.sinceStart.count) }

    private func instant(_ unix: Int64) -> Instant { Instant(Nanoseconds(unix.subtractingSaturating(start))) }

    /// Records an event of the observed proxy.
    ///
    /// - Parameter exchange: The identifier of an exchange that starts.
    mutating func receive(
        _ event: ProxyEvent, exchange id: Int64, _ limits: EventFeedModel.Limits, at time: Int64
    ) {
        switch event {
        case .exchange(let event, let connection, let instant):
            receive(event, id: id, connection: connection, at: unix(instant))
        case .connection(let event): receive(event, limits)
        case .status(let new):
            // The status of a proxy that has been disabled may arrive late.
            if proxy.running == nil { return }
            status = new
            hasNewStatus = true
        case .dropped(let count): dropped += Int64(count)
        case .packet, .conditions: break
        }
    }

    private mutating func receive(_ event: ConnectionEvent, _ limits: EventFeedModel.Limits) {
        if event.end == nil, connections.count >= limits.connectionsKept {
            for number in connections.keys.sorted().prefix(connections.count / 2) { connections[number] = nil }
        }
        let time = unix(event.end?.time ?? event.opened)
        if event.end == nil {
            connections[event.number] = Connection(event: event, exchanges: event.isEarlier ? 1 : 0, changed: time)
        } else {
            connections[event.number, default: Connection(event: event, changed: time)].event = event
            connections[event.number]?.changed = time
            exchanges.connectionEnded(event.number, at: time)
        }
        changedConnections.append(event.number)
    }

    private mutating func receive(_ event: ExchangeEvent, id: Int64, connection: Int, at time: Int64) {
        switch event {
        case .requestStarted(let exchange, let head):
            var opened: Int64?
            if let first = connections[connection], first.exchanges == 0 { opened = unix(first.event.opened) }
            connections[connection]?.exchanges += 1
            // The requests of an intercepted connection are visible.
            connections[connection]?.notHTTP = nil
            if let first = connections[connection], first.isTLS, !first.isIntercepted {
                connections[connection]?.isIntercepted = true
                connections[connection]?.changed = time
                changedConnections.append(connection)
            }
            exchanges.start(
                exchange.number, id: id, head, connection: connection, stream: exchange.stream, opened: opened,
                link: linkName, at: time)
        case .requested, .responseSampled, .pings: break
        case .requestRead(let exchange, let bodyBytes):
            exchanges.change(exchange.number, at: time) {
                $0.requestRead = time
                $0.requestBytes = bodyBytes
            }
        case .requestDelivered(let exchange): exchanges.change(exchange.number, at: time) { $0.requestDelivered = time }
        case .responseStarted(let exchange, let head):
            exchanges.change(exchange.number, at: time) {
                $0.responseStarted = time
                $0.status = head.status
            }
        case .responseRead(let exchange, let status, let bodyBytes):
            exchanges.change(exchange.number, at: time) {
                $0.responseRead = time
                $0.status = status
                $0.responseBytes = bodyBytes
            }
        case .responseDelivered(let exchange, let status, _):
            exchanges.change(exchange.number, at: time) {
                $0.status = status
                $0.responseDelivered = time
                $0.ended = time
                $0.end = .completed
            }
        case .interrupted(let exchange): exchanges.change(exchange.number, at: time) { $0.interrupt(at: time) }
        case .protocolSwitched(let exchange):
            exchanges.change(exchange.number, at: time) {
                $0.ended = time
                $0.end = .switched
            }
        case .faultInjected(let exchange, let rule, let point, let offset):
            recordFault(exchange, rule, point, offset, at: time)
        case .faultMissed(let exchange, let rule, let point): recordFault(exchange, rule, point, nil, at: time)
        case .notHTTP(let reason):
            guard connections[connection] != nil else { return }
            connections[connection]?.notHTTP = reason
            connections[connection]?.changed = time
            changedConnections.append(connection)
        case .tls(let hello):
            guard connections[connection] != nil else { return }
            connections[connection]?.serverName = hello.serverName
            connections[connection]?.isTLS = true
            connections[connection]?.changed = time
            changedConnections.append(connection)
        case .handshakeFault(let rule, let point, _, let offset):
            recordStreamFault(rule, point.rawValue, offset, at: time)
        case .streamFault(let rule, let point, _, let offset):
            recordStreamFault(rule, point.rawValue, offset, at: time)
        }
    }

    /// Records a fault that is not about an exchange.
    private mutating func recordStreamFault(_ rule: Int, _ point: String, _ offset: Int64, at time: Int64) {
        guard let fault = faults.first(where: { $0.number == rule }) else { return }
        firedFaults[fault.name, default: 0] += 1
        faultEvents.append(event(of: fault, "fired", point: point, offset: offset, at: time))
    }

    private mutating func recordFault(
        _ exchange: ExchangeID, _ rule: Int, _ point: FaultPoint, _ offset: Int64?, at time: Int64
    ) {
        guard let fault = faults.first(where: { $0.number == rule }) else { return }
        if offset != nil {
            firedFaults[fault.name, default: 0] += 1
            exchanges.change(exchange.number, at: time) { $0.fault = .init(name: fault.name, point: point) }
        }
        let change = offset == nil ? "missed" : "fired"
        faultEvents.append(
            event(
                of: fault, change, exchange: exchanges.id(of: exchange.number), point: point.rawValue, offset: offset,
                at: time))
    }

    // MARK: Flushes

    /// Takes the events that wait for a flush, in the order connections, exchanges, faults, link, summary.
    ///
    /// - Parameters:
    ///   - countMax: The maximum number of events of connections, exchanges and faults.
    ///   - keptMax: The number of ended exchanges that are kept.
    mutating func takeEvents(_ countMax: Int, keptMax: Int, at time: Int64) -> [Event] {
        var events: [Event] = []
        takeConnections(countMax, &events)
        if exchanges.hasChanges {
            let (records, left) = exchanges.takeChanged(max(0, countMax - events.count), keptMax: keptMax)
            dropped += Int64(left)
            for record in records { events.append(Event(type: .exchange, json: record.json(proxy: proxy.name))) }
        }
        for event in faultEvents {
            if events.count < countMax { events.append(event) } else { dropped += 1 }
        }
        faultEvents.removeAll(keepingCapacity: true)
        if dropped > 0 {
            let json = EventFeedModel.dropped(dropped, "rate", proxy: proxy.name, at: time)
            events.append(Event(type: .dropped, json: json))
            dropped = 0
        }
        guard hasNewStatus else { return events }
        hasNewStatus = false
        if case .timeline = proxy.link, proxy.pausedTimeline == nil, status?.link.timeline != nil {
            if let event = updateLink(by: .timeline, at: time) { events.append(event) }
        }
        let summary = summary.update(
            proxy.name, status, earlier: proxy.earlierTraffic, waiting: exchanges.openCount,
            timeline: TimelineView.form.write(TimelineView(proxy, status)), at: time)
        if let summary { events.append(Event(type: .summary, json: summary)) }
        return events
    }

    private mutating func takeConnections(_ countMax: Int, _ events: inout [Event]) {
        var reported: Set<Int> = []
        for number in changedConnections where reported.insert(number).inserted {
            guard let changed = connections[number] else { continue }
            if events.count < countMax {
                events.append(Event(type: .connection, json: connection(changed)))
            } else {
                dropped += 1
            }
            if changed.event.end != nil { connections[number] = nil }
        }
        changedConnections.removeAll(keepingCapacity: true)
    }

    private func connection(_ connection: Connection) -> String {
        let event = connection.event
        let closed = event.end.map { unix($0.time) }
        return JSONText.object([
            ("t", EventText.milliseconds(connection.changed)), ("proxy", JSONText.string(proxy.name)),
            ("number", "\(event.number)"), ("state", event.end == nil ? "\"open\"" : "\"closed\""),
            ("opened", EventText.milliseconds(unix(event.opened))), ("closed", EventText.milliseconds(closed)),
            ("client", JSONText.string(event.client?.description)),
            ("protocol", JSONText.string(event.isDatagrams ? "udp" : "tcp")),
            ("destination", EventText.string(event.destination?.description, bytesMax: EventText.otherBytesMax)),
            ("bytes", event.end.map { EventText.pair($0.bytesRead) } ?? "null"),
            ("reason", JSONText.string(event.end?.reason.rawValue)),
            ("not_http", EventText.string(connection.notHTTP, bytesMax: EventText.otherBytesMax)),
            ("server_name", EventText.string(connection.serverName, bytesMax: EventText.otherBytesMax)),
            ("intercepted", connection.isIntercepted ? "true" : "false"),
        ])
    }
}
