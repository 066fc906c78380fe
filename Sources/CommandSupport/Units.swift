internal import Foundation
internal import LinkModel

/// Numbers for people.
enum Units {
    /// What somebody wrote, in one line, and without characters that a terminal would obey.
    static func line(_ text: String?) -> String {
        var line = ""
        for scalar in (text ?? "").unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: line += " "
            case .format where !scalar.properties.isJoinControl: continue
            default: line.unicodeScalars.append(scalar)
            }
        }
        return line
    }

    /// `1.2 MB`.
    static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1000: "\(count) B"
        case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1e3)
        case ..<1_000_000_000: String(format: "%.1f MB", Double(count) / 1e6)
        default: String(format: "%.2f GB", Double(count) / 1e9)
        }
    }

    /// `1706.2 ms`, `0.35 ms`.
    static func milliseconds(_ span: Nanoseconds) -> String {
        let value = span.inMilliseconds
        return value >= 100 ? String(format: "%.0f ms", value) : String(format: "%.1f ms", value)
    }

    /// A delay as a profile has it: `100 ms`, `0.5 ms`.
    static func delay(_ span: Nanoseconds) -> String {
        span.count % 1_000_000 == 0 ? "\(span.count / 1_000_000) ms" : "\(span.inMilliseconds) ms"
    }

    /// A time of a timeline: `1m20s`, `700ms`.
    static func time(_ span: Nanoseconds) -> String {
        var rest = span.count
        var text = ""
        for (unit, length) in [
            ("h", Int64(3_600_000_000_000)), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000),
        ] {
            if rest >= length { text += "\(rest / length)\(unit)" }
            rest %= length
        }
        return text.isEmpty ? "0s" : text
    }

    /// `down 780 kbit/s 100 ms, up 330 kbit/s 100 ms`.
    static func conditions(_ conditions: Conditions) -> String {
        switch conditions.access {
        case .refuse: return "every connection is refused"
        case .dns: return "the server's name is unknown; who looks up none is refused"
        case .open, .portal: break
        }
        let portal = conditions.access == .portal ? "a page of the network's own answers" : ""
        if conditions.isClear { return portal.isEmpty ? "nothing in force" : portal }
        var text = "down \(direction(conditions.down)), up \(direction(conditions.up))"
        if conditions.dnsDelay > .zero { text += ", DNS \(delay(conditions.dnsDelay))" }
        return portal.isEmpty ? text : "\(portal); \(text)"
    }

    private static func direction(_ conditions: DirectionConditions) -> String {
        if conditions.loss == .all { return "100 % loss" }
        let rate = conditions.trace.map { "trace of \($0.averageBitsPerSecond / 1000) kbit/s" }
        var text = "\(rate ?? conditions.rate?.description ?? "no cap") \(delay(conditions.delay))"
        if let jitter = conditions.jitter { text += " ±\(delay(jitter.span)) \(jitter.distribution.rawValue)" }
        if conditions.loss != .none { text += " \(conditions.loss) loss" }
        if conditions.bursts != nil { text += " bursts of loss" }
        if let lost = conditions.lostPackets { text += " without packets \(String("\(lost)".prefix(40)))" }
        if conditions.duplication != .none { text += " \(conditions.duplication) twice" }
        if conditions.reordering != .none { text += " \(conditions.reordering) overtaking" }
        return text
    }

    /// Columns padded to a common width, two spaces apart.
    static func table(_ rows: [[String]]) -> [String] {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell + String(repeating: " ", count: widths[column] - cell.count + 2)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
