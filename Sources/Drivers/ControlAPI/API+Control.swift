internal import ConfigFiles
internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// Faults, outages and positions of timelines.
extension API {
    // MARK: Faults

    func respondToFaults(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        switch method {
        case .delete:
            try await registry.removeFaults(nil, of: name)
            return .noContent
        case .post:
            _ = try await registry.proxy(named: name)
            var (definition, warnings) = try await decoded(body) { (fields) throws(APIError) in
                (try StoredFault.Definition(fields), RequestWarnings.ofFault(fields))
            }
            let fault = try await registry.addFault(definition, to: name)
            let status = await (try registry.proxy(named: name)).running?.status()
            if let count = status?.connectionsWithoutFaults, count > 0 {
                warnings.append(
                    "the fault does not apply to \(count) open connection\(count == 1 ? "" : "s"): not HTTP, "
                        + "or open on the fast path before it; add the fault before the client connects, or set "
                        + "conditions (such as the profile 3g)")
            }
            return .json(fault.json(Self.status(of: fault, status)), .created, warnings: warnings)
        default:
            let view = try await view(of: name)
            return try await .json(
                work.run(bytes: Self.faultBytes * view.proxy.faults.count) { ProxyView.faults.json(view) })
        }
    }

    func respondToFault(
        _ faultName: String, of name: String, _ method: HTTPRequest.Method
    ) async throws(APIError) -> Response {
        if method == .delete {
            try await registry.removeFaults(faultName, of: name)
            return .noContent
        }
        let fault = try await registry.fault(named: faultName, of: name)
        let status = await (try registry.proxy(named: name)).running?.status()
        return .json(fault.json(Self.status(of: fault, status)))
    }

    /// An estimate of the number of bytes of a fault in a list.
    private static let faultBytes = 150

    private static func status(of fault: StoredFault, _ status: ProxyStatus?) -> FaultRuleStatus? {
        status?.faultRules.first { $0.number == fault.number }
    }

    // MARK: Outages

    func respondToOutage(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .delete: try await registry.setOutage(PerDirection(up: false, down: false), of: name)
        default:
            _ = try await registry.proxy(named: name)
            var outage = PerDirection(up: true, down: true)
            if !body.isEmpty {
                let (up, down, unknown) = try await decoded(body) { (fields) throws(APIError) in
                    (try fields.bool("up"), try fields.bool("down"), RequestWarnings.ofOutage(fields))
                }
                if up != nil || down != nil { outage = PerDirection(up: up ?? false, down: down ?? false) }
                warnings = unknown
            }
            try await registry.setOutage(outage, of: name)
        }
        return .json(Self.outage.json(try await registry.proxy(named: name).outage), warnings: warnings)
    }

    /// The directions that have an outage.
    static let outage = JSONShape<PerDirection<Bool>>(
        "Outage", [.required("up", { $0.up }, .bool), .required("down", { $0.down }, .bool)])

    /// The fields of a new outage.
    static let outageFields = outage.fields.map { JSONField.optional($0.name, $0.schema) }

    /// The schema of a new outage.
    static let newOutage = JSONSchema.object(outageFields).examples(["down": true]).named("NewOutage")

    // MARK: Timelines

    func respondToTimeline(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        if method == .patch {
            _ = try await registry.proxy(named: name)
            let (paused, position, unknown) = try await decoded(body) { (fields) throws(APIError) in
                (try fields.bool("paused"), try Self.position(fields), RequestWarnings.ofTimeline(fields))
            }
            if paused == nil && position == nil { throw .missingField("paused or position_ms") }
            try await registry.setTimeline(paused: paused, position: position, of: name)
            warnings = unknown
        }
        let view = try await view(of: name)
        guard let timeline = TimelineView(view.proxy, view.status) else {
            throw APIError(.notFound, "no timeline is running; start one with PUT .../link")
        }
        return .json(TimelineView.shape.json(timeline), warnings: warnings)
    }

    private static func position(_ fields: JSONFields) throws(APIError) -> Nanoseconds? {
        guard let number = try fields.number("position_ms") else { return nil }
        guard (0...Timeline.timeMax.inMilliseconds).contains(number) else {
            throw .badBody("position_ms must be from 0 to \(JSONText.number(Timeline.timeMax.inMilliseconds))")
        }
        return Nanoseconds(Int64(number * 1e6))
    }
}
