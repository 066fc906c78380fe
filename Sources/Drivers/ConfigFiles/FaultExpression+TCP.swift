internal import Impairment
internal import LinkModel
internal import Wire

/// Rules about the bytes of connections: `TCP server "250 " after "\r\n.\r\n" before-match reset`.
extension FaultExpression {
    /// The first word of such a rule.
    static let streamWord = "TCP"

    private static let streamPoints = StreamPoint.allCases.map(\.rawValue)
    private static let senders = ["client", "server"]

    /// Reads a rule about the bytes of connections up to its point.
    static func readStream(_ reader: inout Reader) throws(ParseError) -> FaultRule {
        reader.skip()
        let sender = try reader.next("the sender of the bytes: client or server")
        guard senders.contains(sender.keyword) else {
            throw reader.parseError(
                sender, "after 'TCP' follows the sender of the bytes, client or server, not '\(short(sender.text))'")
        }
        var match = StreamMatch(sender: sender.keyword == "client" ? .client : .server, point: .beforeMatch)
        if let word = reader.peek(), word.isQuoted {
            match.text = try reader.quotedBytes(from: word)
            if let after = reader.peek(), after.keyword == "after" {
                reader.skip()
                guard let word = reader.peek(), word.isQuoted else {
                    throw reader.parseError(after, "after 'after' follows a text in quotes, such as after \"DATA\"")
                }
                match.after = try reader.quotedBytes(from: word)
            }
        }
        var rule = FaultRule(stream: match, action: .reset)
        try readClauses(&reader, &rule)
        let known = streamPoints.joined(separator: ", ")
        let word = try reader.next("a text in quotes, or a point of TCP: \(known)")
        guard let point = StreamPoint(rawValue: word.keyword) else {
            throw reader.parseError(
                word,
                "unknown point '\(short(word.text))' of TCP\(NearestName.hint(word.text, in: streamPoints)) (known: "
                    + "\(known); a text stands in double quotes)")
        }
        rule.stream?.point = point
        if let bytes = reader.peek(), bytes.keyword == "bytes" {
            reader.skip()
            rule.bytes = Int64(try reader.integer(0...Int(Int32.max), "a number of bytes, such as 'bytes 1000'"))
        }
        return rule
    }
}

extension FaultExpression.Reader.Word {
    fileprivate var isQuoted: Bool { text.utf8.first == UInt8(ascii: "\"") }
}

extension FaultExpression.Reader {
    /// Reads a text in double quotes, in which `\r`, `\n`, `\t`, `\"`, `\\` and `\xHH` stand for one byte.
    fileprivate mutating func quotedBytes(from word: Word) throws(FaultExpression.ParseError) -> [UInt8] {
        var value: [UInt8] = []
        var index = word.range.lowerBound + 1
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if byte == UInt8(ascii: "\"") {
                position = index
                if value.isEmpty { throw parseError(word, "the text is empty; leave it out for 'mid-stream'") }
                return value
            }
            guard byte == UInt8(ascii: "\\"), index < bytes.count else {
                value.append(byte)
                continue
            }
            index += 1
            switch bytes[index - 1] {
            case UInt8(ascii: "r"): value.append(0x0D)
            case UInt8(ascii: "n"): value.append(0x0A)
            case UInt8(ascii: "t"): value.append(0x09)
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): value.append(bytes[index - 1])
            case UInt8(ascii: "x"):
                let digits = bytes[index..<min(index + 2, bytes.count)]
                guard digits.count == 2, digits.allSatisfy({ isHexDigit($0) }),
                    let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
                else { throw parseError(word, "after '\\x' follow two hexadecimal digits, such as \\x00") }
                value.append(code)
                index += 2
            default: throw parseError(word, #"unknown escape in the text (known: \r, \n, \t, \", \\, \xHH)"#)
            }
        }
        throw parseError(word, "the quoted text has no end; add '\"'")
    }

    private func isHexDigit(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || (65...70).contains(byte) || (97...102).contains(byte)
    }
}
