internal import Determinism
internal import Foundation
internal import HTTPTypes
internal import JSON

/// A parsed request to the notes API.
struct APIRequest {
    enum Resource: Hashable {
        case root, notes, index, note(String), pin(String), tokens, refresh, page, login, logout, document, health,
            testHooks, unknown
        /// The attachments of a note.
        case attachments(String)
        /// An attachment of a note, by its percent-encoded name.
        case attachment(String, ByteKey)
    }

    let http: HTTPRequest
    let body: [UInt8]
    /// The path without the query.
    let path: String
    let query: String
    let resource: Resource
    /// The authenticated user; `nil` before authentication.
    var user: String?

    init(_ http: HTTPRequest, body: [UInt8]) {
        self.http = http
        self.body = body
        var target = (http.path ?? "/")[...]
        // The absolute form of a request target (RFC 9112, 3.2.2).
        if target.hasPrefix("http://") {
            let rest = target.dropFirst(7)
            target = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/"
        }
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts.first ?? "/")
        query = parts.count > 1 ? String(parts[1]) : ""
        resource = path.utf8.count <= APIRequest.pathBytesMax ? APIRequest.resource(path) : .unknown
    }

    /// The longest path that can name a resource, in bytes.
    static let pathBytesMax = 4096

    var method: HTTPRequest.Method { http.method }

    /// The value of `Idempotency-Key`.
    var idempotencyKey: String? { http.headerFields[.idempotencyKey] }

    /// Whether the method is safe (RFC 9110, 9.2.1).
    var isSafe: Bool { [.get, .head, .options, .trace].contains(method) }

    /// Whether the path has its final slash, or needs none.
    var hasSlash: Bool {
        if case .attachment = resource { return true }
        return path.hasSuffix("/") || [.document, .health, .testHooks].contains(resource)
    }

    private static func resource(_ path: String) -> Resource {
        if path == "/openapi.json" { return .document }
        if path == "/levers" || path.hasPrefix("/levers/") { return .testHooks }
        // Percent-encoding does not change which resource a path names (RFC 3986, 6.2.2.2).
        var words = path.split(separator: "/", omittingEmptySubsequences: false).map {
            $0.contains("%") ? $0.removingPercentEncoding ?? String($0) : String($0)
        }[...]
        guard words.first == "" else { return .unknown }
        words = words.dropFirst()
        if words.count == 5, words.prefix(2) == ["api", "notes"], words.dropFirst(3).first == "attachments",
            let uuid = words.dropFirst(2).first, isName(uuid), let name = path.utf8.split(separator: slash).last,
            path.utf8.last != slash
        {
            // The name is a sequence of bytes; `removingPercentEncoding` would reject some of them.
            return .attachment(uuid, ByteKey(String(Substring(name))))
        }
        if words.last == "" {
            words = words.dropLast()
        } else if words.last?.hasPrefix(".") == true {
            // A format suffix of the original's framework; no format has one.
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
        guard let name = rest.first, isName(name) else { return .unknown }
        switch rest.count {
        case 1: return .note(name)
        case 2 where rest.last == "pin": return .pin(name)
        case 2 where rest.last == "attachments": return .attachments(name)
        default: return .unknown
        }
    }

    private static let slash = UInt8(ascii: "/")

    private static func isName(_ text: String) -> Bool { !text.isEmpty && !text.contains("/") }

    /// The `uuid` in the path.
    var uuid: String? {
        switch resource {
        case .note(let name), .pin(let name): return name
        default: return nil
        }
    }

    /// The digest by which database files of version 2 identify retries: a hash over the bytes of the request. It is
    /// accepted in addition to ``IdempotencyFingerprint``, so that operations in such a file keep their results.
    var digestOfBytes: UInt64 {
        var path = path.hasSuffix("/") ? path : path + "/"
        if let uuid { path = "/api/notes/\(uuid.lowercased())/" + (resource == .note(uuid) ? "" : "pin/") }
        let fields = http.headerFields
        let parts = [
            method.rawValue, path, query, fields[.ifMatch] ?? "", fields[.ifNoneMatch] ?? "",
            fields[.contentType] ?? "",
        ]
        return FNV1a.digest(Array(parts.joined(separator: "\n").utf8) + [0] + body)
    }

    /// The decoded query parameters; the value of a parameter without `=` is `nil`.
    var queryPairs: [(name: String, value: String?)] {
        query.utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            func decoded(_ text: Substring.UTF8View) -> String {
                FormURLEncoded.decoded(text) ?? String(Substring(text))
            }
            return (decoded(parts[0]), parts.count == 2 ? decoded(parts[1]) : nil)
        }
    }

    /// Returns the first value of a query parameter.
    func query(_ name: String) -> String? {
        queryPairs.first { $0.name.hasSameBytes(as: name) && $0.value != nil }?.value
    }

    /// The media type of the body without its parameters, in lower case.
    var mediaType: String? {
        http.headerFields[.contentType].map {
            String($0.prefix { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
        }
    }

    /// Throws 405 unless the method is among those allowed.
    func requireMethod(_ methods: [HTTPRequest.Method]) throws {
        if methods.contains(method) { return }
        var response = NotesService.Response.error(
            .methodNotAllowed, "Method '\(method.rawValue.prefix(20))' not allowed.", key: "detail")
        response[.allow] = methods.map(\.rawValue).joined(separator: ", ")
        throw HTTPProblem(response)
    }

    // MARK: Content negotiation

    enum Media { case json, html }

    /// Returns the offered media type that the client prefers (RFC 9110, 12.5.1); `nil` if it accepts none.
    func media(_ offered: [Media]) -> Media? {
        guard let field = http.headerFields[.accept] else { return offered.first }
        var best: (media: Media, weight: Double, specificity: Int)?
        for media in offered {
            let (weight, specificity) = APIRequest.weight(
                of: media == .json ? ("application", "json") : ("text", "html"), field)
            guard weight > 0 else { continue }
            if let best, (best.weight, best.specificity) >= (weight, specificity) { continue }
            best = (media, weight, specificity)
        }
        return best?.media
    }

    private static func weight(of type: (String, String), _ field: String) -> (Double, Int) {
        var found = (weight: 0.0, specificity: -1)
        for range in field.lowercased().split(separator: ",") {
            let parts = range.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            let names = (parts.first ?? "").split(separator: "/")
            guard names.count == 2 else { continue }
            let specificity: Int
            switch (names[0], names[1]) {
            case (type.0[...], type.1[...]): specificity = 2
            case (type.0[...], "*"): specificity = 1
            case ("*", "*"): specificity = 0
            default: continue
            }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            if specificity > found.specificity { found = (weight, specificity) }
        }
        return found
    }
}

/// The text form of UUIDs (RFC 9562).
enum UUIDText {
    /// Returns a UUID in lower case; `nil` if the text is not a UUID.
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
