extension SyncEngine {
    /// What determines an engine.
    public struct Configuration: Sendable {
        /// The records of the server.
        public var resource: any SyncResource
        /// The content of the store.
        public var state: StoredState
        /// The user and server; `nil` if nothing will be sent.
        public var account: SyncAccount?
        /// Delays, limits and rules.
        public var policy: SyncPolicy
        /// The decisions about records, changes and credentials.
        public var behavior = SyncBehavior()
        /// The access token and the refresh token of the user; `nil` for other credentials.
        public var tokens: SyncTokens?
        /// The random seed of identifiers and retry delays; must differ each time a client starts.
        public var seed: UInt64

        /// Creates a configuration.
        public init(
            resource: any SyncResource = NotesResource(), restoring state: StoredState = StoredState(),
            account: SyncAccount? = nil, policy: SyncPolicy = SyncPolicy(), tokens: SyncTokens? = nil, seed: UInt64
        ) {
            self.resource = resource
            self.state = state
            self.account = account
            self.policy = policy
            self.tokens = tokens
            self.seed = seed
        }
    }
}
