public import Determinism

/// The renewal of access tokens.
///
///     401 to a request with the current access token -> nothing else is sent -> refresh
///     new access token  -> the rejected request is repeated, and everything else follows
///     refresh rejected  -> pause: the user must sign in
///     401 to a new access token that the server has never accepted -> pause, unless it may have expired already
///
/// So each rejection leads to one refresh at most, and a request that was sent with an earlier access token to none.
/// Access tokens that expire before their first use, as the responses are slow, are renewed after growing delays.
extension SyncEngine {
    /// The state of the tokens.
    struct TokenState: Sendable {
        /// The tokens; `nil` if the client has other credentials.
        var tokens: SyncTokens?
        /// The number of credentials so far.
        var generation = 0
        /// Whether a response has accepted the access token. The one of the client's start may have been accepted.
        var isAccepted = true
        /// The earliest time at which the access token expires; `nil` if it is not known.
        var expiresAt: Instant?
        /// Whether another access token is needed. Nothing else is sent meanwhile.
        var isRefreshNeeded = false
        var failures = 0
        /// The time of the next attempt after a failure.
        var retryAt: Instant?
    }

    /// The access token and the refresh token; `nil` if the client has other credentials.
    public var tokens: SyncTokens? { token.tokens }

    /// The user has signed in: these tokens, or other credentials if there are none, replace the earlier ones.
    ///
    /// Exchanges in flight are cancelled: a rejection of the old credentials would pause the client again.
    public mutating func signedIn(_ tokens: SyncTokens?, at now: Instant) {
        token = TokenState(tokens: tokens, generation: token.generation + 1)
        credentialsChanged(at: now)
    }

    /// The server rejects the credentials of an exchange that was sent with those of a generation.
    mutating func credentialsRejected(status: Int, generation: Int) {
        guard token.tokens != nil else { return pause(because: "the server rejects the credentials (\(status))") }
        // The exchange is repeated with the current access token.
        if generation < token.generation || token.isRefreshNeeded { return }
        let mayHaveExpired = token.expiresAt.map { $0 <= now } ?? false
        let rejected: TokenRejection.Token =
            token.isAccepted ? .access : mayHaveExpired ? .expiredAccess : .newAccess
        switch behavior.tokenRejection(TokenRejection(token: rejected)) {
        case .refreshed: break
        case .refreshedLater: delayRefresh()
        case .paused: return pause(because: "the server rejects a new access token (\(status))")
        }
        token.isRefreshNeeded = true
    }

    private mutating func delayRefresh() {
        token.failures = min(token.failures + 1, 1 << 20)
        token.retryAt = now + policy.delay(afterFailures: token.failures, random: &jitter)
    }

    /// A response shows that the server accepts the access token.
    mutating func tokenAccepted() {
        token.isAccepted = true
        token.failures = 0
    }

    /// The time of the refresh; `nil` if none is needed, or one is in flight.
    var refreshAt: Instant? {
        guard token.isRefreshNeeded, isIdle(.small), isIdle(.bypass) else { return nil }
        return max(path.probeAt ?? .start, token.retryAt ?? .start)
    }

    mutating func handleRefresh(_ result: SyncResult, of exchange: Exchange) {
        switch result {
        case .tokens(let tokens):
            // The lifetime begins after the request was sent.
            let expiresAt = exchange.sentAt.flatMap { sentAt in tokens.lifetime.map { sentAt + $0 } }
            token = TokenState(
                tokens: tokens, generation: token.generation + 1, isAccepted: false, expiresAt: expiresAt,
                failures: token.isAccepted ? 0 : token.failures)
            // Attachments whose requests were rejected are transferred again.
            rounds &+= 1
            outputs.append(.report(.refreshed(tokens)))
        case .rejected(let status), .unauthorized(let status), .forbidden(let status):
            switch behavior.tokenRejection(TokenRejection(token: .refresh)) {
            case .refreshed: break
            case .refreshedLater: delayRefresh()
            case .paused:
                token.isRefreshNeeded = false
                pause(because: "the server rejects the refresh token (\(status)): sign in again")
            }
        default:
            delayRefresh()
        }
        recordContact()
    }
}
