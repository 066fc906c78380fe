internal import ConfigFiles
internal import HTTPTypes
internal import Impairment
internal import Wire

/// A fault rule as defined by a request and shown in responses.
struct StoredFault {
    let name: String
    let rule: FaultRule
    /// The number of the rule on the link of the running proxy; `nil` while the proxy is disabled.
    var number: Int?

    private static let nameField = JSONField.optional(
        "name",
        JSONSchema.text.with(["maxLength": 255]).about("The name of the fault; by default `fault_N`.").named(
            "FaultName"))
    private static let lineFields: [JSONField] = [
        nameField,
        .required(
            "rule", .text,
            "METHOD|any [PATH] [nth N | probability P%] [times N|unlimited] POINT [bytes N] ACTION [client|server|both]"
        ),
    ]
    private static let ruleFields: [JSONField] = [
        .optional(
            "request", .text.with(["default": "any"]).examples("POST /api/notes/*"),
            "METHOD|any [PATH]; a path may contain `*`."),
        .optional(
            "nth", .integer(min: 1).with(["default": 1]), "The first matching request to which the fault applies."),
        .optional(
            "probability", .any(of: [JSONSchema(["type": "number", "exclusiveMinimum": 0, "maximum": 1]), .text]),
            "The probability that the fault applies to a matching request: 0 to 1, or a percentage such as \"5%\"."),
        .optional(
            "times", .any(of: [.integer(min: 1), JSONSchema(["const": "unlimited"])]),
            "The number of requests to which the fault applies (default: 1; with `probability`, unlimited)."),
        .required("point", .words(FaultExpression.points)),
        .optional("bytes", .count, "The bytes of the body that pass before `mid-request` or `mid-response`."),
        .optional(
            "side", .words(FaultSide.allCases.map(\.rawValue)), "The sockets that reset, close and stall affect."),
        .required(
            "then",
            .any(of: [
                .text.examples(
                    "reset", "close", "stall", "portal", "delay 5s", "throttle 200", "respond 503 Retry-After: 1"),
                JSONSchema.object(actionFields, isClosed: true).with(["minProperties": 1, "maxProperties": 1])
                    .named("FaultAction"),
            ]), "The action."),
    ]
    private static let actionFields: [JSONField] = [
        .optional("delay", .text.examples("5s"), "A time."),
        .optional("throttle", .integer(min: 1), "Bytes per second."),
        .optional("respond", .object(replyFields, isClosed: true)),
    ]
    private static let replyFields: [JSONField] = [
        .required("status", .integer(in: FaultResponse.statuses)),
        .optional("headers", .object.with(["additionalProperties": ["type": ["string", "integer"]]])),
        .optional("body", .text, "At most 1 MiB."),
    ]

    /// The names of the fields. A request has either `rule`, the rule on one line, or the fields of scenario files.
    static let fieldNames = lineFields.names + ruleFields.names

    /// The schema of a fault in a request.
    static let schema = JSONSchema.any(of: [
        JSONSchema.object(lineFields, isClosed: true).examples(
            ["rule": "POST * nth 3 before-response stall"],
            ["name": "busy", "rule": "any /api/* times 2 before-request respond 503 Retry-After: 1 body busy"]
        ).named("FaultLine"),
        JSONSchema.object([nameField] + ruleFields, isClosed: true).examples(
            ["request": "POST /api/notes/", "nth": 3, "point": "before-response", "then": "stall"]
        ).named("FaultFields"),
    ]).about("Either `rule`, or `point` and `then`.").named("NewFault")

    /// The bytes of a response's body in responses.
    private static let bodyBytesShownMax = 200

    /// The definition of a new fault in a request.
    struct Definition: Sendable {
        /// The name; empty if the proxy chooses one.
        let name: String
        let rule: FaultRule

        init(_ fields: JSONFields) throws(APIError) {
            name = try fields.text("name") ?? ""
            rule = try StoredFault.rule(of: fields)
        }
    }

    /// Creates a fault.
    ///
    /// - Parameter names: The names of the proxy's faults.
    init(_ definition: Definition, names: [String]) throws(APIError) {
        name = definition.name.isEmpty ? Self.freeName(1, names) : definition.name
        if names.contains(where: { $0.hasSameBytes(as: definition.name) }) {
            throw APIError(.conflict, "fault already exists")
        }
        rule = definition.rule
    }

    private static func rule(of fields: JSONFields) throws(APIError) -> FaultRule {
        if let text = try fields.text("rule", bytesMax: FaultExpression.bytesMax) {
            if let other = ruleFields.names.first(where: { fields[$0] != nil }) {
                throw .badBody("give either rule or \(other)")
            }
            return try parsed("rule") { () throws(FaultExpression.ParseError) in try FaultExpression.parse(text) }
        }
        return try rule(fields)
    }

    /// Reads a fault of the definition of a proxy: a rule on one line, or the fields of a request.
    static func ofDefinition(_ value: JSONValue, names: [String]) throws(APIError) -> StoredFault {
        guard let text = value.text else {
            guard value.object != nil else {
                throw .badBody("a fault is a rule on one line, such as \"GET * before-response stall\"")
            }
            return try StoredFault(Definition(JSONFields(value, "a fault")), names: names)
        }
        let rule = try parsed("rule") { () throws(FaultExpression.ParseError) in try FaultExpression.parse(text) }
        var fault = StoredFault(rule, number: names.count, names: names)
        fault.number = nil
        return fault
    }

    /// Creates the fault of a rule of a running proxy.
    init(_ rule: FaultRule, number: Int, names: [String]) {
        name = Self.freeName(number + 1, names)
        self.rule = rule
        self.number = number
    }

    private static func freeName(_ first: Int, _ names: [String]) -> String {
        let taken = Set(names.map { ByteKey($0) })
        // One of these numbers is free.
        return (first...first + names.count).lazy.map { "fault_\($0)" }.first { !taken.contains(ByteKey($0)) }
            ?? "fault"
    }

    /// Runs a parser; its errors become those of a field.
    private static func parsed<Value>(
        _ name: String, _ parse: () throws(FaultExpression.ParseError) -> Value
    ) throws(APIError) -> Value {
        do {
            return try parse()
        } catch {
            throw .badBody("\(name): \(error.oneLine)")
        }
    }

    private static func rule(_ fields: JSONFields) throws(APIError) -> FaultRule {
        // Other unknown fields have no effect, but a fault without what its author has given would be another one.
        for name in fields.names(except: fieldNames, limit: fieldNames.count) {
            guard let new = RenamedWords.newWord(for: name, among: fieldNames) else { continue }
            throw .badBody("'\(name)' is now called '\(new)'")
        }
        guard let then = fields["then"] else {
            let unknown = fields.names(except: fieldNames).first
            let hint = unknown.map { NearestName.hint($0, in: fieldNames) } ?? ""
            throw APIError(.badRequest, APIError.missingField("rule").text + " (or point and then)" + hint)
        }
        guard let pointText = try fields.text("point") else { throw .missingField("point") }
        var rule = FaultRule(action: try action(then))
        let requestText = try fields.text("request") ?? "any"
        (rule.method, rule.path) = try parsed("request") { () throws(FaultExpression.ParseError) in
            try FaultExpression.request(requestText)
        }
        rule.point = try parsed("point") { () throws(FaultExpression.ParseError) in
            try FaultExpression.point(pointText)
        }
        if let nth = try fields.integer("nth") { rule.nth = Int(nth) }
        if fields["probability"] != nil {
            if fields["nth"] != nil { throw .badBody("a fault has either nth or probability") }
            rule.probability = try probability(fields)
            if rule.probability == 0 { throw .badBody("a fault with a probability of 0 never applies") }
            rule.times = 1...Int.max
        }
        if fields["times"]?.text?.hasSameBytes(as: "unlimited") == true {
            rule.times = 1...Int.max
        } else if let times = try fields.integer("times") {
            guard times >= 1 else { throw .badBody("times is less than 1") }
            rule.times = Int(times)...Int(times)
        }
        rule.bytes = try fields.integer("bytes")
        if let text = try fields.text("side") {
            let names = FaultSide.allCases.map(\.rawValue)
            guard let side = FaultSide(rawValue: text) else {
                throw .badBody("side must be \(names.joined(separator: ", "))\(NearestName.hint(text, in: names))")
            }
            rule.side = side
        }
        if let problem = rule.problem { throw .badBody(problem) }
        return rule
    }

    private static func probability(_ fields: JSONFields) throws(APIError) -> Double {
        guard case .text? = fields["probability"] else { return try fields.number("probability") ?? 1 }
        let text = try fields.text("probability") ?? ""
        return try parsed("probability") { () throws(FaultExpression.ParseError) in
            try FaultExpression.probability(text)
        }
    }

    private static func action(_ value: JSONValue) throws(APIError) -> FaultAction {
        if let text = value.text {
            guard text.utf8.count <= FaultExpression.bytesMax else {
                throw .badBody("then is longer than \(FaultExpression.bytesMax) bytes")
            }
            return try parsed("then") { () throws(FaultExpression.ParseError) in try FaultExpression.action(text) }
        }
        let fields = try JSONFields(value, "then")
        let names = actionFields.names
        guard names.count(where: { fields[$0] != nil }) == 1, fields.names(except: names).isEmpty else {
            let hint =
                fields.names(except: names, limit: names.count).lazy.compactMap { RenamedWords.hint($0, in: names) }
                .first ?? ""
            throw .badBody(
                "then must be a text, such as \"stall\", or an object with one of \(names.joined(separator: ", "))\(hint)"
            )
        }
        if let time = try fields.text("delay") {
            return try parsed("then.delay") { () throws(FaultExpression.ParseError) in
                try FaultExpression.action("delay \(time)")
            }
        }
        if let rate = try fields.integer("throttle") { return .throttle(bytesPerSecond: rate) }
        guard let reply = try fields.object("respond") else { throw .badBody("then.respond is not an object") }
        return .respond(try self.reply(reply))
    }

    private static func reply(_ fields: JSONFields) throws(APIError) -> FaultResponse {
        if let unknown = fields.names(except: replyFields.names).first {
            throw .badBody("then.respond has no field '\(RequestWarnings.printable(unknown))'")
        }
        guard let status = try fields.integer("status") else { throw .missingField("then.respond.status") }
        var reply = FaultResponse(status: Int(status))
        if let headers = fields["headers"] {
            guard case .object(let members) = headers else { throw .badBody("then.respond.headers is not an object") }
            for (name, value) in members.membersInSourceOrder {
                switch value {
                case .text(let text): reply.fields.append(.init(name, text))
                case .integer(let number): reply.fields.append(.init(name, "\(number)"))
                default: throw .badBody("then.respond.headers: '\(RequestWarnings.printable(name))' is not a string")
                }
            }
        }
        reply.body = Array((try fields.text("body", bytesMax: FaultResponse.bodyBytesMax) ?? "").utf8)
        return reply
    }

    /// The bytes of the rule's reply.
    var replyBytes: Int {
        if case .respond(let reply) = rule.action { reply.body.count } else { 0 }
    }

    /// A fault with its counts since the proxy was enabled, or since the fault was added if that is later.
    typealias Counted = (fault: StoredFault, status: FaultRuleStatus?)

    static let shape = JSONShape<Counted>(
        "Fault",
        [
            .required("name", { $0.fault.name }, .text),
            .required(
                "rule", { $0.fault.rule.text(bodyBytesMax: bodyBytesShownMax) }, .text,
                "The rule on one line. A body of a response is cut after \(bodyBytesShownMax) bytes."),
            .required(
                "matched", { $0.status?.matched ?? 0 }, .count, "Requests that match the method and the path."),
            .required(
                "applied", { $0.status?.applied ?? 0 }, .count, "Matching requests to which the rule has applied."),
            .required("fired", { $0.status?.fired ?? 0 }, .count, "Faults that have fired."),
        ])

    /// Returns the fault with its counts.
    func json(_ status: FaultRuleStatus?) -> String { Self.shape.json((self, status)) }
}
