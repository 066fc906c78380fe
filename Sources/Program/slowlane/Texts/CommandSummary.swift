internal import CommandSupport
internal import CommandTraffic
internal import ForwardProxy
internal import LinkModel
internal import Proxy
internal import Wire

/// What a command of `slowlane with` has done to the network, for the end of the run.
struct CommandSummary {
    /// The way in which the command's connections reached the proxy.
    enum Mode: String {
        case connect, env
    }

    /// The way in which the command's connections reached the proxy.
    var mode: Mode
    /// The exit status of the command.
    var status: Int32
    /// The traffic of the proxy.
    var hosts: [HostTraffic]
    /// A line for each fault.
    var faults: [String] = []
    /// Calls that were not redirected in connect mode.
    var others = ConnectCounts()
    /// Whether processes are left that the command has started; in connect mode only.
    var leavesProcesses = false
    /// The hosts whose clients have not accepted the certificates of the proxy.
    var pinnedHosts: [String] = []

    /// The most hosts that are printed.
    private static let hostsMax = 10
    /// The ports of UDP whose traffic users expect to be slow, too.
    private static let datagramProtocols = [53: "DNS", 443: "QUIC"]

    /// The number of connections that reached the proxy.
    var connections: Int { hosts.reduce(0) { $0 + $1.connections + $1.connectionsFailed } }

    /// The summary in lines.
    var lines: [String] {
        let ordered = hosts.enumerated().sorted { left, right in
            let (first, second) = (Self.total(left.element), Self.total(right.element))
            return first != second ? first > second : left.offset < right.offset
        }
        var lines = TextTable.lines(ordered.prefix(Self.hostsMax).map { Self.cells($0.element) })
        let more = ordered.dropFirst(Self.hostsMax).reduce(0) { $0 + $1.element.connections }
        if ordered.count > Self.hostsMax {
            lines.append(
                "and \(TextTable.count(ordered.count - Self.hostsMax, "more host")) with "
                    + TextTable.count(more, "connection"))
        }
        if connections == 0 { lines.append(noTraffic) }
        lines += faults
        if others.refused > 0 && connections > 0 {
            lines.append(
                "\(TextTable.count(others.refused, "connection")) to ports of this machine on which nothing listens: refused at "
                    + "once")
        }
        if others.unreadable > 0 {
            lines.append(
                "not through the proxy: \(TextTable.count(others.unreadable, "connection")) of processes that do not allow "
                    + "their sockets to be copied")
        }
        if !datagrams.isEmpty { lines.append("not through the proxy: UDP to \(datagrams)") }
        if leavesProcesses {
            lines.append(
                "processes that the command has started still run; their further connections fail (ENOSYS)")
        }
        return lines
    }

    private var datagrams: String {
        others.datagramSockets.sorted { $0.key < $1.key }.compactMap { port, count in
            guard let name = Self.datagramProtocols[port] else { return nil }
            return "port \(port) (\(name), \(TextTable.count(count, "socket")))"
        }.joined(separator: ", ")
    }

    private var noTraffic: String {
        let reason =
            switch mode {
            case .env:
                "it does not read proxy variables, or it makes no connections to hosts other than those that it excludes "
                    + "from proxies; --mode connect redirects every program (Linux)"
            case .connect where others.refused > 0:
                "it connected only to ports of this machine on which nothing listens"
            case .connect where !others.datagramSockets.isEmpty:
                "it used UDP only, which was not redirected"
            case .connect: "it made no TCP connection, or one to a host of --bypass, or by io_uring"
            }
        return "the command opened no connection through the proxy: \(reason)"
    }

    private static func total(_ traffic: HostTraffic) -> Int { traffic.bytes.up + traffic.bytes.down }

    private static func cells(_ traffic: HostTraffic) -> [String] {
        [
            TextTable.singleLine(traffic.destination?.description ?? "other hosts"),
            TextTable.count(traffic.connections, "connection"),
            "\(Units.bytes(traffic.bytes.down)) down", "\(Units.bytes(traffic.bytes.up)) up",
            traffic.connectionsFailed > 0 ? "\(traffic.connectionsFailed) failed" : "",
        ]
    }

    /// The summary as a JSON object.
    func json(command: [String], conditions: String, faults: [(rule: String, matched: Int, fired: Int)]) -> String {
        JSONText.object([
            ("type", JSONText.string("command")), ("version", "1"),
            ("command", JSONText.array(command.map(JSONText.string))), ("mode", JSONText.string(mode.rawValue)),
            ("conditions", JSONText.string(conditions)), ("exit_status", "\(status)"),
            (
                "hosts",
                JSONText.array(
                    hosts.map { traffic in
                        JSONText.object([
                            ("host", JSONText.string(traffic.destination?.host)),
                            ("port", traffic.destination.map { "\($0.port)" } ?? "null"),
                            ("connections", "\(traffic.connections)"),
                            ("connections_failed", "\(traffic.connectionsFailed)"),
                            ("bytes_down", "\(traffic.bytes.down)"), ("bytes_up", "\(traffic.bytes.up)"),
                        ])
                    })
            ),
            (
                "faults",
                JSONText.array(
                    faults.map { fault in
                        JSONText.object([
                            ("rule", JSONText.string(fault.rule)), ("matched", "\(fault.matched)"),
                            ("fired", "\(fault.fired)"),
                        ])
                    })
            ),
            ("pinned_hosts", JSONText.array(pinnedHosts.map { JSONText.string($0) })),
            ("connections_refused_locally", "\(others.refused)"),
            (
                "udp_sockets",
                JSONText.object(
                    others.datagramSockets.sorted { $0.key < $1.key }.map { ("\($0.key)", "\($0.value)") })
            ),
            ("leaves_processes", "\(leavesProcesses)"),
        ])
    }
}
