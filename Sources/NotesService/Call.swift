internal import Foundation
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// A request taken apart.
struct Call {
    enum Resource: Hashable {
        case root, notes, index, note(String), unknown
    }

    let request: HTTPRequest
    let body: [UInt8]
    let path: String
    private let queryText: String
    var user: String?

    init(_ request: HTTPRequest, body: [UInt8]) {
        self.request = request
        self.body = body
        let whole = request.path ?? "/"
        let parts = whole.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts.first ?? "/")
        queryText = parts.count > 1 ? String(parts[1]) : ""
    }

    var method: HTTPRequest.Method { request.method }

    /// The operation's name.
    var key: String? { request.headerFields[.idempotencyKey] }

    /// With or without the final slash.
    var resource: Resource {
        let words = path.split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        switch words.count {
        case 1 where words[0] == "api": return .root
        case 2 where words == ["api", "notes"]: return .notes
        case 2 where words == ["api", "notes-uuids"]: return .index
        case 3 where words[0] == "api" && words[1] == "notes":
            return .note((words[2].removingPercentEncoding ?? words[2]).lowercased())
        default: return .unknown
        }
    }

    var uuid: String? {
        if case .note(let uuid) = resource { return uuid }
        return nil
    }

    var bodyUUID: String? {
        guard method == .post, case .text(let text)? = NoteRequest(json: body)?.uuid else { return nil }
        return text.lowercased()
    }

    /// What must be the same when an operation comes again.
    var digest: UInt64 { FNV.digest(Array("\(method.rawValue) \(path)?\(queryText)\n".utf8) + body) }

    func query(_ name: String) -> String? {
        for pair in queryText.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts[0] == name, parts.count == 2 {
                let plain = parts[1].replacingOccurrences(of: "+", with: " ")
                return plain.removingPercentEncoding ?? plain
            }
        }
        return nil
    }

    func allow(_ methods: [HTTPRequest.Method]) throws {
        if methods.contains(method) { return }
        let isAsking = method == .options
        var answer =
            isAsking
            ? NotesService.Answer(head: HTTPResponse(status: .noContent), body: "")
            : NotesService.error(
                .methodNotAllowed, "Method '\(method.rawValue.prefix(20))' not allowed.", key: "detail")
        answer.head.headerFields[.allow] = (methods + [.options]).map(\.rawValue).joined(separator: ", ")
        throw Refusal(answer)
    }

    func parsedBody() throws -> NoteRequest {
        if let type = request.headerFields[.contentType],
            type.split(separator: ";").first.map({ $0.trimmingCharacters(in: .whitespaces).lowercased() })
                != "application/json"
        {
            throw Refusal(.unsupportedMediaType, "Expected application/json.", key: "detail")
        }
        let isEmptyCreation = body.isEmpty && method == .post
        guard let parsed = NoteRequest(json: isEmptyCreation ? Array("{}".utf8) : body) else {
            throw Refusal(.badRequest, "Expected a JSON object.", key: "detail")
        }
        return parsed
    }
}

/// A request that is not done.
struct Refusal: Error {
    let answer: NotesService.Answer

    init(_ answer: NotesService.Answer) { self.answer = answer }

    init(_ status: HTTPResponse.Status, _ message: String, key: String = "error") {
        answer = NotesService.error(status, message, key: key)
    }

    /// What is wrong with each field.
    init(fields: [String: String]) {
        let members = fields.sorted { $0.key < $1.key }.map { ($0.key, JSONText.array([JSONText.string($0.value)])) }
        answer = NotesService.json(.badRequest, JSONText.object(members))
    }
}

extension NoteRequest.Field {
    /// The text, or null; what is missing stays as it is.
    func value(_ name: String, otherwise: String?) throws -> String? {
        switch self {
        case .missing: otherwise
        case .null: nil
        case .text(let text): text
        case .wrongType: throw Refusal(fields: [name: "Expected a text or null."])
        }
    }
}

/// Entity tags (RFC 9110, 8.8.3 and 13.1).
enum ETags {
    static func of(_ revision: Revision) -> String { "\"\(revision)\"" }

    /// Whether a list of tags names a revision; tags without quotes are taken too, as the original does.
    static func matches(_ list: String, _ revision: Revision?, weakCounts: Bool) -> Bool {
        guard let revision else { return false }
        return list.split(separator: ",").contains { part in
            var tag = part.trimmingCharacters(in: .whitespaces)
            if tag == "*" { return true }
            if tag.hasPrefix("W/") {
                if !weakCounts { return false }
                tag = String(tag.dropFirst(2))
            }
            if tag.hasPrefix("\""), tag.hasSuffix("\""), tag.count >= 2 { tag = String(tag.dropFirst().dropLast()) }
            return tag == revision.description
        }
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

/// FNV-1a, to tell bodies apart; nothing secret hangs on it.
enum FNV {
    static func digest(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash
    }
}

extension HTTPField.Name {
    static let marker = HTTPField.Name.known(NotesHTTP.markerName)
    static let idempotencyKey = HTTPField.Name.known(NotesHTTP.idempotencyKeyName)

    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("not a header's name") }
        return name
    }
}
