internal import Foundation
internal import GRDB
internal import HTTPTypes
internal import NotesContract
internal import Wire

/// `/notes/`, the user's notes as a web page, with login and logout.
extension NotesService {
    func handleNotesPage(_ request: APIRequest, _ user: String) throws -> Response {
        let (head, tail) = HTML.page(
            title: "Notes",
            head: "<h1>Notes of \(HTML.escaped(user))</h1><form method=post action=/accounts/logout/>"
                + "<button>Log out</button></form><ul>", tail: "</ul>")
        var response = Response(.ok)
        let selection = StoredNote.Selection(owner: user, order: listOrder)
        response.body = try store.read { transaction in
            try body(of: selection, transaction, head: head, separator: "\n", tail: tail) { row, bytes in
                let note = StoredNote(row).note
                bytes.append(
                    "<li><h2>\(HTML.escaped(note.title ?? ""))</h2><time>\(note.date)</time>"
                        + "<p>\(HTML.escaped(note.text ?? ""))</p></li>")
            }
        }
        HTML.setHeaderFields(of: &response)
        return response
    }

    func redirectToLogin(_ request: APIRequest) -> Response {
        var response = Response(.found)
        response[.location] = "/accounts/login/?next=\(request.path)"
        return response
    }

    func handleLogin(_ request: APIRequest) throws -> Response {
        try request.requireMethod([.get, .head, .post])
        var message = ""
        if request.method == .post {
            guard let form = FormURLEncoded.fields(request.body) else {
                throw HTTPProblem(.badRequest, "Form parse error - not UTF-8, or truncated after a '%'", key: "detail")
            }
            if let user = user(form["username"] ?? "", password: form["password"] ?? "") {
                return try startSession(user, next: request.query("next") ?? "")
            }
            message = "<p role=alert>The name or the password is wrong.</p>"
        }
        let (head, tail) = HTML.page(title: "Log in", head: "", tail: "")
        let next = (request.query("next") ?? "").addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        var response = Response(
            message.isEmpty ? .ok : .forbidden,
            .text(
                head + message + "<form method=post action='/accounts/login/?next=\(next)'>"
                    + "<label>Name <input name=username autocomplete=username></label> "
                    + "<label>Password <input name=password type=password autocomplete=current-password></label> "
                    + "<button>Log in</button></form>" + tail))
        response[.cacheControl] = "no-store"
        HTML.setHeaderFields(of: &response)
        return response
    }

    private func startSession(_ user: String, next: String) throws -> Response {
        let csrf = makeSecret()
        let session = try change {
            try makeToken(.session, of: user, seconds: limits.refreshSeconds, csrf: csrf, $0)
        }
        var response = Response(.found)
        // The redirect must stay on this server.
        let isLocal =
            next.hasPrefix("/") && !next.hasPrefix("//")
            && next.unicodeScalars.allSatisfy { $0.value > 32 && $0.value < 127 && $0 != "\\" }
        response[.location] = isLocal ? next : "/notes/"
        response[.cacheControl] = "no-store"
        let life = "Path=/; SameSite=Lax; Max-Age=\(limits.refreshSeconds)"
        response.head.headerFields[values: .setCookie] = [
            "sessionid=\(session); HttpOnly; \(life)", "csrftoken=\(csrf); \(life)",
        ]
        return response
    }

    func handleLogout(_ request: APIRequest) throws -> Response {
        try request.requireMethod([.post])
        if let session = Cookies.value("sessionid", of: request.http) {
            let id = Secrets.tokenID(session)
            try change { transaction in
                switch transaction {
                case .memory(let memory): memory.removeToken(id: id)
                case .sqlite(let database):
                    try database.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
                }
            }
        }
        var response = Response(.found)
        response[.location] = "/accounts/login/"
        response.head.headerFields[values: .setCookie] = [
            "sessionid=; Path=/; Max-Age=0", "csrftoken=; Path=/; Max-Age=0",
        ]
        return response
    }

    /// Throws 403 for a cross-origin write from a browser. A page of another origin can send forms and plain text, to
    /// which the browser adds the user's cookie or password. It cannot add a bearer token.
    func rejectForeignOrigins(_ request: APIRequest) throws {
        let fields = request.http.headerFields
        if request.isSafe || fields.value(of: .authorization)?.prefix(7).lowercased() == "bearer " { return }
        let site = fields.value(of: .secFetchSite)
        if let origin = fields.value(of: .origin) {
            let authority = request.http.authority ?? ""
            if ["http://\(authority)", "https://\(authority)"].contains(where: { $0.hasSameBytes(as: origin) }) {
                return
            }
            throw HTTPProblem(.forbidden, "Writes from the web page \(origin.prefix(100)) are rejected", key: "detail")
        }
        // `none` is a navigation by the user.
        guard let site, !["same-origin", "none"].contains(where: { $0.hasSameBytes(as: site) }) else { return }
        throw HTTPProblem(.forbidden, "Writes from a web page of another origin are rejected", key: "detail")
    }
}
