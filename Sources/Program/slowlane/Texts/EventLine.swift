internal import CommandSupport
internal import ControlAPI
internal import Foundation
internal import Wire

/// The lines of `slowlane events`.
enum EventLine {
    /// The types of events that are left out without `--summaries`.
    static let summaryType = "summary"

    /// Returns an event as a JSON object on one line; `nil` if its data is invalid.
    static func json(_ event: EventStreamParser.Event) -> String? {
        guard let data = JSONText.parse(Array(event.data.utf8)) else { return nil }
        return JSONValue.object(["id": .text(event.id), "event": .text(event.type), "data": data]).json
    }

    /// Returns the lines of an event; none for an event of an unknown type.
    ///
    /// - Parameters:
    ///   - type: The type.
    ///   - data: The data.
    ///   - timeZone: The time zone of the times.
    static func lines(_ type: String, _ data: JSONValue, timeZone: TimeZone = .current) -> [String] {
        let name = printable(data["proxy"].text ?? "")
        func line(_ text: String) -> String {
            let time = time(data["t"].number, timeZone)
            return [time, name.isEmpty ? "-" : name, type, text].joined(separator: "  ")
        }
        switch type {
        case "hello": return hello(data, line)
        case "summary": return [line(summary(data))]
        case "connection": return [line(connection(data))]
        case "exchange": return [line(exchange(data))]
        case "link": return [line(link(data) + ", by \(word(data["by"]))")]
        case "fault": return [line(fault(data))]
        case "proxy": return [line("\(word(data["change"])), \(definition(data))")]
        case "recording": return [line("\(word(data["state"])), \(word(data["steps"])) steps")]
        case "dropped":
            return [
                line(
                    "\(data["count"] == .null ? "events" : "\(word(data["count"])) events") missed (\(word(data["reason"])))"
                )
            ]
        default: return []
        }
    }

    private static func hello(_ data: JSONValue, _ line: (String) -> String) -> [String] {
        let proxies = data["proxies"].array
        var lines = [line("slowlane \(word(data["version"])), \(TextTable.count(proxies.count, "proxy", "proxies"))")]
        for proxy in proxies {
            let text = "\(word(proxy["proxy"])): \(definition(proxy["definition"])), link \(link(proxy["link"]))"
            lines.append(line(text))
        }
        return lines
    }

    private static func definition(_ data: JSONValue) -> String {
        let state = data["enabled"] == .bool(true) ? "" : " (disabled)"
        return "\(word(data["listen"])) -> \(word(data["upstream"]))\(state)"
    }

    private static func link(_ data: JSONValue) -> String {
        var text = word(data["name"])
        let outage = data["outage"]
        if outage["up"] == .bool(true) || outage["down"] == .bool(true) { text += ", outage" }
        if data["reset_at"] != .null { text += ", until reset" }
        return text
    }

    private static func summary(_ data: JSONValue) -> String {
        let rate = data["rate"]
        let queue = data["queue_bytes"]
        let delay = data["queue_delay_ms"]
        var parts = [
            "up \(bytes(rate["up"]))/s", "down \(bytes(rate["down"]))/s",
            "queue \(bytes(queue["up"])) up (\(milliseconds(delay["up"]))) \(bytes(queue["down"])) down"
                + " (\(milliseconds(delay["down"])))",
            "\(word(data["connections_open"])) open", "\(word(data["connections_waiting"])) waiting",
        ]
        if data["round_trip_ms"] != .null { parts.append("round trip \(milliseconds(data["round_trip_ms"]))") }
        let stalled = data["stalled"]
        if stalled["up"] == .bool(true) || stalled["down"] == .bool(true) { parts.append("stalled") }
        return parts.joined(separator: ", ")
    }

    private static func connection(_ data: JSONValue) -> String {
        var text = "#\(word(data["number"])) \(word(data["state"]))"
        if data["state"].text == "open" { text += " from \(word(data["client"]))" }
        if data["reason"] != .null { text += " (\(word(data["reason"])))" }
        if data["not_http"] != .null { text += ", not HTTP: \(word(data["not_http"]))" }
        return text
    }

    private static func exchange(_ data: JSONValue) -> String {
        let times = data["times"]
        var text = "#\(word(data["id"])) \(word(data["method"])) \(word(data["target"]))"
        if let attempt = data["attempt"].number, attempt > 1 { text += " attempt \(word(data["attempt"]))" }
        if data["status"] != .null { text += " \(word(data["status"]))" }
        text += " " + (data["end"].text.map { $0.replacing("-", with: " ") } ?? "open")
        var phases: [String] = []
        for (name, from, to) in [
            ("connect", "opened", "started"), ("send", "started", "request_delivered"),
            ("wait", "request_delivered", "response_started"), ("receive", "response_started", "response_delivered"),
        ] {
            guard let from = times[from].number, let to = times[to].number else { continue }
            phases.append("\(name) \(milliseconds(.number(max(0, to - from))))")
        }
        if let from = times["started"].number, let to = times["ended"].number {
            text += " in \(milliseconds(.number(max(0, to - from))))"
        }
        if !phases.isEmpty { text += " (" + phases.joined(separator: ", ") + ")" }
        if data["fault"] != .null {
            text += ", fault \(word(data["fault"]["name"])) at \(word(data["fault"]["point"]))"
        }
        return text
    }

    private static func fault(_ data: JSONValue) -> String {
        var text = "\(word(data["name"])) \(word(data["change"])): \(word(data["rule"]))"
        if data["exchange"] != .null { text += ", exchange #\(word(data["exchange"])) at \(word(data["point"]))" }
        return text
    }

    private static func bytes(_ value: JSONValue) -> String { Units.bytes(Int(exactly: value.number ?? 0) ?? 0) }

    private static func milliseconds(_ value: JSONValue) -> String {
        let number = value.number ?? 0
        return number >= 100 ? String(format: "%.0f ms", number) : String(format: "%.1f ms", number)
    }

    /// Returns a value as printable text.
    private static func word(_ value: JSONValue) -> String { value == .null ? "none" : printable(value.displayText) }

    /// Returns a text with control characters replaced: texts come from the network, and the output may be a terminal.
    private static func printable(_ text: String) -> String {
        var printable = ""
        for scalar in text.unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
            let isBidirectional = (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
            printable.unicodeScalars.append(isControl || isBidirectional ? "?" : scalar)
        }
        return printable
    }

    /// Returns the time of day with milliseconds.
    private static func time(_ milliseconds: Double?, _ timeZone: TimeZone) -> String {
        guard let milliseconds, milliseconds.isFinite, milliseconds.magnitude < 1e15 else { return "--:--:--.---" }
        let date = Date(timeIntervalSince1970: milliseconds / 1000)
        let local = Int64(milliseconds.rounded(.down)) + Int64(timeZone.secondsFromGMT(for: date)) * 1000
        let day = ((local % 86_400_000) + 86_400_000) % 86_400_000
        return String(format: "%02d:%02d:%02d.%03d", day / 3_600_000, day / 60_000 % 60, day / 1000 % 60, day % 1000)
    }
}
