internal import CommandSupport
internal import Determinism
internal import Foundation
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Scenario
internal import Synchronization

/// Reports of a proxy's status: a status line on a terminal, log lines elsewhere.
final class ProxyReporter: Sendable {
    private let proxy: Proxy
    private let console: Console
    private let name = Mutex("none")

    /// The user's name for the current conditions.
    var conditionsName: String {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }

    init(proxy: Proxy, console: Console) {
        self.proxy = proxy
        self.console = console
    }

    /// Draws the status line until the task is cancelled.
    func draw(every interval: Duration) async {
        var before = await proxy.status().link.bytesCarried
        var then = ContinuousClock.now
        while !Task.isCancelled {
            let status = await proxy.status()
            let now = ContinuousClock.now
            let seconds = max(0.001, (now - then) / .seconds(1))
            let carried = status.link.bytesCarried
            let rate = PerDirection(
                up: Int(Double(carried.up - before.up) / seconds),
                down: Int(Double(carried.down - before.down) / seconds))
            (before, then) = (carried, now)
            if !Task.isCancelled {
                console.show(status: Self.statusLine(status, conditionsName: conditionsName, bytesPerSecond: rate))
            }
            try? await Task.sleep(for: interval)
        }
    }

    /// Logs a line per interval in which the status has changed, until the task is cancelled.
    func log(every interval: Duration) async {
        var before = await proxy.status()
        before.link.timeline = nil
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            var status = await proxy.status()
            // The position of a timeline always changes.
            status.link.timeline = nil
            if status != before && !Task.isCancelled {
                console.print(Self.sentence(status, conditionsName: conditionsName), to: .progress)
            }
            before = status
        }
    }

    private static func statusLine(
        _ status: ProxyStatus, conditionsName: String, bytesPerSecond: PerDirection<Int>
    ) -> String {
        let link = status.link
        var parts = ["\(conditionsName)\(link.hasAnyOutage ? " STALLED" : "")", "\(status.connectionsOpen) open"]
        if let method = status.synDropMethod { parts.append(method == .none ? "new connections stall" : "SYN dropped") }
        for (arrow, direction) in [("↓", Direction.down), ("↑", .up)] {
            parts.append(
                "\(arrow) \(Units.bytes(bytesPerSecond[direction]))/s \(Units.bytes(link.bytesCarried[direction]))")
        }
        parts.append("queue ↓\(link.queueDepth.down) ↑\(link.queueDepth.up)")
        if status.isFull { parts.append("FULL") }
        if status.upstreamTLS?.isVerified == false { parts.append("NOT VERIFIED") }
        return parts.joined(separator: " · ")
    }

    /// Returns the position of a timeline in words.
    private static func timeline(_ position: TimelineRun.Position) -> String {
        let name = position.isRamping ? "ramp to \(position.name)" : position.name
        let isWaiting = position.elapsed < .zero
        let time = TimeFormat.seconds(isWaiting ? .zero - position.elapsed : position.time)
        var text = "timeline \(isWaiting ? "starts in" : "at") \(time) (\(name)"
        if let next = position.nextName, let time = position.nextChange {
            text += ", \(next) in \(TimeFormat.seconds(time))"
        }
        return text + ")"
    }

    private static func newConnections(_ method: SYNDropMethod) -> String {
        method == .none
            ? "new connections open and stall" : "new connections time out (SYN dropped: \(method.rawValue))"
    }

    private static func sentence(_ status: DatagramStatus) -> String {
        let counters = status.counters
        var text = "\(TextTable.count(status.sessions, "UDP session")) of \(counters.sessionsOpened), "
        text += "datagrams \(counters.sent.down) down, \(counters.sent.up) up"
        let others = [
            (counters.overMTU, "over the MTU"), (counters.blackholed, "blackholed"),
            (counters.unreachable, "unreachable"), (status.discarded, "discarded"),
        ]
        for (count, word) in others where count > 0 { text += ", \(count) \(word)" }
        return text + (status.isRefusing ? ", refused (ICMP port unreachable)" : "")
    }

    private static func sentence(_ tls: UpstreamTLSStatus) -> String {
        let counts = tls.rewritings
        let rewritten = [(counts.hosts, "Host"), (counts.locations, "Location"), (counts.cookies, "Set-Cookie")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return (rewritten.isEmpty ? "" : ", rewritten: \(rewritten.joined(separator: " "))")
            + (tls.isVerified ? "" : ", certificate of the upstream NOT VERIFIED (--insecure)")
    }

    /// Returns the status in words, for logs and for the command `status`.
    static func sentence(_ status: ProxyStatus, conditionsName: String) -> String {
        let link = status.link
        var text = "profile \(conditionsName)\(link.hasAnyOutage ? " (stalled)" : ""), "
        text += "\(status.connectionsOpen) open of \(status.connectionsAccepted) accepted, "
        text += "\(Units.bytes(link.bytesCarried.down)) down, \(Units.bytes(link.bytesCarried.up)) up, "
        text += "queue \(link.queueDepth.down) down \(link.queueDepth.up) up, "
        text += "\(TextTable.count(link.counters.down.packetsLost + link.counters.up.packetsLost, "packet")) lost, "
        text += "\(link.counters.down.packetsDropped + link.counters.up.packetsDropped) dropped, "
        text += "\(Units.bytes(link.bytesHeld)) held"
        if let datagrams = status.datagrams { text += ", \(sentence(datagrams))" }
        if let position = link.timeline { text += ", \(Self.timeline(position))" }
        let fired = status.faultRules.reduce(0) { $0 + $1.fired }
        if !status.faultRules.isEmpty {
            text +=
                ", \(TextTable.count(status.faultRules.count, "fault rule")) fired \(TextTable.count(fired, "time"))"
        }
        if let note = status.opaqueTLS.text { text += ", \(note)" }
        if let interception = status.interception {
            text += ", \(TextTable.count(interception.connections, "connection")) intercepted"
            if let note = interception.text { text += ", \(note)" }
        }
        if let method = status.synDropMethod { text += ", \(newConnections(method))" }
        if link.orphans > 0 { text += ", \(TextTable.count(link.orphans, "orphan"))" }
        if status.dialsFailed > 0 { text += ", \(TextTable.count(status.dialsFailed, "upstream connection")) failed" }
        if status.isFull { text += ", limit on connections reached" }
        if let tls = status.upstreamTLS { text += Self.sentence(tls) }
        return text
    }
}
