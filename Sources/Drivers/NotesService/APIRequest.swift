internal import Determinism
internal import Foundation
internal import HTTPTypes
internal import Wire

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
        var target = (http.path ?? "/").utf8[...]
        // The absolute form of a request target (RFC 9112, 3.2.2).
        if target.starts(with: "http://".utf8) {
            let rest = target.dropFirst(7)
            target = rest.firstIndex(of: APIRequest.slash).map { rest[$0...] } ?? "/".utf8[...]
        }
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        path = String(Substring(target[..<mark]))
        query = String(Substring(target[mark...].dropFirst()))
        resource = path.utf8.count <= APIRequest.pathBytesMax ? APIRequest.resource(path) : .unknown
    }

    /// The longest path that can name a resource, in bytes.
    static let pathBytesMax = 4096

    var method: HTTPRequest.Method { http.method }

    /// The value of `Idempotency-Key`.
    var idempotencyKey: String? { http.headerFields.value(of: .idempotencyKey) }

    /// Whether the method is safe (RFC 9110, 9.2.1).
    var isSafe: Bool { [.get, .head, .options, .trace].contains(method) }

    /// Whether the path has its final slash, or needs none.
    var hasSlash: Bool {
        if case .attachment = resource { return true }
        return path.hasSuffix("/") || [.document, .health, .testHooks].contains(resource)
    }

    private static func resource(_ path: String) -> Resource {
        if let found = collectionResource(path) { return found }
        if path == "/openapi.json" { return .document }
        if path == "/test-hooks" || path.hasPrefix("/test-hooks/") { return .testHooks }
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

    /// Returns the resource of the index, the notes or a note of a client; `nil` if the path is none of these in plain
    /// characters with a final slash.
    private static func collectionResource(_ path: String) -> Resource? {
        let bytes = path.utf8
        guard bytes.starts(with: "/api/notes".utf8), bytes.last == slash else { return nil }
        let rest = bytes.dropFirst(10)
        if rest.count == 1 { return .notes }
        if rest.elementsEqual("-uuids/".utf8) { return .index }
        guard rest.first == slash else { return nil }
        let name = rest.dropFirst().dropLast()
        guard !name.isEmpty, name.allSatisfy(isPlain) else { return nil }
        return .note(String(Substring(name)))
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
            true
        default: false
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
        http.headerFields.value(of: .contentType).map {
            String($0.utf8.prefix { $0 != UInt8(ascii: ";") }.trimmingSpace).lowercased()
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
        guard let field = http.headerFields.value(of: .accept) else { return offered.first }
        if field.utf8.elementsEqual("application/json".utf8) { return offered.contains(.json) ? .json : nil }
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

    private static func weight(of type: (StaticString, StaticString), _ field: String) -> (Double, Int) {
        var found = (weight: 0.0, specificity: -1)
        func isSame(_ name: Substring.UTF8View, _ other: StaticString) -> Bool {
            guard name.count == other.utf8CodeUnitCount else { return false }
            var rest = other.utf8Start
            for byte in name {
                guard ((65...90).contains(byte) ? byte | 0x20 : byte) == rest.pointee else { return false }
                rest += 1
            }
            return true
        }
        for range in field.utf8.split(separator: UInt8(ascii: ",")) {
            let parts = range.split(separator: UInt8(ascii: ";"))
            guard let names = parts.first?.trimmingSpace.utf8.split(separator: slash), names.count == 2 else {
                continue
            }
            let specificity: Int
            if isSame(names[0], type.0), isSame(names[1], type.1) {
                specificity = 2
            } else if isSame(names[0], type.0), isSame(names[1], "*") {
                specificity = 1
            } else if isSame(names[0], "*"), isSame(names[1], "*") {
                specificity = 0
            } else {
                continue
            }
            let quality = parts.dropFirst().lazy.map(\.trimmingSpace)
                .first { isSame($0.utf8.prefix(2), "q=") }
            let weight = quality.flatMap { Double($0.utf8.dropFirst(2).text) } ?? 1
            if specificity > found.specificity { found = (weight, specificity) }
        }
        return found
    }
}

extension Substring.UTF8View {
    /// The text without surrounding spaces and tabs (RFC 9110, 5.6.3).
    var trimmingSpace: Substring {
        var rest = self
        while rest.first == 0x20 || rest.first == 0x09 { rest.removeFirst() }
        while rest.last == 0x20 || rest.last == 0x09 { rest.removeLast() }
        return Substring(rest)
    }

    /// The bytes as text.
    var text: Substring { Substring(self) }
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
