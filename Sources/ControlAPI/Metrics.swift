internal import Foundation
internal import HTTPTypes
internal import LinkModel
internal import ProxyServer

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Metrics as text: Prometheus 0.0.4, or OpenMetrics 1.0 for those who accept it.
struct MetricsText {
    private(set) var text = ""
    let isOpenMetrics: Bool

    /// One sample: labels in order, and the value.
    typealias Sample = (labels: [(String, String)], value: String)

    mutating func add(_ name: String, _ kind: String, help: String = "", _ samples: [Sample]) {
        if samples.isEmpty { return }
        // OpenMetrics names the family without the suffix that its counters' samples have.
        let family = isOpenMetrics && kind == "counter" && name.hasSuffix("_total") ? String(name.dropLast(6)) : name
        text += "# HELP \(family) \(help)\n# TYPE \(family) \(kind)\n"
        for (labels, value) in samples {
            let list = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
            text += list.isEmpty ? "\(name) \(value)\n" : "\(name){\(list)} \(value)\n"
        }
    }

    mutating func finish() {
        if isOpenMetrics { text += "# EOF\n" }
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

extension API {
    func metricsAnswer(_ choice: MetricsChoice, _ request: HTTPRequest) async -> Answer {
        let isOpenMetrics = request.headerFields[.accept]?.contains("application/openmetrics-text") == true
        var metrics = MetricsText(isOpenMetrics: isOpenMetrics)
        if choice.proxies { await addProxies(to: &metrics) }
        if choice.process { addProcess(to: &metrics) }
        metrics.finish()
        let type =
            isOpenMetrics
            ? "application/openmetrics-text; version=1.0.0; charset=utf-8" : "text/plain; version=0.0.4; charset=utf-8"
        return Answer(status: .ok, type: type, body: metrics.text)
    }

    private func addProxies(to metrics: inout MetricsText) async {
        var rows: [(proxy: ManagedProxy, traffic: Traffic, status: ProxyStatus?)] = []
        for proxy in await registry.all {
            let status = await proxy.running?.status()
            var traffic = proxy.past
            if let status { traffic += Traffic(status) }
            rows.append((proxy, traffic, status))
        }
        func labels(_ proxy: ManagedProxy, _ direction: Direction?) -> [(String, String)] {
            let stream = direction.map { [("direction", $0 == .up ? "upstream" : "downstream")] } ?? []
            return stream + [("listener", proxy.listen), ("proxy", proxy.name), ("upstream", proxy.upstream)]
        }
        func perDirection(
            _ name: String, _ kind: String, _ help: String = "",
            _ value: (Traffic, ProxyStatus?) -> PerDirection<Int>?
        ) {
            metrics.add(
                name, kind, help: help,
                rows.flatMap { row in
                    [Direction.down, .up].compactMap { direction in
                        value(row.traffic, row.status).map { (labels(row.proxy, direction), "\($0[direction])") }
                    }
                })
        }
        func perProxy(_ name: String, _ kind: String, _ help: String, _ value: (Traffic, ProxyStatus?) -> Int) {
            metrics.add(
                name, kind, help: help,
                rows.map { (labels($0.proxy, nil), "\(value($0.traffic, $0.status))") })
        }
        perDirection("toxiproxy_proxy_received_bytes_total", "counter") { traffic, _ in traffic.received }
        perDirection("toxiproxy_proxy_sent_bytes_total", "counter") { traffic, _ in traffic.sent }
        perProxy("slowlane_proxy_connections_open", "gauge", "Connections with an open socket.") { _, status in
            status?.connectionsOpen ?? 0
        }
        perProxy("slowlane_proxy_connections_total", "counter", "Connections accepted.") { traffic, _ in
            traffic.accepted
        }
        perProxy("slowlane_proxy_dials_failed_total", "counter", "Upstreams that could not be reached.") { traffic, _ in
            traffic.dialsFailed
        }
        perProxy("slowlane_proxy_held_bytes", "gauge", "Payload held in memory.") { _, status in
            status?.link.bytesHeld ?? 0
        }
        perDirection("slowlane_link_lost_packets_total", "counter", "Packets lost or dropped on the modelled link.") {
            traffic, _ in traffic.lost
        }
        perDirection("slowlane_link_retransmissions_total", "counter", "Packets sent again on the modelled link.") {
            traffic, _ in traffic.retransmitted
        }
        perDirection("slowlane_link_queue_packets", "gauge", "Packets in the modelled link's queue.") { _, status in
            status?.link.queueDepth
        }
        perDirection("slowlane_proxy_stalls_total", "counter", "How often a sender had to wait.") { traffic, _ in
            traffic.stalls
        }
    }

    private func addProcess(to metrics: inout MetricsText) {
        metrics.add(
            "slowlane_build_info", "gauge", help: "Which build this is.",
            [([("toxiproxy", Self.toxiproxyVersion), ("version", version)], "1")])
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
            "process_cpu_seconds_total", "counter", help: "User and system CPU time.", [([], "\(seconds)")])
        #if os(Linux)
            for (name, help, value) in ProcessStatus.figures {
                metrics.add(name, "gauge", help: help, [([], "\(value)")])
            }
        #endif
    }
}

#if os(Linux)
    /// What Linux says of this process, under the names that Prometheus' clients give it.
    enum ProcessStatus {
        static var figures: [(name: String, help: String, value: Int)] {
            var figures: [(String, String, Int)] = []
            if let memory = words(of: "/proc/self/statm"), memory.count > 1 {
                let page = Int(sysconf(CInt(_SC_PAGESIZE)))
                figures.append(("process_virtual_memory_bytes", "Virtual memory.", (Int(memory[0]) ?? 0) * page))
                figures.append(("process_resident_memory_bytes", "Resident memory.", (Int(memory[1]) ?? 0) * page))
            }
            if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
                figures.append(("process_open_fds", "Open files.", files))
            }
            var limit = rlimit()
            #if canImport(Glibc)
                let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            #else
                let resource = RLIMIT_NOFILE
            #endif
            if getrlimit(resource, &limit) == 0 {
                figures.append(("process_max_fds", "How many files may be open.", Int(clamping: limit.rlim_cur)))
            }
            if let start { figures.append(("process_start_time_seconds", "Start, in seconds since 1970.", start)) }
            return figures
        }

        /// When the process began.
        private static let start: Int? = {
            // The 22nd field is the start in ticks since boot; the second, in parentheses, may have spaces in it.
            guard let status = words(of: "/proc/self/stat"), let end = status.lastIndex(where: { $0.hasSuffix(")") }),
                status.count > end + 20, let ticks = Int(status[end + 20]),
                let boot = words(of: "/proc/stat").flatMap({ words in
                    words.firstIndex(of: "btime").flatMap { Int(words[$0 + 1]) }
                })
            else { return nil }
            return boot + ticks / Int(sysconf(CInt(_SC_CLK_TCK)))
        }()

        private static func words(of path: String) -> [Substring]? {
            guard let data = FileManager.default.contents(atPath: path) else { return nil }
            return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        }
    }
#endif
