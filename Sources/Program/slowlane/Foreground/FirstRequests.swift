internal import CommandSupport
internal import Impairment
internal import Proxy

/// The first requests of a command, for a note about faults that have matched none.
struct FirstRequests {
    /// The maximum number of different requests, and of bytes of their paths.
    private static let requestsMax = 3
    private static let pathBytesMax = 200

    /// Returns the requests when the proxy has stopped; `nil` without a fault of requests.
    private let task: Task<[String], Never>?

    /// Observes the proxy if it has faults of requests; its connections do not use the fast path then.
    init(of proxy: Proxy) async {
        guard await proxy.faultRules().contains(where: { $0.rule.handshake == nil }) else {
            task = nil
            return
        }
        let events = await proxy.observe(.exchanges).events
        task = Task {
            var requests: [String] = []
            for await case .exchange(let event, _, _) in events {
                guard let request = event.requestPath(bytesMax: Self.pathBytesMax) else { continue }
                let line = TextTable.singleLine(request)
                if !requests.contains(line) { requests.append(line) }
                if requests.count == Self.requestsMax { break }
            }
            return requests
        }
    }

    /// Returns a note about the faults that have matched no request, if there were requests. The proxy has stopped.
    func note(_ rules: [FaultRuleStatus]) async -> [String] {
        let numbers = rules.filter { $0.matched == 0 && $0.rule.handshake == nil }.map { "\($0.number + 1)" }
        guard !numbers.isEmpty, let requests = await task?.value, !requests.isEmpty else { return [] }
        return [
            "no request matched fault \(numbers.joined(separator: ", ")); the first requests: "
                + requests.joined(separator: ", ")
        ]
    }
}
