internal import Foundation
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// The three forms in which a client may send a note.
extension APIRequest {
    /// The fields of the body.
    func fields(mergePatchToo: Bool) throws -> NoteFields {
        let type = request.headerFields[.contentType]
        if body.isEmpty { return NoteFields(form: [:]) }
        switch mediaType {
        case nil, "application/json": return try jsonFields()
        case "application/merge-patch+json"? where mergePatchToo && method == .patch: return try jsonFields()
        case "application/x-www-form-urlencoded"?:
            guard let form = FormURLEncoded.fields(body) else {
                throw HTTPProblem(.badRequest, "Form parse error - it is not UTF-8, or ends within a '%'", key: "detail")
            }
            return NoteFields(form: form)
        case "multipart/form-data"?:
            guard let form = MultipartForm.fields(body, type: type ?? "") else {
                throw HTTPProblem(.badRequest, "Multipart form parse error - it is not whole, or not UTF-8", key: "detail")
            }
            return NoteFields(form: form)
        case let name?:
            throw HTTPProblem(
                .unsupportedMediaType, "Unsupported media type '\(name.prefix(60))' in request.", key: "detail")
        }
    }

    private func jsonFields() throws -> NoteFields {
        guard let value = JSONText.parse(body) else {
            throw HTTPProblem(.badRequest, "JSON parse error - it is not JSON in UTF-8", key: "detail")
        }
        guard let fields = NoteFields(value) else {
            throw HTTPProblem(fields: ["non_field_errors": "Expected an object with the note's fields."])
        }
        return fields
    }
}

/// `application/x-www-form-urlencoded`.
enum FormURLEncoded {
    /// The fields; the last of a name counts. `nil` if it cannot be read.
    static func fields(_ body: [UInt8]) -> [ByteKey: String]? {
        var fields: [ByteKey: String] = [:]
        for pair in body.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = plain(parts[0]), let value = plain(parts.count > 1 ? parts[1] : []) else { return nil }
            fields[ByteKey(name)] = value
        }
        return fields
    }

    /// A text without its escapes; `nil` if they are not whole, or not UTF-8.
    static func plain(_ text: some Collection<UInt8>) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(hexadecimal), let low = rest.next().flatMap(hexadecimal) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// `multipart/form-data` (RFC 7578).
enum MultipartForm {
    /// The fields that are not files; the last of a name counts. `nil` if it cannot be read.
    static func fields(_ body: [UInt8], type: String) -> [ByteKey: String]? {
        guard let boundary = parameter("boundary", of: Array(type.utf8)), (1...70).contains(boundary.count) else {
            return nil
        }
        let body = Data(body)
        let delimiter = Data(Array("--".utf8) + boundary)
        guard var position = body.range(of: delimiter, in: body.startIndex..<body.endIndex)?.upperBound else {
            return nil
        }
        var fields: [ByteKey: String] = [:]
        while true {
            let rest = body[position...]
            if rest.starts(with: Data("--".utf8)) { return fields }
            guard rest.starts(with: Data("\r\n".utf8)),
                let end = body.range(of: Data("\r\n".utf8) + delimiter, in: position..<body.endIndex),
                let blank = body.range(of: Data("\r\n\r\n".utf8), in: position..<end.lowerBound)
            else { return nil }
            position = end.upperBound
            let lines = body[rest.startIndex..<blank.lowerBound].split { $0 == 0x0D || $0 == 0x0A }
            guard let line = lines.first(where: { isLowercased($0.prefix(20), "content-disposition:") }),
                let name = parameter("name", of: Array(line)).flatMap({ String(validating: $0, as: UTF8.self) })
            else { return nil }
            if parameter("filename", of: Array(line)) != nil { continue }
            guard let value = String(validating: body[blank.upperBound..<end.lowerBound], as: UTF8.self) else {
                return nil
            }
            fields[ByteKey(name)] = value
        }
    }

    /// A parameter of a header field's value, in quotes or not.
    private static func parameter(_ name: StaticString, of field: [UInt8]) -> [UInt8]? {
        for part in field.split(separator: UInt8(ascii: ";")).dropFirst() {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1).map(trimmed)
            guard pair.count == 2, isLowercased(pair[0], name) else { continue }
            let quote = UInt8(ascii: "\"")
            let isQuoted = pair[1].count >= 2 && pair[1].first == quote && pair[1].last == quote
            return Array(isQuoted ? pair[1].dropFirst().dropLast() : pair[1])
        }
        return nil
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var rest = bytes.drop(while: isSpace)
        while rest.last.map(isSpace) == true { rest.removeLast() }
        return rest
    }

    /// Whether bytes are a word in small letters, in whatever case.
    private static func isLowercased(_ bytes: some Collection<UInt8>, _ word: StaticString) -> Bool {
        word.withUTF8Buffer { word in
            bytes.count == word.count
                && zip(bytes, word).allSatisfy { (65...90).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
        }
    }
}
