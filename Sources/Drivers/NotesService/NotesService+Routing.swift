internal import HTTPTypes
internal import Wire

/// Authentication and the choice of a resource.
extension NotesService {
    func route(_ request: inout APIRequest) throws -> Response {
        guard request.resource != .unknown && request.resource != .testHooks && isAvailable(request.resource) else {
            throw HTTPProblem.notFound
        }
        if !request.hasSlash, let response = try handleMissingSlash(request) { return response }
        try rejectForeignOrigins(request)
        switch request.resource {
        case .document: return try handleOpenAPI(request)
        case .health: return try handleHealth(request)
        case .login: return try handleLogin(request)
        case .page: try request.requireMethod([.get, .head])
        case .refresh: return try handleRefresh(request)
        default: break
        }
        let authentication = try authentication(of: request.http)
        let user: String
        switch authentication {
        case .session(let name, _): user = name
        // The web page needs a session.
        case _ where request.resource == .page: return redirectToLogin(request)
        case .user(let name, _): user = name
        case .anonymous, .rejected: throw unauthenticated(authentication)
        }
        request.user = user
        if let seconds = rateLimiter?.secondsToWait(user, at: monotonicNow()) {
            var response = Response.error(.tooManyRequests, "Too many requests; see Retry-After", key: "detail")
            response[.retryAfter] = String(seconds)
            throw HTTPProblem(response)
        }
        if case .session(_, let csrf) = authentication, !request.isSafe, request.resource != .logout {
            // Browsers add the cookie to requests of any page; only pages of this server can read the token.
            guard let given = request.http.headerFields[.csrfToken], given.matchesSecret(csrf) else {
                throw HTTPProblem(.forbidden, "CSRF Failed: CSRF token missing or incorrect.", key: "detail")
            }
        }
        if request.resource == .page { return try handleNotesPage(request, user) }
        if request.resource == .logout { return try handleLogout(request) }
        // An attachment has one representation, which is sent whatever the client accepts (RFC 9110, 12.4.1).
        let isAttachment = if case .attachment = request.resource { true } else { false }
        let offered: [APIRequest.Media] = contract.reading.servesHTML ? [.json, .html] : [.json]
        guard let media = isAttachment ? .json : request.media(offered) else {
            throw HTTPProblem(.notAcceptable, "Could not satisfy the request's Accept header", key: "detail")
        }
        let response = mapErrors { try handle(request, user, hasPassword: authentication.hasPassword) }
        return media == .html ? browsable(response) : response
    }

    private func handle(_ request: APIRequest, _ user: String, hasPassword: Bool) throws -> Response {
        let methods = methods(of: request.resource)
        if request.method == .options { return options(request, methods) }
        try request.requireMethod(methods)
        switch request.resource {
        case .notes: return try handleNotes(request, user)
        case .index: return try handleIndex(request, user)
        case .note(let uuid):
            return try handleNote(request, user, contract.idFormat == .uuid ? uuid.lowercased() : uuid)
        case .pin(let uuid): return try handlePin(request, user, uuid.lowercased())
        case .attachments(let uuid): return try handleAttachments(user, uuid.lowercased())
        case .attachment(let uuid, let name):
            return try handleAttachment(request, user, uuid.lowercased(), name)
        case .tokens: return try handleTokens(request, user, hasPassword: hasPassword)
        default: return handleRoot(request)
        }
    }

    private func isAvailable(_ resource: APIRequest.Resource) -> Bool {
        switch resource {
        case .tokens, .refresh: contract.features.contains(.tokens)
        case .pin: contract.features.contains(.pins)
        case .attachments, .attachment: contract.features.contains(.attachments)
        default: true
        }
    }

    private func methods(of resource: APIRequest.Resource) -> [HTTPRequest.Method] {
        switch resource {
        case .notes: [.get, .head, .post, .options]
        case .note: [.get, .head, .put, .patch, .delete, .options]
        case .pin: [.get, .head, .put, .delete, .options]
        case .attachment: [.get, .head, .put, .patch, .delete, .options]
        case .tokens: [.post, .delete, .options]
        default: [.get, .head, .options]
        }
    }

    /// Returns the redirect of a path without its final slash; `nil` if the contract serves such a path.
    private func handleMissingSlash(_ request: APIRequest) throws -> Response? {
        switch contract.missingSlash {
        case .notFound: throw HTTPProblem.notFound
        case .redirectIfSafe where !request.isSafe: return nil
        case .redirect, .redirectIfSafe:
            var response = Response(.movedPermanently)
            response[.location] = url(request.path + "/" + (request.query.isEmpty ? "" : "?" + request.query), request)
            return response
        }
    }

    /// Returns the absolute URL of a path, with the authority of the request.
    func url(_ path: String, _ request: APIRequest) -> String {
        guard let authority = request.http.authority, !authority.isEmpty else { return path }
        return "http://\(authority)\(path)"
    }
}
