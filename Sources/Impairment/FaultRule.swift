/// The action of a fault.
public enum FaultAction: Hashable, Sendable {
    /// Abort the connection: the server's RST reaches the client.
    case abort
    /// Send nothing more to the client, and keep the connection open.
    case mute
}

/// A fault at the point `committed`: the server has responded, and nothing of the response reaches the client.
public struct FaultRule: Hashable, Sendable {
    /// The method that the rule matches; `nil` means any.
    public var method: String?
    /// The subject that the rule matches; `nil` means any.
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
