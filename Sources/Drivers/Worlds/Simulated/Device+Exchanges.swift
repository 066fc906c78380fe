internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import NotesContract
internal import Scenario
internal import Wire

/// The events of the exchanges on a device's link.
extension Device {
    /// Records an event of an exchange.
    func record(_ timed: SharedLink.TimedExchangeEvent) {
        func number(_ id: ExchangeID) -> Int { world.recorder.exchange(id.number, of: name) }
        switch timed.event {
        case .requested(let id, let head, let body, _):
            let event = world.recorder.request(
                id.number, of: name, method: head.method, record: RequestSubject.record(head, body),
                key: head.value(of: NotesHTTP.idempotencyKeyName), bodyDigest: FNV1a.digest(body),
                connection: flows[timed.flow]?.attempt)
            exchanges[number(id)] = (id, timed.flow)
            flows[timed.flow]?.beginExchange(number(id))
            world.record(event)
            world.record(RequestFacts.event(head, body, exchange: number(id), &world.recorder))
            link.admitRequest(id, of: timed.flow, at: world.now)
            // The client may have closed its socket while the request waited to be read.
            if flows[timed.flow]?.client == .closed { flows[timed.flow]?.endExchanges() }
        case .requestDelivered(let id): world.record(.arrived(number(id)))
        case .responseRead(let id, let status, let bytes):
            world.record(world.recorder.responded(number(id), status: status, bytes: bytes))
        case .responseDelivered(let id, let status, _):
            // The client receives the response when it reads the last byte.
            flows[timed.flow]?.responseDelivered(to: number(id), status: status)
        case .interrupted(let id):
            // Of a request that was interrupted itself, nothing has been recorded.
            guard exchanges[number(id)] != nil else { return }
            guard flows[timed.flow]?.endExchange(number(id)) == true else { return }
            world.record(.failed(number(id)))
        case .faultInjected(let id, let rule, let point, _):
            flows[timed.flow]?.stopComparing()
            world.record(
                .fault(index: rule, exchange: number(id), point: Scenario.Fault.Point(rawValue: point.rawValue)))
        case .faultMissed(_, let rule, _): world.faultMissed(rule)
        case .requestRead(let id, let bytes):
            if bytes > 0 { world.record(.requestSent(number(id), bytes: Int(clamping: bytes))) }
        case .responseStarted(let id, let head):
            world.recorder.responseStarted(number(id), entityTag: head.fields[.eTag])
        case .requestStarted, .responseSampled, .protocolSwitched: break
        case .notHTTP(let reason): world.record(.notice(actor: name, .notHTTP("\(reason)")))
        }
    }
}
