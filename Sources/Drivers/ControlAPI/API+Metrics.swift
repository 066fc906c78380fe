internal import HTTPTypes
internal import LinkModel
internal import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension API {
    func metricsResponse(_ selection: MetricsSelection, _ request: HTTPRequest) async throws(APIError) -> Response {
        let isOpenMetrics = request.headerFields[.accept]?.contains("application/openmetrics-text") == true
        let proxies = selection.proxies ? await proxiesWithStatus : []
        let version = version
        let text = try await work.run(bytes: Self.metricsBytes * proxies.count) {
            var metrics = MetricsText(isOpenMetrics: isOpenMetrics)
            if selection.proxies { Self.addProxies(proxies.map { MetricsRow($0, $1) }, to: &metrics) }
            if selection.process { Self.addProcess(version, to: &metrics) }
            metrics.finish()
            return metrics.text
        }
        let type =
            isOpenMetrics
            ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : "text/plain; version=0.0.4; charset=utf-8"
        return Response(status: .ok, type: type, body: text)
    }

    /// A proxy in the metrics.
    private struct MetricsRow {
        let proxy: ManagedProxy
        let traffic: TrafficCounters
        let status: ProxyStatus?
        /// The texts of its labels, without a direction and with each, which all its samples have in common.
        let labels: String
        let directionLabels: PerDirection<String>

        init(_ proxy: ManagedProxy, _ status: ProxyStatus?) {
            (self.proxy, self.status) = (proxy, status)
            var traffic = proxy.earlierTraffic
            if let status { traffic += TrafficCounters(status) }
            self.traffic = traffic
            let names = [("listener", proxy.listen), ("proxy", proxy.name), ("upstream", proxy.upstream)]
            labels = MetricsText.labels(names)
            directionLabels = PerDirection(
                up: MetricsText.labels([("direction", "upstream")] + names),
                down: MetricsText.labels([("direction", "downstream")] + names))
        }
    }

    /// An estimate of the number of bytes of the metrics of a proxy.
    private static let metricsBytes = 1500

    private var proxiesWithStatus: [(ManagedProxy, ProxyStatus?)] {
        get async {
            let proxies = await registry.all
            // At the same time: each proxy waits for its own event loop.
            let statuses = await withTaskGroup(of: (Int, ProxyStatus?).self) { group in
                for (index, proxy) in proxies.enumerated() {
                    guard let running = proxy.running else { continue }
                    group.addTask { (index, await running.status()) }
                }
                var statuses: [Int: ProxyStatus] = [:]
                for await (index, status) in group { statuses[index] = status }
                return statuses
            }
            return proxies.enumerated().map { ($1, statuses[$0]) }
        }
    }

    private static func addProxies(_ rows: [MetricsRow], to metrics: inout MetricsText) {
        func perDirection(
            _ name: String, _ kind: String, _ help: String = "",
            _ value: (TrafficCounters, ProxyStatus?) -> PerDirection<Int>?
        ) {
            metrics.add(
                name, kind, help: help,
                rows.flatMap { row in
                    [Direction.down, .up].compactMap { direction in
                        value(row.traffic, row.status).map { (row.directionLabels[direction], "\($0[direction])") }
                    }
                })
        }
        func perProxy(_ name: String, _ kind: String, _ help: String, _ value: (TrafficCounters, ProxyStatus?) -> Int) {
            metrics.add(
                name, kind, help: help,
                rows.map { ($0.labels, "\(value($0.traffic, $0.status))") })
        }
        perDirection("toxiproxy_proxy_received_bytes_total", "counter") { traffic, _ in traffic.bytesReceived }
        perDirection("toxiproxy_proxy_sent_bytes_total", "counter") { traffic, _ in traffic.bytesSent }
        perProxy("slowlane_proxy_connections_open", "gauge", "Open connections.") { _, status in
            status?.connectionsOpen ?? 0
        }
        perProxy("slowlane_proxy_connections_total", "counter", "Connections accepted.") { traffic, _ in
            traffic.connectionsAccepted
        }
        perProxy("slowlane_proxy_dials_failed_total", "counter", "Failed connections to the upstream.") { traffic, _ in
            traffic.dialsFailed
        }
        perProxy("slowlane_proxy_held_bytes", "gauge", "Payload bytes held in memory.") { _, status in
            status?.link.bytesHeld ?? 0
        }
        perDirection("slowlane_link_lost_packets_total", "counter", "Packets lost or dropped on the modelled link.") {
            traffic, _ in traffic.packetsLost
        }
        perDirection("slowlane_link_retransmissions_total", "counter", "Packets retransmitted on the modelled link.") {
            traffic, _ in traffic.retransmissions
        }
        perDirection("slowlane_link_queue_packets", "gauge", "Packets in the queue of the modelled link.") {
            _, status in
            status?.link.queueDepth
        }
        addDatagrams(rows.filter { $0.proxy.protocols.contains(.udp) }, to: &metrics)
        perDirection(
            "slowlane_proxy_read_pauses_total", "counter", "Times reading from a sender was paused (back-pressure)."
        ) { traffic, _ in
            traffic.readPauses
        }
    }

    private static func addDatagrams(_ rows: [MetricsRow], to metrics: inout MetricsText) {
        func add(_ name: String, _ kind: String, _ help: String, _ value: (MetricsRow) -> Int) {
            metrics.add(name, kind, help: help, rows.map { ($0.labels, "\(value($0))") })
        }
        func perDirection(_ name: String, _ help: String, _ value: (MetricsRow) -> PerDirection<Int>) {
            metrics.add(
                name, "counter", help: help,
                rows.flatMap { row in
                    [Direction.down, .up].map { (row.directionLabels[$0], "\(value(row)[$0])") }
                })
        }
        add("slowlane_udp_sessions", "gauge", "Open sessions of datagrams.") { $0.status?.datagrams?.sessions ?? 0 }
        add("slowlane_udp_sessions_total", "counter", "Sessions of datagrams opened.") { $0.traffic.sessionsOpened }
        perDirection("slowlane_udp_received_datagrams_total", "Datagrams read from sockets.") {
            $0.traffic.datagramsReceived
        }
        perDirection("slowlane_udp_sent_datagrams_total", "Datagrams that have left the modelled link.") {
            $0.traffic.datagramsSent
        }
        add("slowlane_udp_discarded_datagrams_total", "counter", "Datagrams discarded because a buffer was full.") {
            $0.traffic.datagramsDiscarded
        }
    }

    private static func addProcess(_ version: String, to metrics: inout MetricsText) {
        metrics.add(
            "slowlane_build_info", "gauge", help: "The version of this build.",
            [(MetricsText.labels([("toxiproxy", toxiproxyVersion), ("version", version)]), "1")])
        var usage = rusage()
        #if canImport(Glibc)
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
        getrusage(RUSAGE_SELF, &usage)
        #endif
        let seconds =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        metrics.add(
            "process_cpu_seconds_total", "counter", help: "User and system CPU time.", [("", "\(seconds)")])
        #if os(Linux)
        for (name, help, value) in ProcessMetrics.gauges {
            metrics.add(name, "gauge", help: help, [("", "\(value)")])
        }
        #endif
    }
}
