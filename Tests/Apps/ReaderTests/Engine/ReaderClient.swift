import Client
import Determinism
import HTTPTypes
import Reader
import Wire

/// A reader with a store in memory and a server, in a time that the test advances.
struct ReaderClient {
    /// What happens to a request.
    enum Fate { case answered, lostRequest, lostResponse, timeout, portal, status(Int), body(String) }

    var engine: ReaderEngine
    var state = AppState()
    let service = ReaderService()
    var now = Instant.start
    /// The requests that were sent: method and target.
    var sent: [String] = []
    /// The requests that the service has executed.
    var executed: [String] = []
    /// The requests in flight.
    var inFlight: [AppRequest] = []
    var mutants: Set<ReaderMutant>
    let settings: RecordFields
    /// The views that a user has seen.
    var views: [AppView] = []
    /// How often the deadline was not later than the time to which the engine has advanced: a driver would loop.
    var pastDeadlines = 0
    private var seed: UInt64

    init(
        seed: UInt64 = 1, interface: AppInterface = AppInterface(isUp: true), settings: RecordFields = [:],
        mutants: Set<ReaderMutant> = [], hasList: Bool = true
    ) throws {
        self.seed = seed
        self.mutants = mutants
        self.settings = settings
        engine = try ReaderEngine(AppConfiguration(seed: seed, settings: settings), mutants: mutants)
        service.seed(
            ReaderRecord(
                key: "p1", kind: .profile, title: "Bo", text: "Cook", birthday: "1990-05-01", picture: "A pan"),
            owner: "ada")
        service.seed(ReaderRecord(key: "p2", kind: .profile, title: "Ada"), owner: "ada")
        service.seed(ReaderRecord(key: "a1", kind: .article, author: "p1", title: "Tea", text: "Boil"), owner: "ada")
        service.seed(ReaderRecord(key: "a2", kind: .article, author: "p2", title: "Rice", text: "Wash"), owner: "ada")
        engine.started(interface, at: now)
        take()
        if hasList { answerAll() }
    }

    static func key(_ text: String) -> RecordKey { RecordKey(text)! }

    /// Executes all actions; the commits succeed at once.
    mutating func take() {
        while let action = engine.nextAction() {
            switch action {
            case .commit(let change):
                state.apply(change)
                engine.committed(at: now)
            case .send(let request):
                sent.append("\(request.method) \(request.target)")
                inFlight.append(request)
            case .cancel(let number): inFlight.removeAll { $0.number == number }
            }
        }
        if views.last != engine.view { views.append(engine.view) }
    }

    mutating func perform(_ act: AppAct) throws {
        try engine.perform(act, at: now)
        take()
    }

    mutating func open(_ key: String?) throws { try perform(.open(key.map(Self.key))) }

    mutating func call(_ name: String, _ key: String? = nil, _ fields: RecordFields = [:]) throws {
        try perform(.call(name, key.map(Self.key), fields))
    }

    mutating func setInterface(_ isUp: Bool, isMetered: Bool = false) {
        engine.interfaceChanged(AppInterface(isUp: isUp, isMetered: isMetered), at: now)
        take()
    }

    mutating func advance(by time: Nanoseconds) {
        let end = now + time
        while let next = engine.nextDeadline, next <= end {
            now = max(now, next)
            advanceToNow()
            if pastDeadlines > 0 { return }
        }
        now = end
        advanceToNow()
    }

    private mutating func advanceToNow() {
        engine.advance(to: now)
        take()
        if let next = engine.nextDeadline, next <= now { pastDeadlines += 1 }
    }

    /// Lets the first request in flight, or the first with a target, end in a way.
    mutating func answer(_ fate: Fate = .answered, _ target: String? = nil) {
        let found = target.map { target in inFlight.firstIndex { $0.target == "/reader\(target)" } } ?? 0
        guard let index = found, inFlight.indices.contains(index) else { return }
        let request = inFlight.remove(at: index)
        defer { take() }
        switch fate {
        case .lostRequest:
            return engine.requestFailed(request.number, AppFailure(.noConnection, wasSent: false), at: now)
        case .timeout: return engine.requestFailed(request.number, AppFailure(.timeout, wasSent: true), at: now)
        case .portal: return engine.requestFailed(request.number, AppFailure(.foreign, wasSent: true), at: now)
        case .status(let status):
            return engine.responseReceived(AppResponse(status: status, json: [:]), to: request.number, at: now)
        case .body(let body):
            return engine.responseReceived(
                AppResponse(status: 200, body: Array(body.utf8)), to: request.number, at: now)
        case .answered, .lostResponse: break
        }
        var http = HTTPRequest(
            method: .init(request.method)!, scheme: "http", authority: "server", path: request.target)
        for (name, value) in request.fields { http.headerFields[.init(name)!] = value }
        executed.append("\(request.method) \(request.target)")
        let response = service.respond(to: http, user: "ada", body: request.body)
        if case .lostResponse = fate {
            return engine.requestFailed(request.number, AppFailure(.lost, wasSent: true), at: now)
        }
        engine.responseReceived(
            AppResponse(
                status: response.head.status.code,
                fields: response.head.headerFields.map { ($0.name.rawName, $0.value) }, body: Array(response.body.utf8)),
            to: request.number, at: now)
    }

    mutating func answerAll() { while !inFlight.isEmpty { answer() } }

    /// Kills the client and starts it again on its store.
    mutating func restart(isOnline: Bool = true) throws {
        seed += 1
        inFlight = []
        engine = try ReaderEngine(
            AppConfiguration(seed: seed, settings: settings), restoring: state, mutants: mutants)
        engine.started(AppInterface(isUp: isOnline), at: now)
        take()
    }

    /// Lets the client finish on a good network. A read that is older than the result of a like needs another one.
    mutating func settle() throws {
        setInterface(true)
        for _ in 0..<2 {
            try perform(.sync)
            for _ in 0..<1000 where !engine.isSettled || !inFlight.isEmpty {
                answerAll()
                guard let next = engine.nextDeadline else { break }
                advance(by: max(Nanoseconds(1), next - now))
            }
        }
    }

    // MARK: What the user sees

    var screen: AppView.Screen { engine.view.screen }

    func text(_ key: String) -> String? { engine.view.rows.first { $0.key.text == key }?.fields["text"] }

    func isLikedOnServer(_ key: String) -> Bool? { service.records(of: "ada").first { $0.key == key }?.isLiked }

    func count(_ kind: ReaderRecord.Kind) -> Int { service.records(of: "ada").count { $0.kind == kind } }

    /// All bytes of the store.
    var stored: String {
        state.values(under: "").map { "\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }
            .joined(separator: "\n")
    }
}
