internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Scenario
internal import Wire

/// The exchanges of a run as an HTTP Archive (HAR 1.2), for the network panels of browsers and other readers.
///
/// A history has no header fields, reason phrases and texts of notes, so the archive has none; names of its own begin with
/// `_`.
enum HARReport {
    /// The time that stands for 0 s of a run: the start of the year 2000. A run in virtual time has no date, and equal runs
    /// have equal files.
    static let epochSeconds = 946_684_800

    /// Returns the archive: a page for each device and writer, and an entry for each exchange in the order of their starts.
    static func document(_ run: PlannedRun, _ facts: RunFacts) -> String {
        let scenario = run.scenario
        let names = scenario.devices.map(\.name) + scenario.writers.map(\.name)
        let pages = names.map { name in
            JSONText.object([
                ("startedDateTime", JSONText.string(date(.zero))), ("id", JSONText.string(name)),
                ("title", JSONText.string("\(run.title): \(name)")), ("pageTimings", "{}"),
            ])
        }
        let faults = scenario.faults.map { "\($0.request) \($0.point.rawValue) \($0.action)" }
        let ordered = facts.exchanges.sorted { left, right in
            let (first, second) = (left.connecting ?? left.sent, right.connecting ?? right.sent)
            return first != second ? first < second : left.number < right.number
        }
        let entries = ordered.map { entry($0, facts, faults, isSimulated: run.world == .simulated) }
        let creator = JSONText.object([
            ("name", JSONText.string("slowlane")), ("version", JSONText.string(SlowlaneVersion.current)),
        ])
        let log = JSONText.object([
            ("version", JSONText.string("1.2")), ("creator", creator), ("pages", JSONText.array(pages)),
            ("entries", JSONText.array(entries)),
            (
                "comment",
                JSONText.string(
                    "\(run.title), seed \(run.seed). Times count from the start of 2000, which stands for 0 s of the run. "
                        + "Targets have names of notes instead of identifiers; there are no header fields and no texts."
                )
            ),
        ])
        return JSONText.object([("log", log)])
    }

    private static func entry(
        _ exchange: RunExchange, _ facts: RunFacts, _ faults: [String], isSimulated: Bool
    ) -> String {
        let phases = Phases(exchange, end: exchange.ended ?? facts.end)
        let timings = JSONText.object([
            ("blocked", "-1"), ("dns", "-1"), ("connect", phases.connect.map(milliseconds) ?? "-1"), ("ssl", "-1"),
            ("send", milliseconds(phases.send)), ("wait", milliseconds(phases.wait)),
            ("receive", milliseconds(phases.receive)),
        ])
        let request = JSONText.object([
            ("method", JSONText.string(exchange.method)),
            ("url", JSONText.string("http://notes.invalid\(exchange.target)")),
            ("httpVersion", JSONText.string("HTTP/1.1")), ("cookies", "[]"), ("headers", "[]"), ("queryString", "[]"),
            ("headersSize", "-1"), ("bodySize", "\(exchange.requestBytes)"),
        ])
        let status = exchange.status ?? 0
        let bytes = exchange.status == nil ? 0 : exchange.responseBytes
        let content = JSONText.object([
            ("size", "\(bytes)"), ("mimeType", JSONText.string(bytes == 0 ? "x-unknown" : "application/json")),
        ])
        let response = JSONText.object([
            ("status", "\(status)"), ("statusText", JSONText.string("")),
            ("httpVersion", JSONText.string("HTTP/1.1")), ("cookies", "[]"), ("headers", "[]"), ("content", content),
            ("redirectURL", JSONText.string("")), ("headersSize", "-1"), ("bodySize", "\(bytes)"),
        ])
        let fired = exchange.faults.map { fault in
            JSONText.string(faults.indices.contains(fault.index) ? faults[fault.index] : "\(fault.index)")
        }
        var members: [(key: String, value: String)] = [
            ("pageref", JSONText.string(exchange.actor)),
            ("startedDateTime", JSONText.string(date(exchange.connecting ?? exchange.sent))),
            ("time", milliseconds(phases.total)), ("request", request), ("response", response), ("cache", "{}"),
            ("timings", timings),
        ]
        if let connection = exchange.connection { members.append(("connection", JSONText.string("\(connection)"))) }
        members += [
            ("_exchange", "\(exchange.number)"), ("_device", JSONText.string(exchange.actor)),
            ("_note", JSONText.string(exchange.row)), ("_attempt", "\(exchange.attempt)"),
            ("_link", JSONText.string(exchange.link)), ("_end", JSONText.string(exchange.outcome)),
            ("_faults", JSONText.array(fired)), ("_revision", exchange.revision.map { "\($0)" } ?? "null"),
            ("_simulated", isSimulated ? "true" : "false"),
        ]
        if exchange.status == nil { members.append(("_error", JSONText.string(exchange.outcome))) }
        return JSONText.object(members)
    }

    /// The phases of an exchange; their sum is its time.
    private struct Phases {
        var connect: Nanoseconds?
        var send = Nanoseconds.zero
        var wait = Nanoseconds.zero
        var receive = Nanoseconds.zero

        var total: Nanoseconds { (connect ?? .zero) + send + wait + receive }

        /// - Parameter end: The end of the exchange, or of the run.
        init(_ exchange: RunExchange, end: Nanoseconds) {
            connect = exchange.connecting.map { max(.zero, exchange.sent - $0) }
            // An exchange may end before its request arrives, if a client gives it up.
            let end = max(end, exchange.sent)
            let arrived = min(end, max(exchange.sent, exchange.arrived ?? end))
            let responded = min(end, max(arrived, exchange.responded ?? end))
            send = arrived - exchange.sent
            wait = responded - arrived
            receive = end - responded
        }
    }

    private static func milliseconds(_ span: Nanoseconds) -> String { JSONText.number(Double(span.count) / 1_000_000) }

    private static func date(_ time: Nanoseconds) -> String {
        let date = Date(timeIntervalSince1970: Double(epochSeconds) + Double(time.count) / 1_000_000_000)
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
