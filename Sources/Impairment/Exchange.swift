public import HTTPWire

/// Names a request and its answer on one link.
public struct ExchangeID: Hashable, Comparable, Sendable {
    /// Counted from 0 as requests are read.
    public let number: Int

    public static func < (left: ExchangeID, right: ExchangeID) -> Bool { left.number < right.number }
}

/// What became true of an exchange.
public enum ExchangeEvent: Sendable {
    /// The request has been read whole from the client's socket, or as far as it had come when its response came first: its
    /// head, the first ``ExchangeWatch/bodySampleMax`` bytes of its body, and what it is about, if that could be told.
    case requested(ExchangeID, HTTPRequestHead, body: [UInt8], subject: String?)
    /// Its last byte has been handed to the server. Not told if the response had been handed to the client before.
    case arrived(ExchangeID)
    /// The server's answer has been read whole; nothing of its last part has travelled.
    case committed(ExchangeID, status: Int)
    /// The answer's last byte has been handed to the client.
    case answered(ExchangeID, status: Int)
    /// The connection is over before the answer was.
    case lost(ExchangeID)
    /// A fault has been done to it: the rule's place in the plan.
    case faulted(ExchangeID, rule: Int)
    /// The bytes are no HTTP; they pass untouched and unwatched.
    case notHTTP(String)
}

extension ExchangeEvent: CustomStringConvertible {
    /// In a few words, without anything that users wrote.
    public var description: String {
        switch self {
        case .requested(let id, let head, let body, let subject):
            "\(id.number) requested \(head.method) \(subject ?? "?") \(body.count) B"
        case .arrived(let id): "\(id.number) arrived"
        case .committed(let id, let status): "\(id.number) committed \(status)"
        case .answered(let id, let status): "\(id.number) answered \(status)"
        case .lost(let id): "\(id.number) lost"
        case .faulted(let id, let rule): "\(id.number) faulted by rule \(rule)"
        case .notHTTP(let reason): "not HTTP: \(reason)"
        }
    }
}

/// What is done to an exchange at its fault point.
public enum FaultAction: Hashable, Sendable {
    /// The connection is reset: by the server as the client sees it.
    case cut
    /// Nothing travels to the client any more, and nothing is closed.
    case mute
}

/// A fault at the point `committed`: the server has answered, and nothing of the answer travels.
public struct FaultRule: Hashable, Sendable {
    /// The method it is about; `nil` is any.
    public var method: String?
    /// The subject it is about; `nil` is any.
    public var subject: String?
    /// Which of the matching requests, from 1.
    public var nth: Int
    /// What is done.
    public var action: FaultAction

    /// Creates a rule.
    public init(method: String? = nil, subject: String? = nil, nth: Int = 1, action: FaultAction) {
        self.method = method
        self.subject = subject
        self.nth = nth
        self.action = action
    }
}

/// How the exchanges of a link are watched, and what is done to them.
public struct ExchangeWatch: Sendable {
    /// The faults.
    public var rules: [FaultRule]
    /// Tells what a request is about from its head and the first ``bodySampleMax`` bytes of its body.
    public var subject: @Sendable (HTTPRequestHead, [UInt8]) -> String?

    /// So much of a request's body is kept to tell what it is about.
    public static let bodySampleMax = 64 << 10

    /// Creates a watch.
    public init(
        rules: [FaultRule] = [], subject: @escaping @Sendable (HTTPRequestHead, [UInt8]) -> String? = { _, _ in nil }
    ) {
        self.rules = rules
        self.subject = subject
    }
}

/// The faults of a link, and how many requests each has seen.
struct FaultPlan {
    private let rules: [FaultRule]
    private var seen: [Int]

    init(_ rules: [FaultRule]) {
        self.rules = rules
        seen = rules.map { _ in 0 }
    }

    /// Counts a request; gives the first rule whose turn it is.
    mutating func match(method: String, subject: String?) -> (rule: Int, action: FaultAction)? {
        var found: (rule: Int, action: FaultAction)?
        for (index, rule) in rules.enumerated() {
            guard rule.method == nil || rule.method == method, rule.subject == nil || rule.subject == subject else {
                continue
            }
            seen[index] += 1
            if seen[index] == rule.nth, found == nil { found = (index, rule.action) }
        }
        return found
    }
}
