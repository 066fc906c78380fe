internal import Determinism
internal import Impairment
internal import LinkModel

/// The faults of a seed.
extension Swarm {
    private typealias Fault = Scenario.Fault

    /// The faults of each class.
    private static let perClass = 2

    /// Returns the faults: up to two of each class that is on. None must fire.
    func faults(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Fault] {
        var found: [Fault] = []
        for entry in SwarmClass.allCases where configuration.classes.contains(entry) && entry.part == .faults {
            for number in 0..<Self.perClass {
                var random = draws.stream("fault/\(entry.rawValue)/\(number)")
                // One fault, and a second one in half of the seeds.
                guard number == 0 || random.bool(probability: 0.5) else { continue }
                found.append(fault(entry, &random))
            }
        }
        return found
    }

    /// The statuses with which the service of an app fails, or asks for another attempt.
    private static let serverErrors = [500, 500, 408, 425, 429, 502, 503, 504]
    /// The statuses with which the service of an app rejects a write.
    private static let rejections = [400, 403, 404, 409, 410, 413, 422]

    /// Returns methods of the notes server, and those of the services of apps if the scenario has an app.
    private func methods(_ methods: [String?]) -> [String?] {
        base.apps.isEmpty ? methods : methods + ["PATCH", "GET", "PATCH", "POST"]
    }

    private func fault(_ entry: SwarmClass, _ random: inout RandomStream) -> Scenario.Fault {
        let percent = random.pick([1, 3, 10, 30])
        let times = random.pick([1, 2, 5, 20])
        let method = random.pick(methods(["POST", "PUT", "DELETE", "GET", nil]))
        let write = random.pick(methods(["POST", "PUT", "DELETE", nil]))
        let device = random.bool(probability: 0.25) ? random.pick(base.devices).name : nil
        let seconds = Nanoseconds.seconds(1 << random.integer(below: 7))
        let isAbort = random.bool(probability: 0.5)
        func make(
            _ method: String?, _ point: Fault.Point, _ action: Fault.Action
        ) -> Scenario.Fault {
            Fault(
                request: RequestPattern(method: method, row: nil),
                probability: Probability(partsPerMillion: Int32(percent) * 10_000), times: 0...times, device: device,
                point: point, action: action, location: Self.location)
        }
        let point = random.pick(Self.points(entry))
        switch entry {
        case .lostResponse: return make(write, point, .link(isAbort ? .reset : .stall))
        case .delayed: return make(method, point, .link(.delay(seconds)))
        case .halfBody: return make(method, point, .link(isAbort ? .reset : .close))
        case .throttle: return make(method, point, .link(.throttle(bytesPerSecond: random.pick([1, 10, 100]))))
        case .wrongType:
            // A read of the right type, too, without the data that it must have.
            if !base.apps.isEmpty, isAbort { return make("GET", point, .link(.respond(answer(200, device)))) }
            return make(method, point, .link(.respond(Self.portal)))
        case .overload:
            return make(method, point, .link(.respond(overloaded(device, seconds: random.pick([1, 5, 12, 40])))))
        case .serverError:
            let status = base.apps.isEmpty ? 500 : random.pick(Self.serverErrors)
            return make(write, point, .link(.respond(answer(status, device))))
        case .rejection: return rejection(write, point, device, make, &random)
        case .unauthorized:
            // In a row, as of a session that has ended: a single one is cured by another access token.
            return Fault(
                request: RequestPattern(method: random.pick(["POST", "GET", nil]), row: nil),
                nth: 1 + Int(random.integer(below: 200)), times: 0...random.pick([1, 2, 8]), device: device,
                point: point, action: .link(.respond(unauthorized(device))), location: Self.location)
        case .killAtCommit: return make(write, point, .kill(device: nil))
        default: return make(method, point, .link(isAbort ? .reset : .close))
        }
    }

    /// Returns a fault that rejects changes: some of all notes, or all of one note.
    private func rejection(
        _ method: String?, _ point: Fault.Point, _ device: String?,
        _ make: (String?, Fault.Point, Fault.Action) -> Fault, _ random: inout RandomStream
    ) -> Fault {
        // A status that says that a record is gone would make a deletion look executed.
        let statuses = base.apps.isEmpty || method == "DELETE" ? [413, 422] : Self.rejections
        let reply = Fault.Action.link(.respond(answer(random.pick(statuses), device)))
        let fault = make(method ?? "PUT", point, reply)
        let row = base.notes.isEmpty ? nil : random.pick(base.notes).row
        if row == nil || random.bool(probability: 0.5) { return fault }
        return Fault(
            request: RequestPattern(method: method, row: row), nth: 1 + Int(random.integer(below: 8)),
            times: 0...random.pick([1, 5, 20]), device: fault.device, point: point, action: reply,
            location: Self.location)
    }

    /// Returns the points at which the faults of a class apply; more frequent ones are repeated.
    private static func points(_ entry: SwarmClass) -> [Scenario.Fault.Point] {
        switch entry {
        case .lostResponse: [.at(.beforeResponse), .at(.beforeResponse), .at(.afterResponseHead)]
        case .delayed: [.at(.beforeRequestEnd), .at(.beforeResponse), .at(.afterResponse)]
        case .halfBody: [.at(.midRequest), .at(.midResponse)]
        case .throttle: [.at(.afterResponseHead)]
        case .wrongType, .serverError: [.at(.beforeRequest), .at(.beforeRequestEnd), .at(.beforeResponse)]
        case .overload: [.at(.beforeRequest), .at(.beforeRequestEnd)]
        // At the other points the server executes the request, and does not reject it then.
        case .rejection, .unauthorized: [.at(.beforeRequest)]
        case .killAtCommit:
            [.at(.beforeRequest), .at(.beforeRequestEnd), .at(.beforeResponse), .at(.afterResponse), .stored, .stored]
        default: [.any]
        }
    }

    /// The pairs of a fault and a method that an exploration can reach.
    public var possibleFaults: Set<CoverageCell> {
        SwarmClass.allCases.reduce(into: []) { $0.formUnion(possibleFaults(of: $1)) }
    }

    /// Returns the classes whose faults have not all been applied to changes, in their order.
    public func incompleteClasses(reached: (CoverageCell) -> Bool) -> [SwarmClass] {
        SwarmClass.allCases.filter { entry in possibleFaults(of: entry).contains { !reached($0) } }
    }

    private func possibleFaults(of entry: SwarmClass) -> Set<CoverageCell> {
        guard parts.contains(.faults), entry.part == .faults, !entry.kills || parts.contains(.workload) else {
            return []
        }
        // Two faults with a number reach each method and point too seldom to be asked for.
        if entry == .unauthorized { return [] }
        var cells: Set<CoverageCell> = []
        for action in Self.actionNames(entry) {
            for point in Self.points(entry).flatMap({ $0 == .any ? Self.anyPoints : [$0] }) {
                for method in ["POST", "PUT", "DELETE"] {
                    cells.insert(.fault(action: action, point: point.rawValue, method: method))
                }
            }
        }
        return cells
    }

    /// The points for which `any` stands, as far as a connection can end there.
    private static let anyPoints =
        Fault(request: .any, device: nil, action: .link(.reset), location: location).points

    private static func actionNames(_ entry: SwarmClass) -> [String] {
        switch entry {
        case .lostResponse: ["reset", "stall"]
        case .delayed: ["delay"]
        case .throttle: ["throttle"]
        case .wrongType, .overload, .serverError, .rejection, .unauthorized: ["respond"]
        case .killAtCommit: ["kill"]
        default: ["reset", "close"]
        }
    }

    private static let portal = FaultResponse(
        status: 200, fields: [.init("Content-Type", "text/html")],
        body: Array("<html><body>Log in</body></html>".utf8))

    /// Returns a response of the server to a device, or to any device.
    private func answer(_ status: Int, _ device: String?, _ fields: [FaultResponse.Field] = [])
        -> FaultResponse
    {
        var markers: [String] = []
        for found in base.devices where device.map({ $0 == found.name }) ?? true {
            if !markers.contains(found.client.markerField) { markers.append(found.client.markerField) }
        }
        return FaultResponse(
            status: status,
            fields: fields + [.init("Content-Type", "application/json")] + markers.map { .init($0, "1") },
            body: Array("{}".utf8))
    }

    private func overloaded(_ device: String?, seconds: Int) -> FaultResponse {
        answer(503, device, [.init("Retry-After", "\(seconds)")])
    }

    private func unauthorized(_ device: String?) -> FaultResponse {
        answer(401, device, [.init("WWW-Authenticate", "Bearer")])
    }
}
