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
        let entries = ordered.map { entry($0, facts, faults, isSimulated: run.world == .simulated).text }
        let (head, tail) = HTTPArchive.frame(
            version: SlowlaneVersion.current, pages: pages,
            comment: "\(run.title), seed \(run.seed). Times count from the start of 2000, which stands for 0 s of the "
                + "run. Targets have names of notes instead of identifiers; there are no header fields and no texts.")
        return head + entries.joined(separator: ",") + tail
    }

    private static func entry(
        _ exchange: RunExchange, _ facts: RunFacts, _ faults: [String], isSimulated: Bool
    ) -> HTTPArchive.Entry {
        let phases = Phases(exchange, end: exchange.ended ?? facts.end)
        var entry = HTTPArchive.Entry(
            started: date(exchange.connecting ?? exchange.sent), method: exchange.method,
            url: "http://notes.invalid\(exchange.target)")
        entry.page = exchange.actor
        entry.requestBytes = Int64(exchange.requestBytes)
        entry.status = exchange.status
        entry.responseBytes = exchange.status == nil ? 0 : Int64(exchange.responseBytes)
        if entry.responseBytes > 0 { entry.mimeType = "application/json" }
        (entry.connect, entry.send) = (phases.connect, phases.send)
        (entry.wait, entry.receive) = (phases.wait, phases.receive)
        entry.connection = exchange.connection.map { "\($0)" }
        let fired = exchange.faults.map { fault in
            JSONText.string(faults.indices.contains(fault.index) ? faults[fault.index] : "\(fault.index)")
        }
        entry.members = [
            ("_exchange", "\(exchange.number)"), ("_device", JSONText.string(exchange.actor)),
            ("_note", JSONText.string(exchange.row)), ("_attempt", "\(exchange.attempt)"),
            ("_link", JSONText.string(exchange.link)), ("_end", JSONText.string(exchange.outcome)),
            ("_faults", JSONText.array(fired)), ("_revision", exchange.revision.map { "\($0)" } ?? "null"),
            ("_simulated", isSimulated ? "true" : "false"),
        ]
        if exchange.status == nil { entry.error = exchange.outcome }
        return entry
    }

    /// The phases of an exchange; their sum is its time.
    private struct Phases {
        var connect: Nanoseconds?
        var send = Nanoseconds.zero
        var wait = Nanoseconds.zero
        var receive = Nanoseconds.zero

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

    private static func date(_ time: Nanoseconds) -> String {
        let date = Date(timeIntervalSince1970: Double(epochSeconds) + Double(time.count) / 1_000_000_000)
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
