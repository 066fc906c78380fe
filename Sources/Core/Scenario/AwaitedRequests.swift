/// The requests that expectations without an end need from programs without an adapter. Such a program does not tell whether
/// it has something to send, so an expectation is undecided until it has seen as many requests as it needs.
struct AwaitedRequests {
    private struct Expected {
        let traffic: Expectation.Traffic
        /// The programs that may send the requests.
        let devices: Set<String>
        /// The number of requests that are missing.
        var missing: Int
    }

    private struct Subject {
        let actor: String
        let method: String
        var row: String?
    }

    private var expected: [Expected] = []
    private var subjects: [Int: Subject] = [:]

    init(_ scenario: Scenario) {
        let programs = Set(scenario.devices.filter(\.client.actsOnItsOwn).map(\.name))
        if programs.isEmpty { return }
        for expectation in scenario.expectations {
            let traffic: Expectation.Traffic
            let least: Int
            switch expectation.kind {
            case .traffic(let found): (traffic, least) = (found, 0)
            case .sometimesTraffic(let found): (traffic, least) = (found, 1)
            default: continue
            }
            let devices = traffic.from.map { programs.intersection([$0]) } ?? programs
            let missing = max(least, traffic.requestsMin)
            guard traffic.between == nil, missing > 0, !devices.isEmpty else { continue }
            expected.append(Expected(traffic: traffic, devices: devices, missing: missing))
        }
    }

    /// Records an event of an exchange.
    mutating func recorded(_ event: History.Event) {
        if expected.isEmpty { return }
        switch event {
        case .request(let id, let actor, let method, let row, _, _, _):
            subjects[id] = Subject(actor: actor, method: method, row: row)
            count(id, at: .proxy)
        case .named(let id, let row): subjects[id]?.row = row
        case .arrived(let id): count(id, at: .server)
        case .responseReceived(let id, _), .failed(let id): subjects[id] = nil
        default: break
        }
    }

    private mutating func count(_ id: Int, at point: Expectation.Traffic.Seen) {
        guard let subject = subjects[id] else { return }
        for index in expected.indices where expected[index].devices.contains(subject.actor) {
            let traffic = expected[index].traffic
            guard point == traffic.seen,
                traffic.request.method == nil || traffic.request.method == subject.method,
                traffic.request.row == nil || traffic.request.row == subject.row
            else { continue }
            expected[index].missing -= 1
        }
    }

    /// Returns whether a program that runs may still send a request that is missing.
    func isOpen(isRunning: (String) -> Bool) -> Bool {
        expected.contains { $0.missing > 0 && $0.devices.contains(where: isRunning) }
    }
}

extension Expectation.Traffic {
    /// The least number of requests with which the condition can hold.
    var requestsMin: Int {
        let counted =
            switch count {
            case .range(let range)?: range.lowerBound
            case .budget(let least)?: least
            case nil: 0
            }
        let bytes = max(bytesDown?.lowerBound ?? 0, bytesUp?.lowerBound ?? 0) > 0 ? 1 : 0
        return max(
            counted, responses?.count ?? 0, same.isEmpty ? 0 : 2, order?.count ?? 0, attempts?.lowerBound ?? 0, bytes)
    }
}
