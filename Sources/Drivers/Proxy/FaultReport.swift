internal import DequeModule
public import Impairment
internal import LinkModel

/// A fault that has fired, or that cannot fire although its rule has applied to the request.
public struct FaultReport: Hashable, Sendable {
    /// The number of the rule: ``Impairment/FaultRuleStatus/number``.
    public let number: Int
    /// The rule.
    public let rule: FaultRule
    /// The method and the beginning of the target of the request.
    public let request: String
    /// The point; that of an exchange at the same socket for a rule about handshakes or bytes.
    public let point: FaultPoint
    /// The number of faults of the rule that have fired so far.
    public let fired: Int
    /// The bytes of the message that had passed the point; `nil` if the exchange has not reached the point.
    public let offset: Int64?
    /// The numbers of acknowledged and of sent PING, at the end of the connection; `nil` in other reports.
    public var pings: Pings?

    /// The PING of ``Impairment/FaultAction/ping``.
    public struct Pings: Hashable, Sendable {
        public let (acknowledged, sent): (UInt32, UInt32)
    }
}

/// Finds the requests of faults in the events of exchanges.
///
/// The requests of exchanges that have ended are kept for a while: a fault after the last byte of a response is
/// reported after the end of the exchange.
struct FaultReporter {
    private var requests: [ExchangeID: String] = [:]
    private var ended = Deque<ExchangeID>()
    private var fired: [Int: Int] = [:]

    private static let endedMax = 256
    private static let requestsMax = 100_000
    private static let targetBytesMax = 200

    /// Records an event. Returns a report if it is about a fault of one of the rules.
    mutating func record(_ event: ExchangeEvent, _ rules: () -> [FaultRuleStatus]) -> FaultReport? {
        switch event {
        case .requestStarted(let id, _):
            if requests.count >= Self.requestsMax { requests = [:] }
            requests[id] = event.requestLine(targetBytesMax: Self.targetBytesMax)
        case .responseDelivered(let id, _, _), .interrupted(let id), .protocolSwitched(let id): end(id)
        case .faultInjected(let id, let number, let point, let offset):
            fired[number, default: 0] += 1
            return report(id, number, point, offset, rules())
        case .pings(let id, let number, let acknowledged, let sent):
            var report = report(id, number, .afterResponse, 0, rules())
            report?.pings = FaultReport.Pings(acknowledged: acknowledged, sent: sent)
            return report
        case .faultMissed(let id, let number, let point): return report(id, number, point, nil, rules())
        case .handshakeFault(let number, let point, let name, let offset):
            fired[number, default: 0] += 1
            guard let rule = rules().first(where: { $0.number == number })?.rule else { return nil }
            return FaultReport(
                number: number, rule: rule, request: "TLS for \(name ?? "no name")",
                point: point == .afterClientHello ? .beforeRequestEnd : .midResponse, fired: fired[number] ?? 0,
                offset: offset)
        case .streamFault(let number, _, let sender, let offset):
            fired[number, default: 0] += 1
            guard let rule = rules().first(where: { $0.number == number })?.rule else { return nil }
            return FaultReport(
                number: number, rule: rule, request: "bytes of the \(sender)",
                point: sender == .client ? .beforeRequestEnd : .midResponse, fired: fired[number] ?? 0, offset: offset)
        case .requested, .requestRead, .requestDelivered, .responseStarted, .responseSampled, .responseRead, .notHTTP,
            .tls:
            break
        }
        return nil
    }

    private func report(
        _ id: ExchangeID, _ number: Int, _ point: FaultPoint, _ offset: Int64?, _ rules: [FaultRuleStatus]
    ) -> FaultReport? {
        guard let rule = rules.first(where: { $0.number == number })?.rule else { return nil }
        return FaultReport(
            number: number, rule: rule, request: requests[id] ?? "a request", point: point,
            fired: fired[number] ?? 0, offset: offset)
    }

    private mutating func end(_ id: ExchangeID) {
        ended.append(id)
        if ended.count > Self.endedMax, let oldest = ended.popFirst() { requests[oldest] = nil }
    }
}
