package import Determinism

/// One look-up of a name's addresses by a device's resolver: queries for both types of addresses, repetitions, further
/// servers and the names of the search list.
///
/// A state machine, which behaves as glibc's resolver does: a query without a response is repeated after a time, to the
/// next server if there is one; a server that fails is not asked again; both types are awaited. A response that does
/// not fit into a datagram is not used: the system's resolver is asked, which can use TCP.
package struct DNSLookup: Sendable {
    /// Where a query goes.
    package enum Source: Hashable, Sendable {
        /// A name server (UDP).
        case server(ResolverConfiguration.Server)
        /// The system's resolver.
        case system
    }

    /// A query.
    package struct Query: Hashable, Sendable {
        /// The number of the query in this look-up, from 1.
        package let number: Int
        package let source: Source
        /// The message.
        package let message: [UInt8]
    }

    /// The end of a look-up.
    package struct Outcome: Hashable, Sendable {
        /// The addresses of both families in turn, IPv6 first (RFC 8305, section 4); none after a failure.
        package var addresses: [IPAddress]
        /// The reason if there are no addresses.
        package var failure: ConnectFailure?
        /// The time for which the outcome may be used; zero for failures of servers.
        package var timeToLive: Nanoseconds

        package init(addresses: [IPAddress] = [], failure: ConnectFailure? = nil, timeToLive: Nanoseconds = .zero) {
            self.addresses = addresses
            self.failure = failure
            self.timeToLive = timeToLive
        }
    }

    /// An action of the driver.
    package enum Action: Hashable, Sendable {
        /// Send a query.
        case send(Query)
        /// The response to a query is not needed any more.
        case close(Int)
        /// The look-up has ended. The last action.
        case finish(Outcome)
    }

    /// The longest time for which addresses are used, and the longest for which a name counts as missing: servers with
    /// longer times, up to 68 years, would outlive a change in a test environment.
    package static let (timeToLiveMax, negativeTimeToLiveMax): (UInt32, UInt32) = (3_600, 300)

    /// The most queries of a question that may still be answered: each one keeps a socket open.
    package static let openMax = 2

    /// The state of the question for one type of addresses.
    private struct Question {
        enum End: Hashable {
            case answer(DNSAnswer)
            case timeout
        }

        let type: AddressType
        var sources: [Source]
        /// The queries sent or left out.
        var tries = 0
        /// The number of the newest query.
        var newest = 0
        var failed: Set<Source> = []
        var deadline = Instant.never
        var end: End?
    }

    private struct OpenQuery {
        let question: Int
        let source: Source
        let id: UInt16
    }

    private let configuration: ResolverConfiguration
    private let deadline: Instant
    private var ids: RandomStream
    private var steps: ArraySlice<ResolverConfiguration.Step>
    private var name: DNSName?
    private var questions: [Question] = []
    /// The queries that may still be answered, by number.
    private var open: [Int: OpenQuery] = [:]
    private var lastNumber = 0
    private var negativeTimeToLive = DNSLookup.negativeTimeToLiveMax
    private var actions: [Action] = []
    private var isFinished = false

    /// Starts a look-up.
    ///
    /// - Parameters:
    ///   - deadline: The time at which it ends with what has been found.
    ///   - ids: The source of the identifiers of messages; a server's response must repeat them.
    package init(
        _ host: String, _ configuration: ResolverConfiguration, at now: Instant, deadline: Instant, ids: RandomStream
    ) {
        self.configuration = configuration
        self.deadline = deadline
        self.ids = ids
        steps = configuration.steps(for: host)[...]
        startStep(at: now)
    }

    /// The time at which ``advance(to:)`` must be called next; `nil` after the end.
    package var nextDeadline: Instant? {
        isFinished ? nil : questions.filter { $0.end == nil }.reduce(deadline) { min($0, $1.deadline) }
    }

    /// Takes the next action.
    package mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    /// Sends the repetitions that are due; ends the look-up at its deadline.
    package mutating func advance(to now: Instant) {
        let isLate = now >= deadline
        for index in questions.indices where !isFinished && questions[index].end == nil {
            if isLate {
                end(index, .timeout, at: now)
            } else if questions[index].deadline <= now {
                sendNext(index, at: now)
            }
        }
    }

    /// Records a message that has arrived in response to a query. Messages that do not answer it are ignored.
    ///
    /// - Parameter source: The sender.
    package mutating func receive(_ bytes: [UInt8], from source: Source, query number: Int, at now: Instant) {
        guard let query = open[number], query.source == source, let message = DNSMessage(bytes),
            message.id == query.id, message.name == name,
            message.type == questions[query.question].type.rawValue
        else { return }
        switch message.answer(questions[query.question].type) {
        case .failure: recordFailure(of: number, at: now)
        case .truncated:
            close(query.question)
            questions[query.question].sources = [.system]
            questions[query.question].tries = 0
            questions[query.question].failed = []
            sendNext(query.question, at: now)
        case let answer: end(query.question, .answer(answer), at: now)
        }
    }

    /// Records that a query could not reach its server: the port is closed, or there is no route.
    package mutating func recordFailure(of number: Int, at now: Instant) {
        guard let query = open.removeValue(forKey: number) else { return }
        actions.append(.close(number))
        questions[query.question].failed.insert(query.source)
        // The others are still awaited.
        if number == questions[query.question].newest { sendNext(query.question, at: now) }
    }

    // MARK: Steps

    private mutating func startStep(at now: Instant) {
        guard let step = steps.popFirst(), let name = DNSName(step.name) else {
            return finish(failure: .nameNotFound, timeToLive: negativeTimeToLive)
        }
        self.name = name
        let sources: [Source] = step.usesSystem ? [.system] : configuration.servers.map { .server($0) }
        questions = [AddressType.ipv4, .ipv6].map { Question(type: $0, sources: sources) }
        for index in questions.indices { sendNext(index, at: now) }
    }

    /// Sends a question's next query; ends the question if there is none.
    private mutating func sendNext(_ index: Int, at now: Instant) {
        guard let name else { return }
        let question = questions[index]
        for attempt in question.tries..<max(question.tries, question.sources.count * configuration.attempts) {
            questions[index].tries = attempt + 1
            let source = question.sources[attempt % question.sources.count]
            if question.failed.contains(source) { continue }
            close(index, butNewest: Self.openMax - 1)
            lastNumber += 1
            questions[index].newest = lastNumber
            questions[index].deadline = now + configuration.timeout
            let id = UInt16(truncatingIfNeeded: ids.next())
            open[lastNumber] = OpenQuery(question: index, source: source, id: id)
            let message = DNSMessage.query(name, question.type, id: id)
            return actions.append(.send(Query(number: lastNumber, source: source, message: message)))
        }
        end(index, question.failed.isEmpty ? .timeout : .answer(.failure), at: now)
    }

    private mutating func end(_ index: Int, _ end: Question.End, at now: Instant) {
        questions[index].end = end
        close(index)
        if questions.allSatisfy({ $0.end != nil }) { conclude(at: now) }
    }

    /// Closes the queries of a question, except the newest ones.
    private mutating func close(_ index: Int, butNewest count: Int = 0) {
        for number in open.filter({ $0.value.question == index }).keys.sorted().dropLast(count) {
            open[number] = nil
            actions.append(.close(number))
        }
    }

    private mutating func conclude(at now: Instant) {
        var found: [[IPAddress]] = []
        var (timeToLive, missing) = (Self.timeToLiveMax, negativeTimeToLive)
        var failure: ConnectFailure?
        for question in questions {
            switch question.end {
            case .answer(.addresses(let addresses, let time)):
                found.append(addresses)
                timeToLive = min(timeToLive, time)
            case .answer(.none(let time)): missing = min(missing, time)
            case .answer: failure = .nameServerFailure
            case .timeout, nil: failure = failure ?? .lookupTimeout
            }
        }
        if !found.isEmpty {
            // IPv6 is the question that is asked last.
            let addresses = Self.alternated(found.reversed())
            return finish(addresses, timeToLive: timeToLive)
        }
        if let failure { return finish(failure: failure, timeToLive: 0) }
        negativeTimeToLive = missing
        startStep(at: now)
    }

    private static func alternated(_ lists: [[IPAddress]]) -> [IPAddress] {
        (0..<(lists.map(\.count).max() ?? 0)).flatMap { index in
            lists.compactMap { index < $0.count ? $0[index] : nil }
        }
    }

    private mutating func finish(
        _ addresses: [IPAddress] = [], failure: ConnectFailure? = nil, timeToLive: UInt32
    ) {
        isFinished = true
        actions.append(
            .finish(
                Outcome(addresses: addresses, failure: failure, timeToLive: .seconds(Int64(timeToLive)))))
    }
}
