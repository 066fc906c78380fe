internal import Determinism
public import Impairment
internal import LinkModel
internal import Wire

/// A fault rule on one line: `POST /api/notes/ nth 3 before-response stall`.
///
/// ```
/// METHOD|any [PATH] [nth N | probability P%] [times N|unlimited] POINT [bytes N] ACTION [client|server|both]
/// TLS [HOST] [nth N | probability P%] [times N|unlimited] HANDSHAKE_POINT [bytes N] ACTION [client|server|both]
/// TCP client|server ["TEXT" [after "TEXT"]] [nth N | probability P%] [times N|unlimited] STREAM_POINT [bytes N] ACTION [...]
/// ```
///
/// A rule that begins with `TLS` is about handshakes: HOST is compared with SNI and may contain `*`, HANDSHAKE_POINT is an
/// ``Impairment/HandshakePoint``, and ACTION is `reset`, `close`, `stall` or `delay TIME`. A rule that begins with `TCP` is
/// about the bytes of a connection, whatever its protocol: STREAM_POINT is an ``Impairment/StreamPoint``.
///
/// A path may contain `*`. POINT is a ``Impairment/FaultPoint`` or `any`. ACTION is `reset`, `close`, `stall`,
/// `delay TIME`, `throttle BYTES_PER_SECOND`, `portal` or `respond STATUS [NAME: VALUE ...] [body TEXT]`; for HTTP/2
/// also `reset CODE`, `reset connection`, `goaway`, `limit-streams N`, `ignore-pings`, `ping`, `block-window`,
/// `block-window connection`, `drop-trailers` or `truncate-headers`. A value of a header field ends before the next word
/// with a final colon or the word `body`, unless it stands in double quotes, in which `\"` is a quote and `\\` a
/// backslash. `body` takes the rest of the line as it is. Without `times` a rule applies once, with `probability` without
/// limit.
///
/// ``Impairment/FaultRule/description`` returns the same syntax.
public enum FaultExpression {
    /// The reason why an expression is rejected, with the position of the invalid word.
    public struct ParseError: Error, CustomStringConvertible {
        /// The beginning of the expression.
        public let expression: String
        /// The column of the word in characters, from 1.
        public let column: Int
        /// The error and the expected value.
        public let message: String

        public var description: String {
            column > expression.unicodeScalars.count + 1
                ? "\(message) (column \(column))"
                : "\(message)\n  \(expression)\n  \(String(repeating: " ", count: column - 1))^"
        }

        /// The error on one line.
        public var oneLine: String { "column \(column): \(message)" }
    }

    /// The greatest value of `nth` and `times`.
    private static let countMax = 1_000_000_000
    /// The greatest length of an expression: a response's body and as much again for the rest.
    public static let bytesMax = 2 * FaultResponse.bodyBytesMax

    static let clauses = ["nth", "probability", "times"]
    static let actions = [
        "reset", "close", "stall", "delay", "throttle", "respond", "portal", "goaway", "limit-streams", "ignore-pings",
        "ping", "block-window", "drop-trailers", "truncate-headers",
    ]
    private static let methods = ["any", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    package static var points: [String] { FaultPoint.allCases.map(\.rawValue) + ["any"] }

    /// Parses a rule.
    public static func parse(_ text: String) throws(ParseError) -> FaultRule {
        var reader = try Reader(text)
        var rule: FaultRule
        if reader.peek()?.keyword == handshakeWord {
            rule = try readHandshake(&reader)
        } else if reader.peek()?.keyword == streamWord {
            rule = try readStream(&reader)
        } else {
            let (method, path) = try readRequest(&reader)
            rule = FaultRule(method: method, path: path, action: .reset)
            try readClauses(&reader, &rule)
            try readPoint(&reader, &rule)
        }
        let word = try reader.next("an action: \(actions.joined(separator: ", "))")
        rule.action = try readAction(word, &reader)
        if let side = reader.peek() {
            guard let value = FaultSide(rawValue: side.keyword) else {
                throw reader.parseError(
                    side,
                    "unexpected '\(short(side.text))' after the action"
                        + NearestName.hint(side.text, in: FaultSide.allCases.map(\.rawValue)))
            }
            rule.side = value
            reader.skip()
            if let rest = reader.peek() {
                throw reader.parseError(rest, "unexpected '\(short(rest.text))' after the rule")
            }
        }
        if let problem = rule.problem { throw reader.parseError(word, problem) }
        return rule
    }

    /// Parses the request of a rule: `POST /api/notes/*`, `PUT` or `any`.
    public static func request(_ text: String) throws(ParseError) -> (method: String?, path: String?) {
        var reader = try Reader(text)
        let request = try readRequest(&reader)
        try reader.expectEnd()
        return request
    }

    /// Parses an action: `delay 5s`.
    public static func action(_ text: String) throws(ParseError) -> FaultAction {
        var reader = try Reader(text)
        let action = try readAction(try reader.next("an action: \(actions.joined(separator: ", "))"), &reader)
        try reader.expectEnd()
        return action
    }

    /// Parses a probability: `5%`.
    public static func probability(_ text: String) throws(ParseError) -> Double {
        var reader = try Reader(text)
        let probability = try readProbability(&reader)
        try reader.expectEnd()
        return probability
    }

    /// Parses a point. Returns `nil` for `any`.
    public static func point(_ text: String) throws(ParseError) -> FaultPoint? {
        var reader = try Reader(text)
        let word = try reader.next("a point: \(points.joined(separator: ", "))")
        guard points.contains(word.keyword) else { throw unknownPoint(word, reader) }
        try reader.expectEnd()
        return FaultPoint(rawValue: word.keyword)
    }

    // MARK: Parts

    private static func readRequest(_ reader: inout Reader) throws(ParseError) -> (method: String?, path: String?) {
        let method = try reader.next("a method such as POST, or any")
        let isAny = method.keyword == "any" || method.keyword == "*"
        guard isAny || method.text.utf8.allSatisfy({ (0x41...0x5A).contains($0) || $0 == 0x2D || $0 == 0x5F }) else {
            throw reader.parseError(
                method,
                "a rule begins with a method in capitals or 'any', not '\(short(method.text))'"
                    + NearestName.hint(method.text, in: methods))
        }
        var path: String?
        if let word = reader.peek(), let first = word.text.utf8.first {
            let isPath = first == UInt8(ascii: "/") || first == UInt8(ascii: "*")
            if word.text.utf8.contains(UInt8(ascii: "?"))
                && (isPath || word.text.utf8.firstRange(of: "://".utf8) != nil)
            {
                throw reader.parseError(word, "paths are compared without the query; remove '?' and what follows it")
            }
            if word.text.utf8.firstRange(of: "://".utf8) != nil {
                throw reader.parseError(word, "give the path only, without scheme and host, such as /api/*")
            }
            if isPath {
                path = word.keyword == "*" ? nil : word.text
                reader.skip()
            }
        }
        return (isAny ? nil : method.text, path)
    }

    /// The first word of a rule about handshakes of TLS.
    private static let handshakeWord = "TLS"

    /// Reads a rule about handshakes up to its point.
    private static func readHandshake(_ reader: inout Reader) throws(ParseError) -> FaultRule {
        reader.skip()
        let points = HandshakePoint.allCases.map(\.rawValue)
        var host: String?
        if let word = reader.peek(), !clauses.contains(word.keyword), !points.contains(word.keyword) {
            let isHost = word.text.utf8.allSatisfy { byte in
                (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
                    || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "*")].contains(byte)
            }
            guard isHost, word.text.utf8.count <= 255 else {
                throw reader.parseError(
                    word, "after 'TLS' follows the name of a server (SNI), such as api.test or *.cdn.test, or a point")
            }
            host = word.keyword == "*" ? nil : word.text.lowercased()
            reader.skip()
        }
        var rule = FaultRule(handshake: .afterClientHello, serverName: host, action: .reset)
        try readClauses(&reader, &rule)
        let word = try reader.next("a point of TLS: \(points.joined(separator: ", "))")
        guard let point = HandshakePoint(rawValue: word.keyword) else {
            throw reader.parseError(
                word,
                "unknown point '\(short(word.text))' of TLS\(NearestName.hint(word.text, in: points)) (known: "
                    + "\(points.joined(separator: ", ")))")
        }
        rule.handshake = point
        if let bytes = reader.peek(), bytes.keyword == "bytes" {
            reader.skip()
            rule.bytes = Int64(try reader.integer(0...Int(Int32.max), "a number of bytes, such as 'bytes 1000'"))
        }
        return rule
    }

    static func readClauses(_ reader: inout Reader, _ rule: inout FaultRule) throws(ParseError) {
        var seen: Set<String> = []
        while let word = reader.peek(), clauses.contains(word.keyword) {
            reader.skip()
            if !seen.insert(word.keyword).inserted { throw reader.parseError(word, "'\(word.text)' is given twice") }
            if seen.isSuperset(of: ["nth", "probability"]) {
                throw reader.parseError(word, "a fault has either 'nth' or 'probability'")
            }
            switch word.keyword {
            case "nth": rule.nth = try reader.integer(1...countMax, "the number of a request, such as 'nth 3'")
            case "probability":
                rule.probability = try readProbability(&reader)
                if rule.probability == 0 {
                    throw reader.parseError(word, "a fault with a probability of 0 % never applies")
                }
            default:
                if reader.peek()?.keyword == "unlimited" {
                    reader.skip()
                    rule.times = 1...Int.max
                } else {
                    let count = try reader.integer(1...countMax, "a number of requests, such as 'times 2'")
                    rule.times = count...count
                }
            }
        }
        if seen.contains("probability") && !seen.contains("times") { rule.times = 1...Int.max }
    }

    private static func readProbability(_ reader: inout Reader) throws(ParseError) -> Double {
        let word = try reader.next("a percentage, such as '5%'")
        var text = word.keyword
        if reader.peek()?.keyword == "%" {
            text += "%"
            reader.skip()
        }
        do {
            return Double(try Quantity.probability(text).partsPerMillion) / 1e6
        } catch {
            throw reader.parseError(word, error.message)
        }
    }

    private static func readPoint(_ reader: inout Reader, _ rule: inout FaultRule) throws(ParseError) {
        let word = try reader.next("a point: \(points.joined(separator: ", "))")
        guard points.contains(word.keyword) else { throw unknownPoint(word, reader) }
        rule.point = FaultPoint(rawValue: word.keyword)
        guard let bytes = reader.peek(), bytes.keyword == "bytes" else { return }
        reader.skip()
        rule.bytes = Int64(try reader.integer(0...Int(Int32.max), "a number of bytes, such as 'bytes 1000'"))
        if rule.point != .midRequest && rule.point != .midResponse {
            throw reader.parseError(bytes, "'bytes' follows 'mid-request' or 'mid-response' only")
        }
    }

    private static func unknownPoint(_ word: Reader.Word, _ reader: Reader) -> ParseError {
        let known = points.joined(separator: ", ")
        if word.keyword == "stored" {
            return reader.parseError(word, "a proxy does not see the point 'stored'; expected one of \(known)")
        }
        if actions.contains(word.keyword) {
            return reader.parseError(word, "the point is missing before '\(word.text)'; expected one of \(known)")
        }
        return reader.parseError(
            word,
            "unknown word '\(short(word.text))'\(NearestName.hint(word.text, in: clauses + points)) "
                + "(expected \(clauses.joined(separator: ", ")) or a point: \(known))")
    }

    private static func readAction(_ word: Reader.Word, _ reader: inout Reader) throws(ParseError) -> FaultAction {
        switch word.keyword {
        case "reset": return readReset(&reader)
        case "close": return .close
        case "stall": return .stall
        case "portal": return .respond(.portal)
        case "goaway": return .goAway
        case "ignore-pings": return .ignorePings
        case "ping": return .ping
        case "drop-trailers": return .dropTrailers
        case "truncate-headers": return .truncateHeaders
        case "block-window":
            let isOfConnection = reader.peek()?.keyword == "connection"
            if isOfConnection { reader.skip() }
            return .blockWindow(connection: isOfConnection)
        case "limit-streams":
            return .limitStreams(
                try reader.integer(0...FaultAction.streamsMax, "a number of streams, such as 'limit-streams 1'"))
        case "delay":
            let time = try reader.next("a time after 'delay', such as 'delay 5s'")
            do {
                return .delay(try Quantity.time(time.keyword))
            } catch {
                throw reader.parseError(time, error.message)
            }
        case "throttle":
            return .throttle(
                bytesPerSecond: Int64(
                    try reader.integer(1...countMax, "a number of bytes per second, such as 'throttle 200'")))
        case "respond":
            var reply = FaultResponse(
                status: try reader.integer(FaultResponse.statuses, "a status from 200 to 599, such as 'respond 503'"))
            try readFields(&reader, &reply)
            if let problem = reply.problem { throw reader.parseError(word, problem) }
            return .respond(reply)
        default:
            if word.keyword == "kill" {
                throw reader.parseError(
                    word, "a proxy cannot kill a client; expected \(actions.joined(separator: ", "))")
            }
            throw reader.parseError(
                word,
                "unknown action '\(short(word.text))'\(NearestName.hint(word.text, in: actions)) "
                    + "(known: \(actions.joined(separator: ", ")))")
        }
    }

    /// Reads what `reset` resets: a stream with a code of HTTP/2, or the connection.
    private static func readReset(_ reader: inout Reader) -> FaultAction {
        guard let word = reader.peek() else { return .reset }
        let code = HTTP2ErrorCode(name: word.keyword)
        guard code != nil || word.keyword == "connection" else { return .reset }
        reader.skip()
        return code.map { .resetStream($0) } ?? .resetConnection
    }

    /// Reads the header fields and the body of a response.
    private static func readFields(_ reader: inout Reader, _ reply: inout FaultResponse) throws(ParseError) {
        while let word = reader.peek() {
            if word.keyword == "body" {
                reader.skip()
                reply.body = reader.rest(after: word)
                return
            }
            guard word.text.utf8.last == UInt8(ascii: ":"), word.text.utf8.count > 1 else {
                throw reader.parseError(
                    word,
                    "unexpected '\(short(word.text))' in the response; expected a header field such as "
                        + "'Retry-After: 120', or 'body' and the body")
            }
            reader.skip()
            reply.fields.append(.init(String(word.text.dropLast()), try reader.fieldValue(after: word)))
        }
    }

    static func short(_ text: String) -> String { String(text.unicodeScalars.prefix(40)) }

    // MARK: Words

    /// A reader of the words of an expression, with their positions.
    struct Reader {
        struct Word {
            let text: String
            /// The bytes of the word in the expression.
            let range: Range<Int>

            /// The word if it is short, otherwise nothing. The comparison of long texts may take minutes.
            var keyword: String { range.count <= 64 ? text : "" }
        }

        let bytes: [UInt8]
        var position = 0

        init(_ text: String) throws(ParseError) {
            bytes = Array(text.utf8.prefix(FaultExpression.bytesMax + 1))
            guard bytes.count <= FaultExpression.bytesMax else {
                throw ParseError(
                    expression: "", column: 1, message: "the rule is longer than \(FaultExpression.bytesMax) bytes")
            }
        }

        private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

        /// Returns the next word without consuming it.
        func peek() -> Word? {
            guard let start = bytes[position...].firstIndex(where: { !Self.isSpace($0) }) else { return nil }
            let end = bytes[start...].firstIndex(where: Self.isSpace) ?? bytes.count
            return Word(text: String(decoding: bytes[start..<end], as: UTF8.self), range: start..<end)
        }

        mutating func skip() {
            if let word = peek() { position = word.range.upperBound }
        }

        mutating func next(_ expected: String) throws(ParseError) -> Word {
            guard let word = peek() else {
                let end = bytes.lastIndex { !Self.isSpace($0) }.map { $0 + 1 } ?? 0
                throw parseError(at: end, "the rule ends early; expected \(expected)")
            }
            skip()
            return word
        }

        mutating func integer(_ range: ClosedRange<Int>, _ expected: String) throws(ParseError) -> Int {
            let word = try next(expected)
            guard let value = Int(word.text), word.text.utf8.first.map({ (0x30...0x39).contains($0) }) == true else {
                throw parseError(word, "'\(FaultExpression.short(word.text))' must be \(expected)")
            }
            guard range.contains(value) else {
                throw parseError(
                    word,
                    "'\(FaultExpression.short(word.text))' must be from \(range.lowerBound) to "
                        + "\(range.upperBound)")
            }
            return value
        }

        func expectEnd() throws(ParseError) {
            if let word = peek() { throw parseError(word, "unexpected '\(FaultExpression.short(word.text))'") }
        }

        /// Returns the bytes after a word and one space, and consumes everything.
        mutating func rest(after word: Word) -> [UInt8] {
            position = bytes.count
            return Array(bytes[min(word.range.upperBound + 1, bytes.count)...])
        }

        /// Reads the value of a header field.
        mutating func fieldValue(after name: Word) throws(ParseError) -> String {
            guard let first = peek() else {
                throw parseError(name, "the header field '\(FaultExpression.short(name.text))' has no value")
            }
            if first.text.utf8.first == UInt8(ascii: "\"") { return try quoted(from: first) }
            var end: Int?
            while let word = peek(), word.keyword != "body", word.text.utf8.last != UInt8(ascii: ":") {
                end = word.range.upperBound
                skip()
            }
            guard let end else {
                throw parseError(name, "the header field '\(FaultExpression.short(name.text))' has no value")
            }
            return String(decoding: bytes[first.range.lowerBound..<end], as: UTF8.self)
        }

        private mutating func quoted(from word: Word) throws(ParseError) -> String {
            var value: [UInt8] = []
            var index = word.range.lowerBound + 1
            while index < bytes.count {
                switch bytes[index] {
                case UInt8(ascii: "\""):
                    position = index + 1
                    return String(decoding: value, as: UTF8.self)
                case UInt8(ascii: "\\") where index + 1 < bytes.count:
                    value.append(bytes[index + 1])
                    index += 2
                default:
                    value.append(bytes[index])
                    index += 1
                }
            }
            throw parseError(word, "the quoted value has no end; add '\"'")
        }

        func parseError(_ word: Word, _ message: String) -> ParseError {
            parseError(at: word.range.lowerBound, message)
        }

        private func parseError(at offset: Int, _ message: String) -> ParseError {
            ParseError(
                expression: String(String(decoding: bytes.prefix(4000), as: UTF8.self).unicodeScalars.prefix(1000)),
                column: String(decoding: bytes[..<offset], as: UTF8.self).unicodeScalars.count + 1, message: message)
        }
    }
}
