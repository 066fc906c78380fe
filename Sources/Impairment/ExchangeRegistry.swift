internal import HTTPWire

/// The numbers of a link's exchanges, and the faults to inject into them.
struct ExchangeRegistry {
    /// A fault to be injected.
    struct Fault {
        let rule: Int
        let action: FaultAction
    }

    /// A registered request.
    struct Registration {
        let id: ExchangeID
        let subject: String?
        let fault: Fault?
    }

    private let tracking: ExchangeTracking
    /// The number of requests that each rule has matched.
    private var matches: [Int]
    private var count = 0

    init(_ tracking: ExchangeTracking) {
        self.tracking = tracking
        matches = tracking.rules.map { _ in 0 }
    }

    /// Whether faults can be injected.
    var hasRules: Bool { !tracking.rules.isEmpty }

    /// Numbers a request and counts it for the rules. The fault is that of the first rule for which this is match
    /// number `nth`.
    mutating func register(_ head: HTTPRequestHead, bodySample: [UInt8]) -> Registration {
        let id = ExchangeID(number: count)
        count += 1
        let subject = tracking.subject(head, bodySample)
        var fault: Fault?
        for (index, rule) in tracking.rules.enumerated() {
            guard rule.method == nil || rule.method == head.method, rule.subject == nil || rule.subject == subject
            else { continue }
            matches[index] += 1
            if matches[index] == rule.nth, fault == nil { fault = Fault(rule: index, action: rule.action) }
        }
        return Registration(id: id, subject: subject, fault: fault)
    }
}
