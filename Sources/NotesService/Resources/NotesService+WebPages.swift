internal import Foundation
internal import GRDB
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// `/notes/`, which people read in a browser, and `/accounts/login/` before it.
extension NotesService {
    func handleNotesPage(_ request: APIRequest, _ user: String) throws -> Response {
        let (head, tail) = HTML.page(
            title: "Notes",
            head: "<h1>Notes of \(HTML.escaped(user))</h1><form method=post action=/accounts/logout/>"
                + "<button>Log out</button></form><ul>", tail: "</ul>")
        var response = Response(.ok)
        let selection = StoredNote.Selection(owner: user, order: listOrder)
        response.body = try store.read { database in
            try body(of: selection, database, head: head, separator: "\n", tail: tail) { row, bytes in
                let note = StoredNote(row).note
                bytes.append(
                    "<li><h2>\(HTML.escaped(note.title ?? ""))</h2><time>\(note.date)</time>"
                        + "<p>\(HTML.escaped(note.text ?? ""))</p></li>")
            }
        }
        HTML.mark(&response)
        return response
    }

    func redirectToLogin(_ request: APIRequest) -> Response {
        var response = Response(.found)
        response[.location] = "/accounts/login/?next=\(request.path)"
        return response
    }

    func handleLogin(_ request: APIRequest) throws -> Response {
        try request.allow([.get, .head, .post])
        var message = ""
        if request.method == .post {
            guard let form = FormURLEncoded.fields(request.body) else {
                throw HTTPProblem(.badRequest, "Form parse error - it is not UTF-8, or ends within a '%'", key: "detail")
            }
            if let user = user(form["username"] ?? "", password: form["password"] ?? "") {
                return try startSession(user, next: request.query("next") ?? "")
            }
            message = "<p role=alert>The name and the password do not go together.</p>"
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
        HTML.mark(&response)
        return response
    }

    private func startSession(_ user: String, next: String) throws -> Response {
        let csrf = makeSecret()
        let session = try change {
            try makeToken(.session, of: user, seconds: limits.refreshSeconds, csrf: csrf, $0)
        }
        var response = Response(.found)
        // Only to a page of ours.
        let isOurs =
            next.hasPrefix("/") && !next.hasPrefix("//")
            && next.unicodeScalars.allSatisfy { $0.value > 32 && $0.value < 127 && $0 != "\\" }
        response[.location] = isOurs ? next : "/notes/"
        response[.cacheControl] = "no-store"
        let life = "Path=/; SameSite=Lax; Max-Age=\(limits.refreshSeconds)"
        response.head.headerFields[values: .setCookie] = [
            "sessionid=\(session); HttpOnly; \(life)", "csrftoken=\(csrf); \(life)",
        ]
        return response
    }

    func handleLogout(_ request: APIRequest) throws -> Response {
        try request.allow([.post])
        if let session = Cookies.value("sessionid", of: request.http) {
            try change { try $0.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [Secrets.tokenID(session)]) }
        }
        var response = Response(.found)
        response[.location] = "/accounts/login/"
        response.head.headerFields[values: .setCookie] = [
            "sessionid=; Path=/; Max-Age=0", "csrftoken=; Path=/; Max-Age=0",
        ]
        return response
    }

    /// Throws the refusal of a write that a page of another origin has a browser send. Such a page can send forms and plain
    /// text, and the browser adds the user's cookie or password; it cannot add a token.
    func rejectForeignOrigins(_ request: APIRequest) throws {
        let fields = request.http.headerFields
        if request.isSafe || fields[.authorization]?.prefix(7).lowercased() == "bearer " { return }
        let site = fields[.secFetchSite]
        if let origin = fields[.origin] {
            let authority = request.http.authority ?? ""
            if ["http://\(authority)", "https://\(authority)"].contains(where: { $0.hasSameBytes(as: origin) }) {
                return
            }
            throw HTTPProblem(.forbidden, "Calls from the web page \(origin.prefix(100)) are refused", key: "detail")
        }
        // A page's own origin, or the user themselves.
        guard let site, !["same-origin", "none"].contains(where: { $0.hasSameBytes(as: site) }) else { return }
        throw HTTPProblem(.forbidden, "Calls from a web page of another origin are refused", key: "detail")
    }
}

enum HTML {
    /// What stands before and after a page's content.
    static func page(title: String, head: String, tail: String) -> (String, String) {
        (
            "<!doctype html><html lang=en><meta charset=utf-8><title>\(title)</title>\(head)",
            "\(tail)</html>"
        )
    }

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
            .replacingOccurrences(of: "'", with: "&#39;")
    }

    /// Says that an answer is HTML, and that nothing in it may run or be framed.
    static func mark(_ response: inout NotesService.Response) {
        response[.contentType] = "text/html; charset=utf-8"
        response[.contentSecurityPolicy] = "default-src 'none'; frame-ancestors 'none'; form-action 'self'"
    }
}
