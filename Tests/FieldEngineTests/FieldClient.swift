import ClientApp
import Determinism
import FieldEngine
import FieldService
import HTTPTypes
import JSON

/// A the field app with a store in memory and a server, in a time that the test advances.
struct FieldClient {
    /// What happens to the next request.
    enum Fate { case answered, lostRequest, lostResponse, status(Int), cutAfter(Int) }

    /// The milliseconds since 1970 at the start: the beginning of a day.
    static let day = 86_400_000
    static let start = 20_000 * day

    var engine: FieldEngine
    var state = AppState()
    let service = FieldService()
    var now = Instant.start
    /// The difference of the server's clock from the true time, in milliseconds.
    var serverShift = 0
    /// That of the device.
    var deviceShift: Int
    /// The requests that were sent: method and target.
    var sent: [String] = []
    var bodies: [[UInt8]] = []
    /// The requests in flight.
    var inFlight: [AppRequest] = []
    /// The greatest number of transfers of files at the same time.
    var transfersMax = 0
    /// The bytes of files that were received.
    var fileBytes = 0
    /// Fates of requests whose target has a part.
    var fates: [(part: String, fate: Fate)] = []
    let settings: RecordFields
    var mutants: Set<FieldMutant>
    var interface: AppInterface
    private var seed: UInt64
    /// How often the deadline was not later than the time to which the engine has advanced: a driver would loop.
    var pastDeadlines = 0

    init(
        seed: UInt64 = 1, settings: RecordFields = [:], interface: AppInterface = AppInterface(isUp: true),
        deviceShift: Int = 0, mutants: Set<FieldMutant> = [], files: [Int] = [],
        schedule: (length: Int, grace: Int)? = nil
    ) throws {
        self.seed = seed
        self.settings = settings
        self.mutants = mutants
        self.interface = interface
        self.deviceShift = deviceShift
        service.seed(.question(key: "q1", title: "Water?", choices: []), owner: "ada")
        service.seed(.question(key: "q2", title: "Door?", choices: ["open", "shut"]), owner: "ada")
        service.seed(.issue(key: "i1", title: "Lamp", text: "broken"), owner: "ada")
        if let schedule { service.seed(.schedule(length: schedule.length, grace: schedule.grace), owner: "ada") }
        for (index, bytes) in files.enumerated() {
            service.seed(.file(key: "f\(index + 1)", title: "File \(index + 1)", bytes: bytes), owner: "ada")
        }
        engine = try FieldEngine(
            AppConfiguration(
                seed: seed, clock: WallClock(startMilliseconds: Self.start + deviceShift), settings: settings),
            restoring: state, mutants: mutants)
        engine.started(interface, at: now)
        take()
    }

    static func key(_ text: String) -> RecordKey { RecordKey(text)! }

    var clock: WallClock { WallClock(startMilliseconds: Self.start + deviceShift) }

    /// Executes all actions; the commits succeed at once.
    mutating func take() {
        while let action = engine.nextAction() {
            switch action {
            case .commit(let change):
                state.apply(change)
                engine.committed(at: now)
            case .send(let request):
                sent.append("\(request.method) \(request.target)")
                bodies.append(request.body)
                inFlight.append(request)
                transfersMax = max(transfersMax, inFlight.count { $0.target.contains("/files/") })
            case .cancel(let number): inFlight.removeAll { $0.number == number }
            }
        }
    }

    mutating func perform(_ act: AppAct) throws {
        try engine.perform(act, at: now)
        take()
    }

    mutating func call(_ name: String, _ key: String? = nil, _ fields: RecordFields = [:]) throws {
        try perform(.call(name, key.map(Self.key), fields))
    }

    /// Opens a record and creates another one in it.
    mutating func create(_ key: String, in parent: String? = nil, _ fields: RecordFields) throws {
        try perform(.open(parent.map(Self.key)))
        try perform(.create(Self.key(key), fields))
    }

    mutating func set(_ interface: AppInterface) {
        self.interface = interface
        engine.interfaceChanged(interface, at: now)
        if !interface.isUp { inFlight = [] }
        take()
    }

    mutating func setInterface(_ isUp: Bool) { set(AppInterface(isUp: isUp)) }

    mutating func shiftDeviceClock(by milliseconds: Int) {
        deviceShift += milliseconds
        engine.wallClockChanged(clock, at: now)
        take()
    }

    mutating func advance(by time: Nanoseconds) {
        now = now + time
        engine.advance(to: now)
        take()
        if let next = engine.nextDeadline, next <= now { pastDeadlines += 1 }
    }

    /// Advances through all deadlines up to a time from now, and lets the requests end at once.
    mutating func run(for time: Nanoseconds) {
        let end = now + time
        answerAll()
        while let next = engine.nextDeadline, next <= end {
            advance(by: max(.zero, next - now))
            answerAll()
        }
        advance(by: end - now)
        answerAll()
    }

    /// Lets the first request in flight end.
    mutating func answer(_ given: Fate? = nil) {
        guard !inFlight.isEmpty else { return }
        let request = inFlight.removeFirst()
        let fate = given ?? fates.first { request.target.contains($0.part) }?.fate ?? .answered
        switch fate {
        case .lostRequest:
            engine.requestFailed(request.number, AppFailure(.timeout, wasSent: false), at: now)
            return take()
        case .status(let status):
            engine.responseReceived(AppResponse(status: status, json: [:]), to: request.number, at: now)
            return take()
        case .answered, .lostResponse, .cutAfter: break
        }
        let response = respond(to: request)
        switch fate {
        case .lostResponse: engine.requestFailed(request.number, AppFailure(.lost, wasSent: true), at: now)
        case .cutAfter(let count):
            deliver(response, to: request, count)
            engine.requestFailed(request.number, AppFailure(.lost, wasSent: true), at: now)
        default:
            deliver(response, to: request, .max)
            let body = request.isStreamed ? [] : response.body
            engine.responseReceived(
                AppResponse(status: response.status, fields: response.fields, body: body), to: request.number, at: now)
        }
        take()
    }

    /// Delivers a body in pieces of 1000 bytes.
    private mutating func deliver(_ response: AppResponse, to request: AppRequest, _ count: Int) {
        guard request.isStreamed else { return }
        var rest = response.body.prefix(count)
        fileBytes += rest.count
        while !rest.isEmpty {
            let piece = AppResponse(status: response.status, fields: response.fields, body: Array(rest.prefix(1000)))
            engine.pieceReceived(piece, to: request.number, at: now)
            rest = rest.dropFirst(1000)
        }
    }

    private func respond(to request: AppRequest) -> AppResponse {
        var http = HTTPRequest(
            method: .init(request.method)!, scheme: "http", authority: "server", path: request.target)
        for field in request.fields { http.headerFields[.init(field.name)!] = field.value }
        let milliseconds = Self.start + serverShift + Int(now.sinceStart.count / 1_000_000)
        let response = service.respond(to: http, user: "ada", body: request.body, milliseconds: milliseconds)
        return AppResponse(
            status: response.head.status.code,
            fields: response.head.headerFields.map { ($0.name.rawName, $0.value) }, body: response.body)
    }

    mutating func answerAll() {
        var count = 0
        while !inFlight.isEmpty, count < 10_000 {
            answer()
            count += 1
        }
    }

    /// Kills the client and starts it again on its store.
    mutating func restart() throws {
        seed += 1
        inFlight = []
        engine = try FieldEngine(
            AppConfiguration(seed: seed, clock: clock, settings: settings), restoring: state, mutants: mutants)
        engine.started(interface, at: now)
        take()
    }

    func row(_ key: String) -> AppView.Row? { engine.view.rows.first { $0.key.text == key } }

    func text(_ key: String) -> String? { row(key)?.fields["text"] }

    func record(_ key: String) -> FieldServerRecord? { service.records(of: "ada").first { $0.key == key } }

    /// The requests since a number of them, without the path of the service.
    func requests(since count: Int = 0) -> [String] {
        sent.dropFirst(count).map { $0.replacing("/field/", with: "") }
    }
}
