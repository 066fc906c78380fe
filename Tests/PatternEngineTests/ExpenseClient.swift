import ClientApp
import Determinism
import ExpenseService
import HTTPTypes
import JSON
import PatternEngine

/// A the expense app with a store in memory and a server, in a time that the test advances.
struct ExpenseClient {
    /// What happens to the next requests.
    enum Fate { case answered, lostRequest, lostResponse, status(Int, retryAfter: Int? = nil) }

    var engine: ExpenseEngine
    var state = ExpenseState()
    let service = ExpenseService()
    var now = Instant.start
    /// The requests that were sent: method and target.
    var sent: [String] = []
    /// The requests that the service has executed.
    var executed: [String] = []
    /// The requests in flight.
    var inFlight: [ExpenseEngineRequest] = []
    var mutants: Set<ExpenseMutant> = []
    private var seed: UInt64
    /// The views after each commit, in which only what changed is recorded.
    var views: [AppView] = []
    /// How often the deadline was not later than the time to which the engine has advanced: a driver would loop.
    var pastDeadlines = 0

    init(seed: UInt64 = 1, isOnline: Bool = true, mutants: Set<ExpenseMutant> = []) {
        self.seed = seed
        self.mutants = mutants
        engine = ExpenseEngine(seed: seed, mutants: mutants)
        service.seed(ExpenseRecord(key: "r1", kind: .report, fields: [("title", "Trip")]), owner: "ada")
        service.seed(
            ExpenseRecord(key: "e1", kind: .expense, parent: "r1", fields: [("title", "Taxi"), ("amount", "12.00")]),
            owner: "ada")
        service.seed(ExpenseRecord(key: "c1", kind: .chat, fields: [("title", "Bo")]), owner: "ada")
        engine.started(isInterfaceUp: true, at: now)
        take()
        answerAll()
        if !isOnline { setInterface(false) }
    }

    static func key(_ text: String) -> RecordKey { RecordKey(text)! }

    /// Executes all actions; the commits succeed at once.
    mutating func take() {
        while let action = engine.takeAction() {
            switch action {
            case .commit(let change):
                state = state.applying(change)
                engine.committed(at: now)
            case .send(let request):
                sent.append("\(request.method) \(request.target)")
                inFlight.append(request)
            case .cancel(let number): inFlight.removeAll { $0.number == number }
            }
        }
        if views.last != engine.view { views.append(engine.view) }
    }

    mutating func perform(_ act: ExpenseEngine.Act) throws {
        try engine.perform(act, at: now)
        take()
    }

    mutating func setInterface(_ isUp: Bool) {
        engine.interfaceChanged(isUp: isUp, at: now)
        take()
    }

    mutating func advance(by time: Nanoseconds) {
        now = now + time
        advanceToNow()
    }

    private mutating func advanceToNow() {
        engine.advance(to: now)
        take()
        if let next = engine.nextDeadline, next <= now { pastDeadlines += 1 }
    }

    /// Advances to the next deadline. Returns whether there is one.
    mutating func advanceToDeadline() -> Bool {
        guard let next = engine.nextDeadline else { return false }
        now = max(now, next)
        advanceToNow()
        return true
    }

    /// Lets the first request in flight end in a way.
    mutating func answer(_ fate: Fate = .answered) {
        guard !inFlight.isEmpty else { return }
        let request = inFlight.removeFirst()
        if case .lostRequest = fate {
            engine.requestFailed(request.number, wasSent: false, at: now)
            return take()
        }
        if case .status(let status, let seconds) = fate {
            engine.responseReceived(
                ExpenseEngineResponse(status: status, body: [:], retryAfterSeconds: seconds), to: request.number,
                at: now)
            return take()
        }
        var http = HTTPRequest(
            method: .init(request.method)!, scheme: "http", authority: "server", path: request.target)
        if let operation = request.operation { http.headerFields[.init("Idempotency-Key")!] = "\"\(operation)\"" }
        executed.append("\(request.method) \(request.target)")
        let response = service.respond(to: http, user: "ada", body: Array((request.body?.json ?? "").utf8))
        if case .lostResponse = fate {
            engine.requestFailed(request.number, wasSent: true, at: now)
        } else {
            engine.responseReceived(
                ExpenseEngineResponse(
                    status: response.head.status.code, body: JSONText.parse(Array(response.body.utf8)) ?? .null),
                to: request.number, at: now)
        }
        take()
    }

    mutating func answerAll() { while !inFlight.isEmpty { answer() } }

    /// Kills the client and starts it again on its store.
    mutating func restart(isOnline: Bool) {
        seed += 1
        inFlight = []
        engine = ExpenseEngine(restoring: state, seed: seed, mutants: mutants)
        engine.started(isInterfaceUp: isOnline, at: now)
        take()
    }

    /// Lets the client finish on a good network.
    mutating func settle() {
        setInterface(true)
        for _ in 0..<1000 {
            answerAll()
            if engine.isSettled { return }
            guard advanceToDeadline() else { return }
        }
    }

    func row(_ key: String) -> AppView.Row? { engine.view.rows.first { $0.key.text == key } }

    func record(_ key: String) -> ExpenseRecord? { service.records(of: "ada").first { $0.key == key } }
}
