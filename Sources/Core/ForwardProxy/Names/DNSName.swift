/// A domain name of a message (RFC 1035, section 3.1).
struct DNSName: Hashable, Sendable {
    /// The labels with their lengths, and a final zero: 1 to 255 bytes. ASCII letters are in lower case, because names
    /// are compared without regard to case.
    let bytes: [UInt8]

    static let bytesMax = 255
    private static let labelMax = 63
    /// The two high bits of a length mark a pointer to an earlier name (RFC 1035, section 4.1.4).
    private static let pointer = 0xC0

    /// Creates a name from labels with dots between them; `nil` for an empty or too long label, and for a name that is
    /// too long.
    init?(_ text: String) {
        var bytes: [UInt8] = []
        for label in Array(text.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard (1...Self.labelMax).contains(label.count) else { return nil }
            bytes.append(UInt8(label.count))
            bytes += label.map(Self.lowercased)
        }
        bytes.append(0)
        guard bytes.count <= Self.bytesMax else { return nil }
        self.bytes = bytes
    }

    /// Reads the name that begins at an index of a message, and moves the index behind it; `nil` if there is none.
    ///
    /// Each pointer must lead to a place before the previous one, so that names without an end are not read.
    init?(_ message: [UInt8], at index: inout Int) {
        var bytes: [UInt8] = []
        var (position, limit) = (index, index)
        while true {
            guard position < message.count else { return nil }
            let length = Int(message[position])
            if length & Self.pointer == Self.pointer {
                guard position + 1 < message.count else { return nil }
                let target = (length & ~Self.pointer) << 8 | Int(message[position + 1])
                guard target >= DNSMessage.headLength, target < limit else { return nil }
                if limit == index { index = position + 2 }
                (position, limit) = (target, target)
                continue
            }
            guard length <= Self.labelMax, position + length < message.count,
                bytes.count + length < Self.bytesMax
            else { return nil }
            bytes += message[position...position + length].map(Self.lowercased)
            position += length + 1
            guard length == 0 else { continue }
            if limit == index { index = position }
            self.bytes = bytes
            return
        }
    }

    /// The labels with dots between them; `nil` for the root, and for labels with a dot or with bytes that are not
    /// printable ASCII.
    var text: String? {
        var labels: [String] = []
        var index = 0
        while bytes[index] > 0 {
            let label = bytes[(index + 1)...(index + Int(bytes[index]))]
            // A dot in a label could not be told from one between labels.
            guard label.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ".") }) else { return nil }
            labels.append(String(decoding: label, as: UTF8.self))
            index += label.count + 1
        }
        return labels.isEmpty ? nil : labels.joined(separator: ".")
    }

    /// Lengths are less than the codes of letters.
    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
