internal import Foundation
internal import Wire

/// The `multipart/form-data` format (RFC 7578).
enum MultipartForm {
    /// Returns the fields except files, the last value of each name; `nil` if the body is malformed.
    static func fields(_ body: [UInt8], contentType: String) -> [ByteKey: String]? {
        guard let boundary = parameter("boundary", of: Array(contentType.utf8)), (1...70).contains(boundary.count)
        else {
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
            guard let line = lines.first(where: { isEqual($0.prefix(20), ignoringCaseOf: "content-disposition:") }),
                let name = parameter("name", of: Array(line)).flatMap({ String(validating: $0, as: UTF8.self) })
            else { return nil }
            if parameter("filename", of: Array(line)) != nil { continue }
            guard let value = String(validating: body[blank.upperBound..<end.lowerBound], as: UTF8.self) else {
                return nil
            }
            fields[ByteKey(name)] = value
        }
    }

    /// Returns a parameter of a header field's value, without its quotes.
    private static func parameter(_ name: StaticString, of field: [UInt8]) -> [UInt8]? {
        for part in field.split(separator: UInt8(ascii: ";")).dropFirst() {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1).map(trimmed)
            guard pair.count == 2, isEqual(pair[0], ignoringCaseOf: name) else { continue }
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

    /// Returns whether bytes equal a lower-case word, ignoring ASCII case.
    private static func isEqual(_ bytes: some Collection<UInt8>, ignoringCaseOf word: StaticString) -> Bool {
        word.withUTF8Buffer { word in
            bytes.count == word.count
                && zip(bytes, word).allSatisfy { (65...90).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
        }
    }
}
