import Client
import Determinism
import Field
import HTTPTypes
import TestSupport
import Wire

/// The field app.
typealias FieldClient = FakeClient<FieldEngine, FieldService>

extension FakeClient where Engine == FieldEngine, Service == FieldService {
    /// The milliseconds since 1970 at the start: the beginning of a day.
    static var day: Int { 86_400_000 }
    static var start: Int { 20_000 * day }

    init(
        seed: UInt64 = 1, settings: RecordFields = [:], interface: NetworkInterface = NetworkInterface(isUp: true),
        deviceShift: Int = 0, behavior: FieldBehavior = FieldBehavior(), files: [Int] = [],
        schedule: (length: Int, grace: Int)? = nil
    ) throws {
        let service = FieldService()
        service.seed(.question(key: "q1", title: "Water?", choices: []), owner: "ada")
        service.seed(.question(key: "q2", title: "Door?", choices: ["open", "shut"]), owner: "ada")
        service.seed(.issue(key: "i1", title: "Lamp", text: "broken"), owner: "ada")
        if let schedule { service.seed(.schedule(length: schedule.length, grace: schedule.grace), owner: "ada") }
        for (index, bytes) in files.enumerated() {
            service.seed(.file(key: "f\(index + 1)", title: "File \(index + 1)", bytes: bytes), owner: "ada")
        }
        let clock = WallClock(startMilliseconds: Self.start + deviceShift)
        let serverClock = WallClock(startMilliseconds: Self.start)
        try self.init(
            AppConfiguration(seed: seed, clock: clock, settings: settings), interface, service: service,
            makeEngine: { try FieldEngine($0, restoring: $1, behavior: behavior) },
            execute: { service, http, body, now in
                let response = service.respond(
                    to: http, user: "ada", body: body, milliseconds: serverClock.milliseconds(at: now))
                return (response.head, response.body)
            })
        answer(nil, "/session")
    }

    /// Opens a record and creates another one in it.
    mutating func create(_ key: String, in parent: String? = nil, _ fields: RecordFields) throws {
        try open(parent)
        try perform(.create(Self.key(key), fields))
    }

    func record(_ key: String) -> FieldServerRecord? { service.records(of: "ada").first { $0.key == key } }

    /// The requests since a number of them, without the path of the service.
    func requests(since count: Int = 0) -> [String] {
        sent.dropFirst(count).map { $0.replacing("/field/", with: "") }
    }
}
