public import Client
package import ForwardProxy
public import HTTPSockets
public import Wire

/// Server, account, store and rules of a sync client.
public struct SyncClientConfiguration: Sendable {
    /// The proof of the user's identity that is sent with each request.
    public enum Credentials: Hashable, Sendable {
        /// A password (RFC 7617, `Basic`).
        case password(String)
        /// A token (RFC 6750, `Bearer`).
        case token(String)
        /// An access token that the client renews with its refresh token. The callback of the client's start gets the new
        /// tokens (``SyncEvent/refreshed(_:)``).
        case tokens(SyncTokens)
        /// No credentials.
        case none
    }

    /// The server's host name or address.
    public var host: String
    /// Returns whether the host name resolves at present; called before each connection. `false` simulates a DNS
    /// failure.
    public var isHostResolvable: @Sendable () -> Bool = { true }
    /// The server's port.
    public var port: Int
    /// The TLS of the connections; `nil` for none. ``init(url:trusting:user:credentials:storePath:)`` sets it for `https://`.
    public var tls: UpstreamTLS?
    /// The user name: with the server's address, the account that the store belongs to.
    public var user: String
    /// The credentials.
    public var credentials: Credentials
    /// The store's file; `nil` keeps the store in memory.
    public var storePath: String?
    /// The records of the server.
    public var resource: any SyncResource = NotesResource()
    /// Delays, limits and rules of the synchronisation.
    public var policy = SyncPolicy()
    /// The way in which conflicts are resolved; by default the user does it.
    public var conflicts = ConflictPolicy.ask
    /// The timeouts of exchanges and connections.
    public var timeouts = HTTPTimeouts()
    /// Changes the configuration of the engine before it starts: its decisions, for example.
    public var adapt: @Sendable (inout SyncEngine.Configuration) -> Void = { _ in }
    /// Called on the client's own thread with its activity; must not block.
    public var onActivity: (@Sendable (ClientActivity<StoreChange>) -> Void)?
    /// Called on the client's own thread after each commit of the store has been reported; if it returns `true`, the
    /// client ends at once, as ``SyncClient/kill()`` would end it. For tests that kill a client at an exact point.
    public var mustEnd: (@Sendable () -> Bool)?
    /// Called on the client's own thread before each commit of the store, which fails for the reason that it returns, as on
    /// a full disk. For tests.
    public var beforeCommit: (@Sendable () -> String?)?
    /// Random seed of identifiers and retry delays; random by default. Must differ at each start with the same store.
    public var seed: UInt64 = .random(in: 0...(.max))

    /// Creates a configuration for a user with a password.
    public init(host: String, port: Int, user: String, password: String, storePath: String?) {
        self.init(host: host, port: port, user: user, credentials: .password(password), storePath: storePath)
    }

    /// Creates a configuration.
    public init(host: String, port: Int, user: String, credentials: Credentials, storePath: String?) {
        self.host = host
        self.port = port
        self.user = user
        self.credentials = credentials
        self.storePath = storePath
    }

    /// Creates a configuration for the server of a URL: `https://api.example.com`, or `http://127.0.0.1:9000` without TLS.
    ///
    /// - Parameters:
    ///   - url: The URL of the server, without a path; `HOST:PORT` stands for `http://HOST:PORT`.
    ///   - certificates: With `https://`: the trusted authorities, by default those of the system, and the certificate of the
    ///     client.
    public init(
        url: String, trusting certificates: UpstreamCertificates? = nil, user: String, credentials: Credentials,
        storePath: String?
    ) throws(UpstreamTLSError) {
        let server: ServerAddress
        do throws(ServerAddress.ParseError) { server = try ServerAddress(url) } catch {
            throw UpstreamTLSError(part: .url, problem: error.description)
        }
        try self.init(
            server: server, trusting: certificates, user: user, credentials: credentials, storePath: storePath)
    }

    /// Creates a configuration for a server whose address has been parsed.
    package init(
        server: ServerAddress, trusting certificates: UpstreamCertificates? = nil, user: String,
        credentials: Credentials, storePath: String?
    ) throws(UpstreamTLSError) {
        guard server.isSecure || certificates == nil else {
            throw UpstreamTLSError(
                part: .authorities,
                problem: "a server without TLS has no certificate; remove 'trusting', or give the URL with https://")
        }
        self.init(
            host: server.destination.host, port: server.destination.port, user: user, credentials: credentials,
            storePath: storePath)
        if server.isSecure {
            tls = try UpstreamTLS(url: "https://\(server.destination)", certificates ?? UpstreamCertificates())
        }
    }

    /// The server's address, HOST:PORT, with brackets around an IPv6 address.
    public var address: String { (host.contains(":") ? "[\(host)]" : host) + ":\(port)" }

    /// The value of the `Host` field: without a port if it is that of HTTPS.
    var hostField: String { tls?.authority.description ?? address }
}
