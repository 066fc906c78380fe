public import SyncEngine

/// Server, account, store and policy of a sync client.
public struct SyncClientConfiguration: Sendable {
    /// The server's host name or address.
    public var host: String
    /// Returns whether the host name resolves at present; called before each connection. `false` simulates a DNS
    /// failure.
    public var isHostResolvable: @Sendable () -> Bool = { true }
    /// The server's port.
    public var port: Int
    /// The user name.
    public var user: String
    /// The password.
    public var password: String
    /// The store's file; `nil` keeps the store in memory.
    public var storePath: String?
    /// Delays and limits of repeated attempts.
    public var policy = RetryPolicy()
    /// A deliberate defect, to prove that a scenario detects it.
    public var mutant: Mutant?
    /// Random seed of identifiers and retry delays; random by default. Must differ at each start with the same store.
    public var seed: UInt64 = .random(in: 0...(.max))

    /// Creates a configuration.
    public init(host: String, port: Int, user: String, password: String, storePath: String?) {
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.storePath = storePath
    }
}
