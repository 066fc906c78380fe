internal import Foundation
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// The three forms in which a client may send a note.
extension Call {
    /// The fields of the body.
    func fields(mergePatchToo: Bool) throws -> NoteRequest {
        let type = request.headerFields[.contentType]
        if body.isEmpty { return NoteRequest(form: [:]) }
        switch mediaType {
        case nil, "application/json": return try jsonFields()
        case "application/merge-patch+json"? where mergePatchToo && method == .patch: return try jsonFields()
        case "application/x-www-form-urlencoded"?:
            guard let form = FormText.fields(body) else {
                throw Refusal(.badRequest, "Form parse error - it is not UTF-8, or ends within a '%'", key: "detail")
            }
            return NoteRequest(form: form)
        case "multipart/form-data"?:
            guard let form = Multipart.fields(body, type: type ?? "") else {
                throw Refusal(.badRequest, "Multipart form parse error - it is not whole, or not UTF-8", key: "detail")
            }
            return NoteRequest(form: form)
        case let name?:
            throw Refusal(
                .unsupportedMediaType, "Unsupported media type '\(name.prefix(60))' in request.", key: "detail")
        }
    }

    private func jsonFields() throws -> NoteRequest {
        guard let value = JSONText.parse(body) else {
            throw Refusal(.badRequest, "JSON parse error - it is not JSON in UTF-8", key: "detail")
        }
        guard let fields = NoteRequest(value) else {
            throw Refusal(fields: ["non_field_errors": "Expected an object with the note's fields."])
        }
        return fields
    }
}

/// `application/x-www-form-urlencoded`.
enum FormText {
    /// The fields; the last of a name counts. `nil` if it cannot be read.
    static func fields(_ body: [UInt8]) -> [String: String]? {
        var fields: [String: String] = [:]
        for pair in body.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = String(validating: parts[0], as: UTF8.self).flatMap({ plain($0[...]) }),
                let value = String(validating: parts.count > 1 ? parts[1] : [], as: UTF8.self)
                    .flatMap({ plain($0[...]) })
            else { return nil }
            fields[name] = value
        }
        return fields
    }

    /// A text without its escapes; `nil` if they are not whole, or not UTF-8.
    static func plain(_ text: Substring) -> String? {
        text.replacingOccurrences(of: "+", with: " ").removingPercentEncoding
    }
}

/// `multipart/form-data` (RFC 7578).
enum Multipart {
    /// The fields that are not files; the last of a name counts. `nil` if it cannot be read.
    static func fields(_ body: [UInt8], type: String) -> [String: String]? {
        guard let boundary = parameter("boundary", of: type), (1...70).contains(boundary.utf8.count) else { return nil }
        let body = Data(body)
        let delimiter = Data("--\(boundary)".utf8)
        guard var position = body.range(of: delimiter, in: body.startIndex..<body.endIndex)?.upperBound else {
            return nil
        }
        var fields: [String: String] = [:]
        while true {
            let rest = body[position...]
            if rest.starts(with: Data("--".utf8)) { return fields }
            guard rest.starts(with: Data("\r\n".utf8)),
                let end = body.range(of: Data("\r\n".utf8) + delimiter, in: position..<body.endIndex),
                let blank = body.range(of: Data("\r\n\r\n".utf8), in: position..<end.lowerBound),
                let head = String(data: body[position..<blank.lowerBound], encoding: .utf8)
            else { return nil }
            position = end.upperBound
            let lines = head.split(whereSeparator: \.isNewline)
            guard let line = lines.first(where: { $0.lowercased().hasPrefix("content-disposition:") }),
                let name = parameter("name", of: String(line))
            else { return nil }
            if parameter("filename", of: String(line)) != nil { continue }
            guard let value = String(data: body[blank.upperBound..<end.lowerBound], encoding: .utf8) else { return nil }
            fields[name] = value
        }
    }

    /// A parameter of a header field's value, in quotes or not.
    private static func parameter(_ name: String, of text: String) -> String? {
        for part in text.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard pair.count == 2, pair[0].lowercased() == name else { continue }
            return pair[1].hasPrefix("\"") && pair[1].hasSuffix("\"") && pair[1].count >= 2
                ? String(pair[1].dropFirst().dropLast()) : pair[1]
        }
        return nil
    }
}
