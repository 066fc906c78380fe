internal import GRDB
internal import HTTPTypes
internal import Wire

/// `/api/tokens/` and `/api/tokens/refresh/`: access tokens that expire and refresh tokens that renew them (RFC 6749,
/// 5.1 and 6; RFC 6750). A refresh token stays valid after use, so that a lost response does not end a client's
/// session.
extension NotesService {
    func handleTokens(_ request: APIRequest, _ user: String, hasPassword: Bool) throws -> Response {
        if request.method == .delete {
            try change { transaction in
                switch transaction {
                case .memory(let memory):
                    memory.removeTokens {
                        $0.owner.hasSameBytes(as: user) && $0.kind != TokenKind.session.rawValue
                    }
                case .sqlite(let database):
                    try database.execute(
                        sql: "DELETE FROM token WHERE owner = ? AND kind <> 'session'", arguments: [user])
                }
            }
            return Response(.noContent)
        }
        guard hasPassword else {
            throw HTTPProblem(
                .forbidden, "Tokens need a password (Basic), not a token or a session", key: "detail")
        }
        let (access, refresh) = try issueTokens(to: user)
        return tokens(.created, access: access, refresh: refresh)
    }

    /// Returns an access token and a refresh token of a user, as `POST /api/tokens/` would.
    public func issueTokens(to user: String) throws -> (access: String, refresh: String) {
        try change { database in
            try (
                makeToken(.access, of: user, seconds: limits.accessSeconds, database),
                makeToken(.refresh, of: user, seconds: limits.refreshSeconds, database)
            )
        }
    }

    func handleRefresh(_ request: APIRequest) throws -> Response {
        if request.method == .options { return options(request, [.post, .options]) }
        try request.requireMethod([.post, .options])
        guard case .text(let refresh)? = JSONText.parse(request.body)?.object?["refresh_token"] else {
            throw HTTPProblem(.badRequest, "invalid_request")
        }
        guard let token = try token(refresh, .refresh) else { throw HTTPProblem(.badRequest, "invalid_grant") }
        let access = try change {
            try makeToken(.access, of: token.owner, seconds: limits.accessSeconds, $0)
        }
        return tokens(.ok, access: access, refresh: refresh)
    }

    private func tokens(_ status: HTTPResponse.Status, access: String, refresh: String) -> Response {
        var response = Response.json(
            status,
            JSONText.object([
                ("access_token", JSONText.string(access)), ("token_type", JSONText.string("Bearer")),
                ("expires_in", "\(limits.accessSeconds)"), ("refresh_token", JSONText.string(refresh)),
            ]))
        response[.cacheControl] = "no-store"
        return response
    }
}
