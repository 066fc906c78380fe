/// A parser of server-sent events (WHATWG HTML, section 9.2), for the fields that the API uses.
public struct EventStreamParser {
    /// An event.
    public struct Event: Hashable, Sendable {
        /// The number.
        public let id: String
        /// The type.
        public let type: String
        /// The JSON.
        public let data: String
    }

    /// The maximum number of bytes of one event.
    private let bytesMax: Int
    private var line: [UInt8] = []
    private var endsWithCarriageReturn = false
    private var id = ""
    private var type = ""
    private var data: [String] = []
    private var byteCount = 0

    /// Creates a parser.
    public init(bytesMax: Int = 64 << 20) { self.bytesMax = bytesMax }

    /// An event longer than the limit.
    public struct TooLongError: Error, CustomStringConvertible {
        public var description: String { "an event is longer than the limit" }
    }

    /// Returns the events that bytes complete.
    public mutating func receive(_ bytes: some Sequence<UInt8>) throws -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            let follows = endsWithCarriageReturn
            endsWithCarriageReturn = byte == UInt8(ascii: "\r")
            if byte == UInt8(ascii: "\n"), follows { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                byteCount += 1
                guard byteCount <= bytesMax else { throw TooLongError() }
                line.append(byte)
                continue
            }
            if let event = endLine() { events.append(event) }
        }
        return events
    }

    private mutating func endLine() -> Event? {
        let text = String(decoding: line, as: UTF8.self)
        line.removeAll(keepingCapacity: true)
        if text.isEmpty {
            defer {
                data = []
                type = ""
                byteCount = 0
            }
            return data.isEmpty ? nil : Event(id: id, type: type, data: data.joined(separator: "\n"))
        }
        if text.hasPrefix(":") {
            if data.isEmpty { byteCount = 0 }
            return nil
        }
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = sides.count > 1 ? sides[1] : ""
        if value.hasPrefix(" ") { value.removeFirst() }
        switch sides[0] {
        case "id": id = String(value)
        case "event": type = String(value)
        case "data": data.append(String(value))
        default: break
        }
        return nil
    }
}
