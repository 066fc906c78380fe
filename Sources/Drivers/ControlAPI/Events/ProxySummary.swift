internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import Proxy
internal import Wire

/// The summary of one proxy, as the event `summary` describes it.
struct ProxySummary {
    /// The time over which rates are averaged.
    private static let rateWindow: Int64 = 1_000_000_000

    private var samples = CircularBuffer<(time: Int64, bytes: PerDirection<Int>)>()
    /// The members of the last summary without its time.
    private var last: String?
    /// The last summary.
    private(set) var json: String?

    /// Returns the data of the event; `nil` if nothing has changed since the last one.
    ///
    /// - Parameters:
    ///   - status: The status; `nil` while the proxy is disabled.
    ///   - earlier: The counters before the proxy was enabled the last time.
    ///   - waiting: The number of exchanges without a complete response.
    ///   - timeline: The position of the timeline as JSON.
    mutating func update(
        _ name: String, _ status: ProxyStatus?, earlier: TrafficCounters, waiting: Int, timeline: String, at time: Int64
    ) -> String? {
        var total = earlier
        if let status { total += TrafficCounters(status) }
        let link = status?.link
        let queue = link?.queue ?? PerDirection(up: QueueState(), down: QueueState())
        let delays = JSONText.object([
            ("up", EventText.milliseconds(queue.up.delay.count)),
            ("down", EventText.milliseconds(queue.down.delay.count)),
        ])
        let members: [(key: String, value: String)] = [
            ("rate", EventText.pair(rate(total.bytesSent, at: time))), ("bytes", EventText.pair(total.bytesSent)),
            ("queue_bytes", EventText.pair(PerDirection(up: queue.up.bytes, down: queue.down.bytes))),
            ("queue_packets", EventText.pair(PerDirection(up: queue.up.packets, down: queue.down.packets))),
            ("queue_delay_ms", delays),
            ("round_trip_ms", EventText.milliseconds(link?.smoothedRoundTrip?.count)),
            ("losses", EventText.pair(total.packetsLost)), ("retransmissions", EventText.pair(total.retransmissions)),
            ("held_bytes", "\(link?.bytesHeld ?? 0)"), ("connections_open", "\(status?.connectionsOpen ?? 0)"),
            ("connections_accepted", "\(total.connectionsAccepted)"), ("connections_waiting", "\(waiting)"),
            ("dials_failed", "\(total.dialsFailed)"),
            ("stalled", EventText.pair(link?.hasOutage ?? PerDirection(up: false, down: false))),
            ("timeline", timeline),
        ]
        let text = JSONText.object(members)
        if text == last { return nil }
        last = text
        json = JSONText.object(
            [("t", EventText.milliseconds(time)), ("proxy", JSONText.string(name))] + members)
        return json
    }

    /// Returns the bytes per second since the oldest sample of the window, and adds a sample.
    private mutating func rate(_ bytes: PerDirection<Int>, at time: Int64) -> PerDirection<Int> {
        // Statuses without a change are left out for a time: the bytes are those of the last sample until now.
        if let last = samples.last, last.time < time - Self.rateWindow {
            samples.removeAll(keepingCapacity: true)
            samples.append((time - Self.rateWindow, last.bytes))
        }
        samples.append((time, bytes))
        while samples.count > 2, samples[samples.index(after: samples.startIndex)].time <= time - Self.rateWindow {
            samples.removeFirst()
        }
        guard let first = samples.first, time > first.time else { return PerDirection(up: 0, down: 0) }
        let seconds = Double(time - first.time) / 1e9
        func perSecond(_ direction: Direction) -> Int {
            Int((Double(max(0, bytes[direction] - first.bytes[direction])) / seconds).rounded())
        }
        return PerDirection(up: perSecond(.up), down: perSecond(.down))
    }
}
