public import HTTPWire

/// The action of a fault.
public enum FaultAction: Hashable, Sendable {
    /// Abort the connection: the server's RST reaches the client.
    case abort
    /// Send nothing to the client any more, and close nothing.
    case mute
}

/// A fault at the point `committed`: the server has responded, and nothing of the response reaches the client.
public struct FaultRule: Hashable, Sendable {
    /// The method that the rule matches; `nil` is any.
    public var method: String?
    /// The subject that the rule matches; `nil` is any.
    public var subject: String?
    /// The matching request that the rule applies to, from 1.
    public var nth: Int
    /// The action.
    public var action: FaultAction

    /// Creates a rule.
    public init(method: String? = nil, subject: String? = nil, nth: Int = 1, action: FaultAction) {
        self.method = method
        self.subject = subject
        self.nth = nth
        self.action = action
    }
}

/// The tracking of the exchanges of a link, and the faults injected into them.
public struct ExchangeTracking: Sendable {
    /// The faults.
    public var rules: [FaultRule]
    /// Returns the subject of a request from its head and the first ``bodySampleMax`` bytes of its body.
    public var subject: @Sendable (HTTPRequestHead, [UInt8]) -> String?

    /// Bytes of a request's body that are kept for ``subject``.
    public static let bodySampleMax = 64 << 10

    /// Creates a configuration.
    public init(
        rules: [FaultRule] = [], subject: @escaping @Sendable (HTTPRequestHead, [UInt8]) -> String? = { _, _ in nil }
    ) {
        self.rules = rules
        self.subject = subject
    }
}
