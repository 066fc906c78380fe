/// The user, server and history that a store belongs to.
public struct SyncAccount: Hashable, Sendable {
    /// The user's name.
    public var user: String
    /// The server's address, HOST:PORT.
    public var server: String
    /// The server's identifier of the history of the user's records; `nil` until a response named one. It changes if the
    /// server's database is replaced or restored.
    public var history: String?

    /// Creates an account.
    public init(user: String, server: String, history: String? = nil) {
        self.user = user
        self.server = server
        self.history = history
    }
}

/// The account of the client differs from the one that its store belongs to. Nothing is sent or deleted until
/// ``SyncEngine/adopt(at:)``.
public struct AccountMismatch: Error, Hashable, Sendable, CustomStringConvertible {
    /// The account of the store.
    public let stored: SyncAccount
    /// The account of the client, with the history that the server named.
    public let found: SyncAccount

    /// Creates a mismatch.
    public init(stored: SyncAccount, found: SyncAccount) {
        self.stored = stored
        self.found = found
    }

    /// Whether the user is the same, so that the server or its history differs.
    var hasSameUser: Bool { stored.user.utf8.elementsEqual(found.user.utf8) }

    public var description: String {
        if !hasSameUser {
            return "the store belongs to the user '\(stored.user.prefix(60))' and not to '\(found.user.prefix(60))'"
        }
        guard stored.history != nil else {
            return "the store belongs to the server \(stored.server) and not to \(found.server)"
        }
        return "the store belongs to another history of the server than \(found.server) has: it is another server, or "
            + "its database was replaced or restored"
    }
}
