internal import ConfigFiles
internal import ForwardProxy
internal import HTTPTypes
internal import LinkModel
internal import Proxy
internal import Wire

/// The settings of a forward proxy in a request. A setting that is not given keeps its value.
struct ForwardRequest: Sendable {
    /// The fields of rules and maps.
    static let ruleFields: [JSONField] = [
        .optional("to", .array(of: entry, max: entriesMax)), .optional("map", mapsSchema),
    ]
    /// The names of the fields of the settings, without `forward` itself.
    static let fieldNames = ruleFields.names + ["allow", "user", "password"]
    /// The fields of a rule that is an object.
    static let entryFields: [JSONField] = [
        .required("pattern", patternSchema), .optional("action", .words(HostRules.Treatment.words)),
        .optional("link", LinkSetting.schema),
    ]
    /// The schema of the body of `PUT .../rules`.
    static let schema = JSONSchema.object(ruleFields).named("NewRules")

    private static let entry = JSONSchema.one(of: [
        .text.about("`PATTERN=CONDITIONS`; the conditions are a built-in profile or an action."), .object(entryFields),
    ])
    fileprivate static let patternSchema = JSONSchema.text.about(
        "`api.test`, `*.cdn.test`, `10.0.0.0/8` or `*`, each with `:PORT` or without.")
    fileprivate static let mapsSchema = JSONSchema.array(of: .text, max: entriesMax).about(
        "`HOST=ADDRESS`: the address that is connected in place of a host.")

    /// The maximum number of rules, of maps and of allowed networks.
    static let entriesMax = 1000
    /// The maximum number of bytes of the link of a rule.
    private static let linkBytesMax = 4096

    /// Whether the request asks for a forward proxy; `nil` if it says nothing.
    let isForward: Bool?
    private let rules: [HostRules.Rule]?
    private let maps: [HostRules.Map]?
    private let conditions: [String: Conditions]
    private let clientsAllowed: [HostPattern]?
    private let credentials: ProxyCredentials??

    /// - Parameter known: The conditions of the rules that the proxy has, whose names a request may use.
    init(_ fields: JSONFields, known: [String: Conditions] = [:]) throws(APIError) {
        isForward = try fields.bool("forward")
        var (checked, conditions) = (HostRules(), [String: Conditions]())
        rules = try Self.entries("to", of: fields) { (value) throws(APIError) in
            let (rule, named) = try Self.rule(value, known)
            try Self.parsed { () throws(HostRuleError) in try checked.add(rule) }
            if case .conditions(let name) = rule.treatment { conditions[name] = named }
            return rule
        }
        maps = try Self.entries("map", of: fields) { (value) throws(APIError) in
            let text = try Self.text(value)
            return try Self.parsed { () throws(HostRuleError) in
                let map = try HostRules.map(parsing: text)
                try checked.add(map)
                return map
            }
        }
        clientsAllowed = try Self.entries("allow", of: fields) { (value) throws(APIError) in
            let text = try Self.text(value)
            return try Self.parsed { () throws(HostRuleError) in try HostPattern(network: text) }
        }
        self.conditions = conditions
        credentials = try Self.credentials(fields)
    }

    // MARK: Parts of a request

    private static func entries<Entry>(
        _ name: String, of fields: JSONFields, _ read: (JSONValue) throws(APIError) -> Entry
    ) throws(APIError) -> [Entry]? {
        guard let values = try fields.array(name) else { return nil }
        guard values.count <= entriesMax else { throw .badBody("\(name) has more than \(entriesMax) entries") }
        var entries: [Entry] = []
        for (index, value) in values.enumerated() {
            do throws(APIError) {
                entries.append(try read(value))
            } catch {
                throw error.of("\(name), entry \(index + 1)")
            }
        }
        return entries
    }

    private static func text(_ value: JSONValue) throws(APIError) -> String {
        guard let text = value.text else { throw .badBody("expected a string") }
        guard text.utf8.count <= JSONFields.wordBytesMax else {
            throw .badBody("longer than \(JSONFields.wordBytesMax) bytes")
        }
        return text
    }

    private static func parsed<Value>(_ read: () throws(HostRuleError) -> Value) throws(APIError) -> Value {
        do {
            return try read()
        } catch {
            throw .badBody(RequestWarnings.printable("\(error)", bytesMax: 400))
        }
    }

    /// Reads a rule: `"PATTERN=CONDITIONS"`, or an object with a pattern and an action or a link.
    ///
    /// - Returns: The rule, and the conditions that it names.
    private static func rule(
        _ value: JSONValue, _ known: [String: Conditions]
    ) throws(APIError) -> (HostRules.Rule, Conditions?) {
        guard value.object != nil else {
            let text = try text(value)
            var rule = try parsed { () throws(HostRuleError) in try HostRules.rule(parsing: text) }
            guard case .conditions(let name) = rule.treatment else { return (rule, nil) }
            if let conditions = known[name] { return (rule, conditions) }
            let profile = try LinkSetting.profile(named: name)
            rule.treatment = .conditions(profile.id)
            return (rule, profile.conditions)
        }
        let fields = try JSONFields(value, "a rule")
        guard let pattern = try fields.text("pattern") else { throw .missingField("pattern") }
        switch (try fields.text("action"), try fields.object("link")) {
        case (let action?, nil):
            let rule = try parsed { () throws(HostRuleError) in try HostRules.rule(parsing: "\(pattern)=\(action)") }
            guard case .conditions = rule.treatment else { return (rule, nil) }
            let words = HostRules.Treatment.words
            throw .badBody(
                "the action '\(RequestWarnings.printable(action))' is none of \(words.joined(separator: ", "))"
                    + NearestName.hint(action, in: words))
        case (nil, let link?):
            let (name, conditions) = try self.link(link, known, json: (fields["link"] ?? .null).json)
            let pattern = try parsed { () throws(HostRuleError) in try HostPattern(parsing: pattern) }
            return (HostRules.Rule(pattern: pattern, treatment: .conditions(name)), conditions)
        default: throw .badBody("a rule has either an action or a link")
        }
    }

    /// Reads the link of a rule. The name of conditions without a profile is the link as JSON.
    private static func link(
        _ fields: JSONFields, _ known: [String: Conditions], json: String
    ) throws(APIError) -> (name: String, Conditions) {
        if fields["reset_after_ms"] != nil {
            throw .badBody("the link of a rule has no reset_after_ms; set it at the link of the proxy")
        }
        if let name = try fields.text("profile"), let conditions = known[name] { return (name, conditions) }
        switch try LinkSetting(fields) {
        case .constant(let conditions, let profile?): return (profile, conditions)
        case .constant(let conditions, nil):
            guard json.utf8.count <= linkBytesMax else {
                throw .badBody("the link of a rule is longer than \(linkBytesMax) bytes")
            }
            return (json, conditions)
        case .timeline: throw .badBody("the link of a rule is constant; give profile, netem or conditions")
        }
    }

    /// Reads the user and the password; an empty user removes both.
    private static func credentials(_ fields: JSONFields) throws(APIError) -> ProxyCredentials?? {
        switch (try fields.text("user"), try fields.text("password")) {
        case (nil, nil): return nil
        case (""?, nil), (""?, ""?): return .some(nil)
        case (let user?, let password?):
            guard let credentials = ProxyCredentials(user: user, password: password) else {
                throw .badBody(
                    "user and password must have 1 to \(ProxyCredentials.bytesMax) bytes, and the user no colon")
            }
            return credentials
        default: throw .badBody("give user and password, not one of them")
        }
    }

    // MARK: Uses

    /// Whether the request has rules or maps.
    var hasRules: Bool { rules != nil || maps != nil }

    /// Throws if the settings do not fit a proxy.
    ///
    /// - Parameters:
    ///   - isForward: Whether the proxy is a forward proxy, or shall be.
    ///   - upstream: The upstream in the request.
    func check(isForward: Bool, upstream: String?) throws(APIError) {
        if isForward {
            if self.isForward == false {
                throw APIError(.conflict, "a forward proxy gets no upstream; delete it and create another proxy")
            }
            guard let upstream, !upstream.isEmpty, !upstream.hasSameBytes(as: API.forwardUpstream) else { return }
            throw .badBody("give upstream or forward, not both; clients of a forward proxy name the server")
        }
        if self.isForward == true {
            throw APIError(.conflict, "this proxy has an upstream; delete it and create a forward proxy")
        }
        if hasRules || clientsAllowed != nil || credentials != nil {
            throw .badBody("\(Self.fieldNames.joined(separator: ", ")) need \"forward\": true")
        }
    }

    /// Changes the settings that the request gives.
    func apply(to settings: inout ForwardSettings) {
        if let rules {
            settings.rules.rules = rules
            settings.conditions = conditions
        }
        if let maps { settings.rules.maps = maps }
        if let clientsAllowed { settings.clientsAllowed = clientsAllowed }
        if let credentials { settings.credentials = credentials }
    }
}

extension ForwardSettings {
    /// Throws if every machine of the network could use a proxy with these settings.
    func checkAccess(on listen: Endpoint) throws(APIError) {
        guard isOpen(on: listen) else { return }
        throw APIError(
            .badRequest,
            "a forward proxy on \(listen) would let every machine of the network use it; give allow (such as "
                + "[\"192.168.1.0/24\"]) or user and password, or listen on 127.0.0.1")
    }

    /// Whether a rule impairs the connections of some hosts.
    var hasImpairment: Bool { rules.rules.contains { $0.treatment != .direct } }

    /// The rules and maps, in the form of a request.
    static let shape = JSONShape<ForwardSettings>(
        "Rules",
        [
            .required("to", \.rules.rules, .array(of: ruleForm)),
            .required("map", { $0.rules.maps.map(\.description) }, JSONForm(ForwardRequest.mapsSchema, maps.write)),
        ])

    private static let maps = JSONForm<[String]>.array(of: .text)

    private static let ruleForm = JSONForm<HostRules.Rule>(
        rule.schema.about("A rule has either an action or a link."), rule.json)

    private static let rule = JSONShape<HostRules.Rule>([
        .required("pattern", \.pattern.description, JSONForm(ForwardRequest.patternSchema, JSONText.string)),
        .optional(
            "action", { if case .conditions = $0.treatment { nil } else { $0.treatment.description } },
            .words(HostRules.Treatment.descriptions)),
        .optional("link", link, .json(.object)),
    ])

    /// Returns the link of a rule as JSON: its name, unless it is the profile's, is its JSON.
    @Sendable private static func link(_ rule: HostRules.Rule) -> String? {
        guard case .conditions(let name) = rule.treatment else { return nil }
        let isLink = JSONText.parse(Array(name.utf8))?.object != nil
        return isLink ? name : JSONText.object([("profile", JSONText.string(name))])
    }
}
