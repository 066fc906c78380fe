public import LinkModel

/// A point of a TCP stream at which a fault fires, relative to bytes in the stream of one peer.
public enum StreamPoint: String, Hashable, Sendable, CaseIterable {
    /// The text has been read from its sender, everything before it has been written to the receiver, and nothing of it.
    /// If the text arrives in several reads, its first part may have been written.
    case beforeMatch = "before-match"
    /// The text, and a number of bytes after it, have been written to the receiver.
    case afterMatch = "after-match"
    /// A number of bytes of the stream has been written to the receiver.
    case midStream = "mid-stream"
}

/// What a rule about the bytes of connections matches: a text in the stream of one peer, or each stream.
public struct StreamMatch: Hashable, Sendable {
    /// The peer that sends the text.
    public var sender: Side
    /// The text; empty with ``StreamPoint/midStream`` only.
    public var text: [UInt8]
    /// The text that the other peer must have sent before, each time; empty for none.
    public var after: [UInt8]
    /// The point.
    public var point: StreamPoint

    /// Bytes of a text.
    public static let textBytesMax = 256

    public init(sender: Side, text: [UInt8] = [], after: [UInt8] = [], point: StreamPoint) {
        self.sender = sender
        self.text = text
        self.after = after
        self.point = point
    }

    /// The reason why the match cannot be used with a number of bytes; `nil` if it can.
    func problem(bytes: Int64?) -> String? {
        for text in [text, after] where text.count > Self.textBytesMax {
            return "a text must have at most \(Self.textBytesMax) bytes"
        }
        if point == .midStream {
            if bytes == nil { return "\(StreamPoint.midStream.rawValue) needs bytes" }
            if !text.isEmpty { return "a text has the points before-match and after-match" }
            if !after.isEmpty { return "'after' needs a text" }
        } else {
            if text.isEmpty { return "\(point.rawValue) needs a text in quotes" }
            if bytes != nil, point == .beforeMatch { return "bytes applies to after-match and mid-stream only" }
        }
        return nil
    }

    /// The point of an exchange at the same socket.
    var exchangePoint: FaultPoint { sender == .client ? .beforeRequestEnd : .midResponse }

    /// The match in the syntax of rules, up to the clauses: `server "250 " after "\r\n.\r\n"`.
    var description: String {
        var words = [sender == .client ? "client" : "server"]
        if !text.isEmpty { words.append(Self.quoted(text)) }
        if !after.isEmpty { words.append("after \(Self.quoted(after))") }
        return words.joined(separator: " ")
    }

    private static func quoted(_ bytes: [UInt8]) -> String {
        var text = "\""
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\r"): text += "\\r"
            case UInt8(ascii: "\n"): text += "\\n"
            case UInt8(ascii: "\t"): text += "\\t"
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += "\\" + String(UnicodeScalar(byte))
            case 0x20..<0x7F: text += String(UnicodeScalar(byte))
            default: text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text + "\""
    }
}

/// A search for a text in a stream that arrives in pieces (Knuth, Morris and Pratt): the state is the number of bytes of
/// the text that the stream ends with.
struct TextSearch {
    private let text: [UInt8]
    /// The length of the longest proper prefix of the text that ends each of its prefixes.
    private let borders: [Int]

    init(_ text: [UInt8]) {
        self.text = text
        var borders = [Int](repeating: 0, count: text.count)
        var length = 0
        for index in text.indices.dropFirst() {
            while length > 0, text[index] != text[length] { length = borders[length - 1] }
            if text[index] == text[length] { length += 1 }
            borders[index] = length
        }
        self.borders = borders
    }

    var count: Int { text.count }

    /// Continues the search. Returns the number of bytes up to the end of the next match; `nil` if there is none. After a
    /// match the search begins again.
    func next(in bytes: UnsafeRawBufferPointer.SubSequence, state: inout Int) -> Int? {
        if text.isEmpty { return nil }
        for index in bytes.indices {
            let byte = bytes[index]
            while state > 0, byte != text[state] { state = borders[state - 1] }
            if byte == text[state] { state += 1 }
            if state == text.count {
                state = 0
                return index - bytes.startIndex + 1
            }
        }
        return nil
    }
}
