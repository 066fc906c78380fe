/// Rules by host (`PATTERN=CONDITIONS`) and maps of hosts (`NAME[:PORT]=HOST[:PORT]`). The most specific pattern wins.
public struct HostRules: Hashable, Sendable {
    /// A rule.
    public struct Rule: Hashable, Sendable, CustomStringConvertible {
        /// The destinations.
        public var pattern: HostPattern
        /// What applies to them.
        public var treatment: Treatment

        /// Creates a rule.
        public init(pattern: HostPattern, treatment: Treatment) {
            self.pattern = pattern
            self.treatment = treatment
        }

        /// The text of which the rule can be read.
        public var description: String { "\(pattern)=\(treatment)" }
    }

    /// A map: the destination that is connected in place of those that match.
    public struct Map: Hashable, Sendable, CustomStringConvertible {
        /// The destinations that the client names.
        public var pattern: HostPattern
        /// The host that is connected.
        public var host: String
        /// The port that is connected; `nil` for the port that the client names.
        public var port: Int?

        /// Creates a map. The host is in its normal form.
        public init(pattern: HostPattern, host: String, port: Int?) {
            self.pattern = pattern
            self.host = host
            self.port = port
        }

        /// The text of which the map can be read.
        public var description: String {
            let host = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
            return "\(pattern)=\(host)" + (port.map { ":\($0)" } ?? "")
        }
    }

    /// The rules, in the order in which they were added.
    public var rules: [Rule] = []
    /// The maps, in the order in which they were added.
    public var maps: [Map] = []

    /// Creates an empty set.
    public init() {}

    /// Creates a set from the texts of rules and maps. Throws if two of a kind have the same pattern, because the order
    /// of options would decide.
    public init(rules: [String], maps: [String] = []) throws(HostRuleError) {
        for text in rules { try add(Self.rule(parsing: text)) }
        for text in maps { try add(Self.map(parsing: text)) }
    }

    /// Adds a rule. Throws if there is a rule of the same pattern.
    public mutating func add(_ rule: Rule) throws(HostRuleError) {
        if let other = rules.first(where: { $0.pattern == rule.pattern }) {
            throw HostRuleError(
                text: rule.description, column: 1, problem: "a rule of this pattern exists: \(other); remove one")
        }
        rules.append(rule)
    }

    /// Adds a map. Throws if there is a map of the same pattern.
    public mutating func add(_ map: Map) throws(HostRuleError) {
        if let other = maps.first(where: { $0.pattern == map.pattern }) {
            throw HostRuleError(
                text: map.description, column: 1, problem: "a map of this pattern exists: \(other); remove one")
        }
        maps.append(map)
    }

    /// Returns the most specific rule of a destination as the client names it; `nil` if it has none.
    public func rule(for destination: Destination) -> Rule? {
        Self.mostSpecific(rules, \.pattern, for: destination)
    }

    /// Returns the destination to connect. The result is not mapped again.
    public func mapped(_ destination: Destination) -> Destination {
        guard let map = Self.mostSpecific(maps, \.pattern, for: destination) else { return destination }
        return Destination(host: map.host, port: map.port ?? destination.port)
    }

    private static func mostSpecific<Entry>(
        _ entries: [Entry], _ pattern: (Entry) -> HostPattern, for destination: Destination
    ) -> Entry? {
        entries.filter { pattern($0).matches(destination) }
            .max { pattern($0).specificity < pattern($1).specificity }
    }
}

// MARK: Texts

extension HostRules {
    /// Reads a rule, `PATTERN=CONDITIONS`. The name of a profile or timeline is not checked.
    public static func rule(parsing text: String) throws(HostRuleError) -> Rule {
        let (pattern, value, column) = try split(text, form: "PATTERN=CONDITIONS, for example api.test=3g")
        guard let treatment = Treatment(parsing: value) else {
            throw HostRuleError(
                text: text, column: column,
                problem: "the conditions are missing; write a profile or timeline, or one of "
                    + Treatment.words.joined(separator: ", "))
        }
        if case .dnsFailure = treatment, case .network = pattern.hosts {
            throw HostRuleError(
                text: text, column: column, problem: "an address is not looked up; write refuse or block")
        }
        return Rule(pattern: pattern, treatment: treatment)
    }

    /// Reads a map, `NAME[:PORT]=HOST[:PORT]`. NAME may be any pattern.
    public static func map(parsing text: String) throws(HostRuleError) -> Map {
        let (pattern, value, column) = try split(
            text, form: "NAME[:PORT]=HOST:PORT, for example api.test=127.0.0.1:8000")
        do throws(HostSyntaxError) {
            let (host, port) = try HostSyntax.split(Array(value.utf8)[...])
            guard let port else { return Map(pattern: pattern, host: host, port: nil) }
            return Map(pattern: pattern, host: host, port: try HostSyntax.port(port))
        } catch {
            throw HostRuleError(text: text, column: column, problem: error.problem)
        }
    }

    /// Returns the pattern before `=`, the text after it and the column of that text.
    private static func split(
        _ text: String, form: String
    ) throws(HostRuleError) -> (pattern: HostPattern, value: String, column: Int) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw HostRuleError(text: text, column: 1, problem: "'=' is missing; write \(form)")
        }
        do throws(HostRuleError) {
            let pattern = try HostPattern(parsing: String(text[..<equals]))
            let column = text.utf8.distance(from: text.startIndex, to: equals) + 2
            return (pattern, String(text[text.utf8.index(after: equals)...]), column)
        } catch {
            throw HostRuleError(text: text, column: error.column, problem: error.problem)
        }
    }
}

/// An error in a rule or a map of hosts.
public struct HostRuleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The rule, the map or the pattern.
    public let text: String
    /// The position in the text, in bytes from 1.
    public let column: Int
    /// What is wrong and what to write instead.
    public let problem: String

    public var description: String { "\(text.debugDescription), column \(column): \(problem)" }
}
