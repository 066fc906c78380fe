/// A failure of a look-up that a rule causes.
public enum DNSFailure: Hashable, Sendable, CaseIterable {
    /// The name does not exist.
    case nxdomain
    /// The name server fails.
    case servfail
    /// No name server responds.
    case timeout

    /// The answer of the name server.
    var answer: NameAnswer {
        switch self {
        case .nxdomain: .noSuchName
        case .servfail: .failure
        case .timeout: .nothing
        }
    }
}

extension HostRules {
    /// What applies to the connections of a rule.
    public enum Treatment: Hashable, Sendable, CustomStringConvertible {
        /// A link of its own with a profile or timeline, in place of the device's link.
        case conditions(String)
        /// No conditions.
        case direct
        /// The connection is refused.
        case refuse
        /// SYNs get no response.
        case block
        /// The look-up of the name fails.
        case dnsFailure(DNSFailure)

        /// The words of treatments; all others are names of profiles or timelines. The last word of a treatment is
        /// that of its description.
        static let keywords: [(name: String, treatment: Treatment)] = [
            ("direct", .direct), ("refuse", .refuse), ("block", .block), ("dns-failure", .dnsFailure(.nxdomain)),
            ("nxdomain", .dnsFailure(.nxdomain)), ("servfail", .dnsFailure(.servfail)),
            ("dns-timeout", .dnsFailure(.timeout)),
        ]

        /// The words of treatments without conditions of a profile.
        public static var words: [String] { keywords.map(\.name) }

        /// The words for treatments in responses of the API, without the synonyms that rules may use.
        public static var descriptions: [String] { keywords.filter { $0.treatment.description == $0.name }.map(\.name) }

        /// Reads a treatment; `nil` for an empty text.
        init?(parsing text: String) {
            guard text.utf8.contains(where: { $0 > 0x20 }) else { return nil }
            self = Self.keywords.first { $0.name == text }?.treatment ?? .conditions(text)
        }

        /// The answer to all look-ups of the destination; `nil` for that of the name servers.
        package var lookupAnswer: NameAnswer? {
            if case .dnsFailure(let failure) = self { failure.answer } else { nil }
        }

        public var description: String {
            if case .conditions(let name) = self { return name }
            return Self.keywords.last { $0.treatment == self }?.name ?? ""
        }
    }
}
