internal import NIOCore
internal import Wire

/// The type of an event of the stream.
enum EventType: String, Hashable, Sendable {
    case hello, summary, connection, exchange, fault, link, proxy, recording, dropped
}

/// A bounded buffer of numbered events, in the format of server-sent events.
struct EventLog {
    /// The limits of a log.
    struct Limits: Hashable {
        /// The maximum number of events.
        var countMax = 8192
        /// The maximum number of bytes of all events.
        var bytesMax = 4 << 20
    }

    private struct Entry {
        let proxy: ByteKey?
        let text: String
    }

    /// The events after a position.
    enum Reading: Equatable {
        /// The events as text, perhaps empty, and the number of the last event that was considered.
        case events(text: String, last: Int64)
        /// Events after the position are no longer in the buffer. The number of all events after it; `nil` if it is
        /// unknown, because the position is not one of this log.
        case gap(missed: Int64?)
    }

    let limits: Limits
    /// The number of the first event of the log; positions before it are of other logs.
    let firstID: Int64
    /// The number of the last event.
    private(set) var lastID: Int64
    private var entries = CircularBuffer<Entry>()
    private(set) var byteCount = 0

    /// Creates an empty log.
    init(firstID: Int64, limits: Limits = Limits()) {
        self.firstID = firstID
        lastID = firstID
        self.limits = limits
    }

    /// The number of events in the buffer.
    var count: Int { entries.count }

    /// Appends an event.
    ///
    /// - Parameter proxy: The proxy of the event; events without one are for all readers.
    mutating func append(_ type: EventType, _ proxy: ByteKey?, _ json: String) {
        lastID += 1
        let text = Self.text(lastID, type, json)
        entries.append(Entry(proxy: proxy, text: text))
        byteCount += text.utf8.count
        while entries.count > max(1, limits.countMax) || (byteCount > limits.bytesMax && entries.count > 1) {
            byteCount -= entries.removeFirst().text.utf8.count
        }
    }

    /// Removes all events. Later readings from earlier positions are gaps.
    mutating func removeAll() {
        lastID += 1
        entries.removeAll()
        byteCount = 0
    }

    /// Returns the events after a position.
    ///
    /// - Parameters:
    ///   - filter: The proxy whose events are wanted; `nil` for all.
    ///   - bytesMax: The number of bytes after which no further event is added.
    func read(after position: Int64, filter: ByteKey?, bytesMax: Int) -> Reading {
        guard position >= firstID, position <= lastID else { return .gap(missed: nil) }
        // The reader continues after the last event, with a new 'hello'.
        let behind = lastID - position
        guard behind <= Int64(entries.count) else { return .gap(missed: behind) }
        var text = ""
        var last = position
        for entry in entries.dropFirst(entries.count - Int(behind)) {
            if text.utf8.count >= bytesMax { break }
            last += 1
            if filter == nil || entry.proxy == nil || entry.proxy == filter { text += entry.text }
        }
        return .events(text: text, last: last)
    }

    /// Returns an event as text. JSON has no line breaks outside of strings, and none unescaped in strings.
    static func text(_ id: Int64, _ type: EventType, _ json: String) -> String {
        "id: \(id)\nevent: \(type.rawValue)\ndata: \(json)\n\n"
    }
}
