public import Determinism
internal import Foundation
public import LinkModel

/// Readable numbers with units.
public enum Units {
    /// Returns a size as `999 B`, `1.2 MB`.
    public static func bytes(_ count: Int) -> String {
        switch count {
        case ..<1000: "\(count) B"
        case ..<1_000_000: String(format: "%.1f kB", Double(count) / 1e3)
        case ..<1_000_000_000: String(format: "%.1f MB", Double(count) / 1e6)
        default: String(format: "%.2f GB", Double(count) / 1e9)
        }
    }

    /// Returns a measured time as `1706 ms`, `0.4 ms`.
    public static func milliseconds(_ span: Nanoseconds) -> String {
        let value = span.inMilliseconds
        return value >= 100 ? String(format: "%.0f ms", value) : String(format: "%.1f ms", value)
    }

    /// Returns a configured delay as `100 ms`, `0.5 ms`.
    public static func delay(_ span: Nanoseconds) -> String {
        span.count % 1_000_000 == 0 ? "\(span.count / 1_000_000) ms" : "\(span.inMilliseconds) ms"
    }

    /// Returns a time of a timeline as `1m20s`, `700ms`, the form that timeline files use.
    public static func time(_ span: Nanoseconds) -> String {
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

    /// Returns a number of packets with their rate, as `1200000 packets in 0.500 s: 2.40 million packets/s`.
    public static func throughput(_ packets: Int, in span: Duration) -> String {
        let seconds = span / .seconds(1)
        let rate = String(format: "%.2f", Double(packets) / seconds / 1e6)
        return "\(packets) packets in \(String(format: "%.3f", seconds)) s: \(rate) million packets/s"
    }

    /// Returns conditions as `down 780 kbit/s 100 ms, up 330 kbit/s 100 ms`.
    public static func conditions(_ conditions: Conditions) -> String {
        switch conditions.connectionPolicy {
        case .offline: return "all connections refused"
        case .dns: return "DNS failure (connections refused)"
        case .open, .portal: break
        }
        let portal = conditions.connectionPolicy == .portal ? "captive portal (serves its page for HTTP requests)" : ""
        if conditions.isClear { return portal.isEmpty ? "no conditions" : portal }
        var text = "down \(direction(conditions.down)), up \(direction(conditions.up))"
        if conditions.dnsDelay > .zero { text += ", DNS \(delay(conditions.dnsDelay))" }
        text += datagrams(conditions.datagrams)
        return portal.isEmpty ? text : "\(portal); \(text)"
    }

    private static func datagrams(_ conditions: DatagramConditions) -> String {
        var text = conditions.policy == .open ? "" : ", UDP \(conditions.policy.rawValue)"
        if let mtu = conditions.mtu { text += ", MTU \(mtu)" }
        if let idle = conditions.idle { text += ", UDP idle \(delay(idle))" }
        if let rebind = conditions.rebind { text += ", UDP rebind \(delay(rebind))" }
        return text
    }

    private static func direction(_ conditions: DirectionConditions) -> String {
        if conditions.loss == .one { return "100 % loss" }
        let rate = conditions.trace.map { "trace of \($0.averageBitsPerSecond / 1000) kbit/s" }
        var text = "\(rate ?? conditions.rate?.description ?? "no rate limit") \(delay(conditions.delay))"
        if let jitter = conditions.jitter { text += " ±\(delay(jitter.span)) \(jitter.distribution.rawValue)" }
        if conditions.loss != .zero { text += " \(conditions.loss) loss" }
        if conditions.bursts != nil { text += " burst loss" }
        if let lost = conditions.lostPackets { text += " losing packets \(String("\(lost)".prefix(40)))" }
        if conditions.duplication != .zero { text += " \(conditions.duplication) duplicated" }
        if conditions.reordering != .zero { text += " \(conditions.reordering) reordered" }
        return text
    }
}
