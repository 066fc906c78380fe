public import Client
public import Determinism
public import HTTPTypes

/// A client of an app with a store in memory and the app's service, in a time that the test advances.
public struct FakeClient<Engine: AppEngine, Service> {
    /// What happens to a request.
    public enum Fate: Sendable {
        case answered, lostRequest, lostResponse, timeout, portal, body(String)
        case status(Int, retryAfter: Int? = nil)
        /// The connection is lost after a number of bytes of the response's body.
        case cutAfter(Int)
    }

    /// A response of the service.
    public typealias Response = (head: HTTPResponse, body: [UInt8])

    public var engine: Engine
    /// What the store contains.
    public var state = AppState()
    public let service: Service
    public private(set) var now = Instant.start
    public private(set) var clock: WallClock
    public private(set) var interface: NetworkInterface
    /// The requests that were sent: method and target.
    public private(set) var sent: [String] = []
    public private(set) var bodies: [[UInt8]] = []
    /// The requests that the service has executed.
    public private(set) var executed: [String] = []
    public var inFlight: [AppRequest] = []
    /// The greatest number of streamed requests at the same time.
    public private(set) var streamsMax = 0
    /// The bytes of streamed responses that were received.
    public private(set) var streamedBytes = 0
    /// Fates of requests whose target has a part; the others are answered.
    public var fates: [(part: String, fate: Fate)] = []
    /// The views that a user has seen, without repetitions.
    public private(set) var views: [AppView] = []
    /// How often the deadline was not later than the time to which the engine has advanced: a driver would loop.
    public private(set) var pastDeadlines = 0

    private var configuration: AppConfiguration
    private let makeEngine: (AppConfiguration, AppState) throws -> Engine
    private let execute: (Service, HTTPRequest, [UInt8], Instant) -> Response

    /// Starts a client.
    ///
    /// - Parameters:
    ///   - makeEngine: Creates the engine on what is stored.
    ///   - execute: Returns the response of the service to a request with its body.
    public init(
        _ configuration: AppConfiguration, _ interface: NetworkInterface, service: Service,
        makeEngine: @escaping (AppConfiguration, AppState) throws -> Engine,
        execute: @escaping (Service, HTTPRequest, [UInt8], Instant) -> Response
    ) throws {
        self.configuration = configuration
        self.interface = interface
        self.service = service
        self.makeEngine = makeEngine
        self.execute = execute
        clock = configuration.clock
        engine = try makeEngine(configuration, state)
        engine.started(interface, at: now)
        take()
    }

    /// Kills the client and starts it again on its store.
    public mutating func restart(isOnline: Bool? = nil) throws {
        configuration.seed += 1
        configuration.clock = clock
        if let isOnline { interface = NetworkInterface(isUp: isOnline) }
        inFlight = []
        engine = try makeEngine(configuration, state)
        engine.started(interface, at: now)
        take()
    }

    public static func key(_ text: String) -> RecordKey { RecordKey(text)! }

    // MARK: Inputs

    /// Executes all actions; the commits succeed at once.
    public mutating func take() {
        while let action = engine.nextAction() {
            switch action {
            case .commit(let change):
                state.apply(change)
                engine.committed(at: now)
            case .send(let request):
                sent.append("\(request.method) \(request.target)")
                bodies.append(request.body)
                inFlight.append(request)
                streamsMax = max(streamsMax, inFlight.count { $0.isStreamed })
            case .cancel(let number): inFlight.removeAll { $0.number == number }
            }
        }
        if views.last != engine.view { views.append(engine.view) }
    }

    public mutating func perform(_ act: AppAct) throws {
        try engine.perform(act, at: now)
        take()
    }

    public mutating func open(_ key: String?) throws { try perform(.open(key.map(Self.key))) }

    public mutating func call(_ name: String, _ key: String? = nil, _ fields: RecordFields = [:]) throws {
        try perform(.call(name, key.map(Self.key), fields))
    }

    public mutating func setInterface(_ isUp: Bool, isMetered: Bool = false) {
        interface = NetworkInterface(isUp: isUp, isMetered: isMetered)
        engine.interfaceChanged(interface, at: now)
        take()
    }

    public mutating func shiftClock(by milliseconds: Int) {
        clock.startMilliseconds += milliseconds
        engine.wallClockChanged(clock, at: now)
        take()
    }

    // MARK: Time

    /// Advances through all deadlines.
    public mutating func advance(by time: Nanoseconds) {
        let end = now + time
        while pastDeadlines == 0, let next = engine.nextDeadline, next <= end { advance(to: next) }
        advance(to: end)
    }

    /// Advances to the next deadline. Returns whether there is one.
    public mutating func advanceToDeadline() -> Bool {
        guard let next = engine.nextDeadline else { return false }
        advance(to: next)
        return true
    }

    private mutating func advance(to time: Instant) {
        now = max(now, time)
        engine.advance(to: now)
        take()
        if let next = engine.nextDeadline, next <= now { pastDeadlines += 1 }
    }

    /// Advances through all deadlines, and lets the requests end at once.
    public mutating func run(for time: Nanoseconds) {
        let end = now + time
        answerAll()
        while pastDeadlines == 0, let next = engine.nextDeadline, next <= end {
            advance(to: next)
            answerAll()
        }
        advance(to: end)
        answerAll()
    }

    /// Lets the client finish on a good network.
    public mutating func settle() {
        setInterface(true)
        for _ in 0..<1000 {
            answerAll()
            if engine.isSettled { return }
            guard advanceToDeadline() else { return }
        }
    }

    // MARK: Requests

    /// Lets the first request in flight, or the first one to a path of the service, end.
    public mutating func answer(_ given: Fate? = nil, _ path: String? = nil) {
        let found = path.map { path in inFlight.firstIndex { $0.target == Engine.basePath + path } } ?? 0
        guard let index = found, inFlight.indices.contains(index) else { return }
        let request = inFlight.remove(at: index)
        let fate = given ?? fates.first { request.target.contains($0.part) }?.fate ?? .answered
        switch fate {
        case .lostRequest: fail(request, AppFailure(.noConnection, wasSent: false))
        case .timeout: fail(request, AppFailure(.timeout, wasSent: true))
        case .portal: fail(request, AppFailure(.foreign, wasSent: true))
        case .status(let status, let seconds):
            let fields = seconds.map { [(name: "Retry-After", value: "\($0)")] } ?? []
            respond(to: request, AppResponse(status: status, fields: fields, body: Array("{}".utf8)))
        case .body(let body): respond(to: request, AppResponse(status: 200, body: Array(body.utf8)))
        case .lostResponse:
            _ = executed(request)
            fail(request, AppFailure(.lost, wasSent: true))
        case .cutAfter(let count):
            deliver(executed(request), to: request, count)
            fail(request, AppFailure(.lost, wasSent: true))
        case .answered:
            let response = executed(request)
            deliver(response, to: request, .max)
            let body = request.isStreamed ? [] : response.body
            respond(to: request, AppResponse(status: response.status, fields: response.fields, body: body))
        }
        take()
    }

    public mutating func answerAll() {
        var count = 0
        while !inFlight.isEmpty, count < 10_000 {
            answer()
            count += 1
        }
    }

    private mutating func fail(_ request: AppRequest, _ failure: AppFailure) {
        engine.requestFailed(request.number, failure, at: now)
    }

    private mutating func respond(to request: AppRequest, _ response: AppResponse) {
        engine.responseReceived(response, to: request.number, at: now)
    }

    /// Lets the service execute a request.
    private mutating func executed(_ request: AppRequest) -> AppResponse {
        var http = HTTPRequest(
            method: .init(request.method)!, scheme: "http", authority: "server", path: request.target)
        for field in request.fields { http.headerFields[.init(field.name)!] = field.value }
        executed.append("\(request.method) \(request.target)")
        let response = execute(service, http, request.body, now)
        return AppResponse(
            status: response.head.status.code,
            fields: response.head.headerFields.map { ($0.name.rawName, $0.value) }, body: response.body)
    }

    /// Delivers a body in pieces of 1000 bytes.
    private mutating func deliver(_ response: AppResponse, to request: AppRequest, _ count: Int) {
        guard request.isStreamed else { return }
        var rest = response.body.prefix(count)
        streamedBytes += rest.count
        while !rest.isEmpty {
            let piece = AppResponse(status: response.status, fields: response.fields, body: Array(rest.prefix(1000)))
            engine.pieceReceived(piece, to: request.number, at: now)
            rest = rest.dropFirst(1000)
        }
    }

    // MARK: What the user sees

    public func row(_ key: String) -> AppView.Row? { engine.view.rows.first { $0.key.text == key } }

    public func text(_ key: String) -> String? { row(key)?.fields["text"] }
}
