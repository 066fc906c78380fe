internal import Foundation
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// A request taken apart.
struct APIRequest {
    enum Resource: Hashable {
        case root, notes, index, note(String), pin(String), tokens, refresh, page, login, logout, document, health,
            testHooks, unknown
    }

    let request: HTTPRequest
    let body: [UInt8]
    /// Without query.
    let path: String
    let query: String
    let resource: Resource
    /// Who asks, once that is known.
    var user: String?

    init(_ request: HTTPRequest, body: [UInt8]) {
        self.request = request
        self.body = body
        var whole = (request.path ?? "/")[...]
        // A target may be a whole URL (RFC 9112, 3.2.2).
        if whole.hasPrefix("http://") {
            let rest = whole.dropFirst(7)
            whole = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        let parts = whole.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts.first ?? "/")
        query = parts.count > 1 ? String(parts[1]) : ""
        resource = path.utf8.count <= APIRequest.pathBytesMax ? APIRequest.resource(path) : .unknown
    }

    /// Bytes of a path; there is nothing under a longer one.
    static let pathBytesMax = 4096

    var method: HTTPRequest.Method { request.method }

    /// The operation's name.
    var key: String? { request.headerFields[.idempotencyKey] }

    /// Whether it changes nothing (RFC 9110, 9.2.1).
    var isSafe: Bool { [.get, .head, .options, .trace].contains(method) }

    /// Whether the path has its final slash; one that never has counts as if.
    var hasSlash: Bool { path.hasSuffix("/") || [.document, .health, .testHooks].contains(resource) }

    private static func resource(_ path: String) -> Resource {
        if path == "/openapi.json" { return .document }
        if path == "/levers" || path.hasPrefix("/levers/") { return .testHooks }
        // A percent-encoded path is the same path (RFC 3986, 6.2.2.2).
        var words = path.split(separator: "/", omittingEmptySubsequences: false).map {
            $0.contains("%") ? $0.removingPercentEncoding ?? String($0) : String($0)
        }[...]
        guard words.first == "" else { return .unknown }
        words = words.dropFirst()
        if words.last == "" {
            words = words.dropLast()
        } else if words.last?.hasPrefix(".") == true {
            // A format suffix, of which there is none.
            return .unknown
        }
        switch Array(words) {
        case ["health"]: return .health
        case ["notes"]: return .page
        case ["accounts", "login"]: return .login
        case ["accounts", "logout"]: return .logout
        case ["api"]: return .root
        case ["api", "notes"]: return .notes
        case ["api", "notes-uuids"]: return .index
        case ["api", "tokens"]: return .tokens
        case ["api", "tokens", "refresh"]: return .refresh
        default: break
        }
        guard words.count >= 3, words.prefix(2) == ["api", "notes"] else { return .unknown }
        let rest = words.dropFirst(2)
        guard let name = rest.first, !name.isEmpty, !name.contains("/") else { return .unknown }
        switch rest.count {
        case 1: return .note(name)
        case 2 where rest.last == "pin": return .pin(name)
        default: return .unknown
        }
    }

    /// The note the path names.
    var uuid: String? {
        switch resource {
        case .note(let name), .pin(let name): return name
        default: return nil
        }
    }

    /// The note the body of a creation names.
    var bodyUUID: String? {
        guard method == .post, resource == .notes, case .text(let text)? = NoteFields(json: body)?.uuid,
            text.utf8.count <= NotesHTTP.uuidBytesMax
        else {
            return nil
        }
        return text.lowercased()
    }

    /// The digest by which a retry was recognised in files of version 2: its bytes. Equal bytes are an equal request, so it
    /// counts beside the fingerprint, and the operations of such a file keep their results.
    var digestOfBytes: UInt64 {
        var place = path.hasSuffix("/") ? path : path + "/"
        if let uuid { place = "/api/notes/\(uuid.lowercased())/" + (resource == .note(uuid) ? "" : "pin/") }
        let fields = request.headerFields
        let words = [
            method.rawValue, place, query, fields[.ifMatch] ?? "", fields[.ifNoneMatch] ?? "",
            fields[.contentType] ?? "",
        ]
        return FNV1a.digest(Array(words.joined(separator: "\n").utf8) + [0] + body)
    }

    /// The parameters of the query, decoded; the value of one without `=` is `nil`.
    var queryPairs: [(name: String, value: String?)] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            func plain(_ text: Substring.UTF8View) -> String { FormURLEncoded.plain(text) ?? String(Substring(text)) }
            return (plain(parts[0]), parts.count == 2 ? plain(parts[1]) : nil)
        }
    }

    /// A parameter of the query.
    func query(_ name: String) -> String? {
        queryPairs.first { $0.name.hasSameBytes(as: name) && $0.value != nil }?.value
    }

    /// The media type of the body without its parameters, in lower case.
    var mediaType: String? {
        request.headerFields[.contentType].map {
            String($0.prefix { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
        }
    }

    func allow(_ methods: [HTTPRequest.Method]) throws {
        if methods.contains(method) { return }
        var response = NotesService.Response.error(
            .methodNotAllowed, "Method '\(method.rawValue.prefix(20))' not allowed.", key: "detail")
        response[.allow] = methods.map(\.rawValue).joined(separator: ", ")
        throw HTTPProblem(response)
    }

    // MARK: Which form of answer

    enum Media { case json, html }

    /// What the client would rather have of what there is (RFC 9110, 12.5.1); `nil` if it wants none of it.
    func media(_ offered: [Media]) -> Media? {
        guard let field = request.headerFields[.accept] else { return offered.first }
        var best: (media: Media, weight: Double, precision: Int)?
        for media in offered {
            let (weight, precision) = APIRequest.weight(
                of: media == .json ? ("application", "json") : ("text", "html"), field)
            guard weight > 0 else { continue }
            if let best, (best.weight, best.precision) >= (weight, precision) { continue }
            best = (media, weight, precision)
        }
        return best?.media
    }

    private static func weight(of type: (String, String), _ field: String) -> (Double, Int) {
        var found = (weight: 0.0, precision: -1)
        for range in field.lowercased().split(separator: ",") {
            let parts = range.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            let names = (parts.first ?? "").split(separator: "/")
            guard names.count == 2 else { continue }
            let precision: Int
            switch (names[0], names[1]) {
            case (type.0[...], type.1[...]): precision = 2
            case (type.0[...], "*"): precision = 1
            case ("*", "*"): precision = 0
            default: continue
            }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            if precision > found.precision { found = (weight, precision) }
        }
        return found
    }
}

/// UUIDs in the form of RFC 9562.
enum UUIDText {
    /// In lower case; `nil` if it is none.
    static func normalised(_ text: String) -> String? {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return nil }
        for (index, byte) in bytes.enumerated() {
            if [8, 13, 18, 23].contains(index) {
                guard byte == UInt8(ascii: "-") else { return nil }
            } else {
                guard Character(UnicodeScalar(byte)).isHexDigit else { return nil }
            }
        }
        return text.lowercased()
    }
}
