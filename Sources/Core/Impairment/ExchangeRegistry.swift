internal import Determinism
internal import Wire

/// The numbers of a link's exchanges, and the rules for the faults to inject into them.
struct ExchangeRegistry {
    private struct Entry {
        var status: FaultRuleStatus
        let subject: FaultPattern?
        let path: FaultPattern?
        let method: [UInt8]?
        /// The searches for the text of a rule, and for that of the other peer.
        let search: TextSearch?
        let after: TextSearch?
        var random: RandomStream

        init(_ status: FaultRuleStatus, random: RandomStream) {
            self.status = status
            subject = status.rule.subject.map(FaultPattern.init)
            path = status.rule.path.map(FaultPattern.init)
            method = status.rule.method.map { Array($0.utf8) }
            search = status.rule.stream.map { TextSearch($0.text) }
            after = status.rule.stream.map { TextSearch($0.after) }
            self.random = random
        }

        var rule: FaultRule { status.rule }

        /// Whether the rule may apply to a further request.
        var isLive: Bool { status.applied < rule.times.upperBound && rule.probability > 0 }

        /// Whether the fault may have to be known before the first byte of its request enters the link.
        var mustBeKnownBeforeRequest: Bool {
            rule.isAboutRequests && isLive && rule.point?.mustBeKnownBeforeRequest != false
        }

        func matches(_ head: HTTPRequestHead) -> Bool {
            if !rule.isAboutRequests { return false }
            if let method, !head.method.utf8.elementsEqual(method) { return false }
            return path?.matches(ExchangeRegistry.path(head.target)) != false
        }
    }

    private let subject: @Sendable (HTTPRequestHead, [UInt8]) -> String?
    private var entries: [Entry] = []
    private var exchangeCount = 0
    private var ruleCount = 0
    private var seed: UInt64
    /// The number of changes of the rules about the bytes of connections, and whether there are any.
    private(set) var textVersion = 0
    private(set) var hasTextRules = false
    /// The prefix of the names of the random streams.
    private let name: String
    /// Whether a fault has been injected by a call.
    private var hasInjected = false
    /// Whether each request waits for a decision of the driver.
    let awaitsDecisions: Bool
    /// Whether the beginnings of the bodies of responses to writes are reported.
    let samplesResponses: Bool
    /// Whether a request must wait until its rules are known.
    private(set) var withholdsRequests = false
    /// Whether the events of exchanges contain the beginnings of the requests' bodies.
    var samplesBodies = false

    /// The greatest number of rules.
    static let rulesMax = 1000

    /// Creates the registry of a link. Rules that cannot be used are left out; their numbers are not used.
    init(_ tracking: ExchangeTracking, seed: UInt64, name: String) {
        subject = tracking.subject
        awaitsDecisions = tracking.awaitsDecisions
        samplesResponses = tracking.samplesResponses
        self.seed = seed
        self.name = name
        for rule in tracking.rules {
            if rule.problem == nil { insert(rule) }
            ruleCount += 1
        }
        rulesChanged()
    }

    // MARK: Rules

    /// Whether rules can inject faults.
    var hasRules: Bool { !entries.isEmpty }

    /// Whether the streams of HTTP/2 connections are tracked: rules can inject faults, or their events are recorded.
    var tracksStreams: Bool { hasRules || samplesBodies }

    /// Whether faults can fire.
    var mayFire: Bool { hasRules || hasInjected }

    /// The rules with their counts.
    var statuses: [FaultRuleStatus] { entries.map(\.status) }

    /// Adds a rule and returns its number.
    mutating func add(_ rule: FaultRule, number: Int? = nil) throws(FaultRuleError) -> Int {
        if let problem = rule.problem { throw FaultRuleError(reason: problem) }
        guard entries.count < Self.rulesMax else {
            throw FaultRuleError(reason: "the link has \(Self.rulesMax) rules already; remove one first")
        }
        ruleCount = max(ruleCount, number ?? 0)
        insert(rule)
        ruleCount += 1
        rulesChanged()
        return ruleCount - 1
    }

    /// Removes a rule. Returns whether there is one with that number.
    mutating func remove(_ number: Int) -> Bool {
        guard let index = entries.firstIndex(where: { $0.status.number == number }) else { return false }
        entries.remove(at: index)
        rulesChanged()
        return true
    }

    /// Starts the random streams again with another seed.
    mutating func reseed(_ new: UInt64) {
        seed = new
        for index in entries.indices { entries[index].random = random(entries[index].status.number) }
    }

    mutating func recordInjection() { hasInjected = true }

    mutating func recordFired(_ fault: ExchangeFault) {
        guard !fault.isInjected, let index = entries.firstIndex(where: { $0.status.number == fault.rule }) else {
            return
        }
        entries[index].status.fired += 1
    }

    private mutating func insert(_ rule: FaultRule) {
        entries.append(Entry(FaultRuleStatus(number: ruleCount, rule: rule), random: random(ruleCount)))
    }

    private func random(_ number: Int) -> RandomStream { RandomStream(seed: seed, "\(name)/fault/\(number)") }

    private mutating func rulesChanged() {
        updateWithholding()
        textVersion += 1
        hasTextRules = entries.contains { $0.rule.stream != nil }
    }

    private mutating func updateWithholding() {
        withholdsRequests = awaitsDecisions || entries.contains { $0.mustBeKnownBeforeRequest }
    }

    // MARK: Requests

    /// Sets the number of the next exchange.
    mutating func numberExchanges(from first: Int) { exchangeCount = max(exchangeCount, first) }

    /// Numbers a request.
    ///
    /// - Parameter stream: Its stream, if its connection is HTTP/2.
    mutating func number(stream: UInt32? = nil) -> ExchangeID {
        defer { exchangeCount += 1 }
        return ExchangeID(number: exchangeCount, stream: stream)
    }

    /// The identifier of the next request.
    var nextID: ExchangeID { ExchangeID(number: exchangeCount) }

    func subject(_ head: HTTPRequestHead, _ bodySample: [UInt8]) -> String? { subject(head, bodySample) }

    /// Returns what the rules that match a request's head need: whether its first byte must wait for them, and whether
    /// they depend on its subject.
    func needs(of head: HTTPRequestHead) -> (withholding: Bool, subject: Bool) {
        var needs = (withholding: awaitsDecisions, subject: false)
        for entry in entries where entry.matches(head) {
            needs.withholding = needs.withholding || entry.mustBeKnownBeforeRequest
            needs.subject = needs.subject || entry.subject != nil
        }
        return needs
    }

    /// Whether a rule is about requests.
    var hasRequestRules: Bool { entries.contains { $0.rule.isAboutRequests } }

    /// Counts a handshake for the rules. Returns the fault of the first rule that applies, with its point.
    mutating func matchHandshake(of serverName: String?) -> (fault: ExchangeFault, point: HandshakePoint)? {
        var found: (fault: ExchangeFault, point: HandshakePoint)?
        for index in entries.indices {
            let rule = entries[index].rule
            guard let point = rule.handshake, entries[index].path?.matches(serverName ?? "") != false else { continue }
            guard applies(index), found == nil else { continue }
            found = (ExchangeFault(rule, number: entries[index].status.number, at: point.exchangePoint), point)
        }
        return found
    }

    // MARK: Bytes of connections

    /// The numbers of the rules about the bytes of connections.
    var textRules: [Int] { entries.filter { $0.rule.stream != nil }.map(\.status.number) }

    /// Returns what a rule about the bytes of connections matches, with the searches for its texts.
    func textRule(_ number: Int) -> (match: StreamMatch, search: TextSearch, after: TextSearch)? {
        guard let entry = entries.first(where: { $0.status.number == number }), let match = entry.rule.stream,
            let search = entry.search, let after = entry.after
        else { return nil }
        return (match, search, after)
    }

    /// Returns the number of bytes between the match of a rule and its point.
    func textBytes(_ number: Int) -> Int64 { entries.first { $0.status.number == number }?.rule.bytes ?? 0 }

    /// Counts a match of a rule about the bytes of connections. Returns its fault if it applies.
    mutating func matchText(_ number: Int) -> ExchangeFault? {
        guard let index = entries.firstIndex(where: { $0.status.number == number }),
            let match = entries[index].rule.stream, applies(index)
        else { return nil }
        return ExchangeFault(entries[index].rule, number: number, at: match.exchangePoint)
    }

    /// Counts a match of a rule. Returns whether the rule applies.
    private mutating func applies(_ index: Int) -> Bool {
        entries[index].status.matched += 1
        let rule = entries[index].rule
        guard entries[index].status.matched >= rule.nth, entries[index].status.applied < rule.times.upperBound,
            rule.probability >= 1 || entries[index].random.bool(probability: rule.probability)
        else { return false }
        entries[index].status.applied += 1
        return true
    }

    /// Counts a request for the rules. Returns the fault of the first rule that applies.
    mutating func match(_ head: HTTPRequestHead, subject: String?) -> ExchangeFault? {
        var fault: ExchangeFault?
        for index in entries.indices where entries[index].matches(head) {
            if let pattern = entries[index].subject {
                guard let subject, pattern.matches(subject) else { continue }
            }
            guard applies(index), fault == nil else { continue }
            let rule = entries[index].rule
            let points = rule.action.points
            let point = rule.point ?? points[Int(entries[index].random.integer(below: Int64(points.count)))]
            fault = ExchangeFault(rule, number: entries[index].status.number, at: point)
        }
        if withholdsRequests { updateWithholding() }
        return fault
    }

    /// Returns the path of a request target: without scheme, authority and query.
    static func path(_ target: String) -> Substring {
        let bytes = target.utf8
        var path = target[..<(bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex)]
        if path.utf8.first == UInt8(ascii: "/") { return path }
        // The absolute form: scheme://authority/path.
        guard let scheme = path.utf8.firstRange(of: "://".utf8) else { return path }
        path = path[scheme.upperBound...]
        guard let slash = path.utf8.firstIndex(of: UInt8(ascii: "/")) else { return "/" }
        return path[slash...]
    }
}
