internal import Impairment
internal import LinkModel
internal import Wire

/// The parts of event texts: times, pairs of directions, and bounded strings from the network.
enum EventText {
    /// The maximum number of bytes of a method.
    static let methodBytesMax = 32
    /// The maximum number of bytes of a request target.
    static let targetBytesMax = 512
    /// The maximum number of bytes of other texts from the network.
    static let otherBytesMax = 200

    /// Returns a time or duration in nanoseconds as a JSON number of milliseconds with microseconds, or `null`.
    static func milliseconds(_ nanoseconds: Int64?) -> String {
        guard let nanoseconds else { return "null" }
        let magnitude = nanoseconds.magnitude / 1000
        var text = (nanoseconds < 0 ? "-" : "") + "\(magnitude / 1000)"
        var fraction = magnitude % 1000
        guard fraction > 0 else { return text }
        var digits = 3
        while fraction % 10 == 0 {
            fraction /= 10
            digits -= 1
        }
        let shown = "\(fraction)"
        text += "." + String(repeating: "0", count: max(0, digits - shown.utf8.count)) + shown
        return text
    }

    /// Returns a JSON string of at most `bytesMax` bytes of a text, and an ellipsis if it is longer.
    static func string(_ text: String?, bytesMax: Int) -> String {
        guard let text, text.utf8.count > bytesMax else { return JSONText.string(text) }
        var end = text.utf8.index(text.utf8.startIndex, offsetBy: max(0, bytesMax))
        while end > text.startIndex, end.samePosition(in: text.unicodeScalars) == nil {
            end = text.utf8.index(before: end)
        }
        return JSONText.string(String(text[..<end]) + "…")
    }

    static func pair(_ value: PerDirection<Int>) -> String { "{\"up\":\(value.up),\"down\":\(value.down)}" }

    static func pair(_ value: PerDirection<Bool>) -> String { "{\"up\":\(value.up),\"down\":\(value.down)}" }

    /// Returns an object of members that are JSON texts.
    static func object(_ members: [(key: String, value: String)]) -> String { JSONText.object(members) }
}
