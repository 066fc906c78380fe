import CommandTraffic
import ForwardProxy
import LinkModel
import TestSupport
import Testing

@testable import Proxy
@testable import slowlane

/// The lines at the end of `slowlane with`.
@Suite struct CommandSummaryTests {
    private static func traffic(
        _ host: String?, connections: Int = 1, failed: Int = 0, up: Int = 10, down: Int = 2000
    ) -> HostTraffic {
        var traffic = HostTraffic(destination: host.map { Destination(host: $0, port: 443) })
        traffic.connections = connections
        traffic.connectionsFailed = failed
        traffic.bytes = PerDirection(up: up, down: down)
        return traffic
    }

    private static func summary(_ hosts: [HostTraffic], mode: CommandSummary.Mode = .connect) -> CommandSummary {
        CommandSummary(mode: mode, status: 0, hosts: hosts)
    }

    @Test func hostsAreInTheOrderOfTheirBytes() {
        let lines = Self.summary([
            Self.traffic("a.test", down: 1), Self.traffic("b.test", connections: 2, failed: 1),
            Self.traffic(nil, down: 5),
        ]).lines
        #expect(lines.map { $0.split(separator: " ").first } == ["b.test:443", "other", "a.test:443"])
        #expect(
            lines.first?.hasPrefix("b.test:443   2 connections  2.0 kB down  10 B up  1 failed") == true, "\(lines)")
    }

    @Test func onlyTheTenLargestHostsAreLines() {
        let lines = Self.summary((0..<13).map { Self.traffic("h\($0).test", down: $0) }).lines
        #expect(lines.count == 11)
        #expect(lines.last == "and 3 more hosts with 3 connections")
    }

    @Test func theReasonForNoTrafficDependsOnTheMode() {
        let start = "the command opened no connection through the proxy: "
        #expect(Self.summary([], mode: .env).lines.first?.hasPrefix(start + "it does not read proxy variables") == true)
        var summary = Self.summary([])
        #expect(summary.lines == [start + "it made no TCP connection, or one to a host of --bypass, or by io_uring"])
        summary.others.datagramSockets = [443: 2]
        #expect(
            summary.lines == [
                start + "it used UDP only, which was not redirected",
                "not through the proxy: UDP to port 443 (QUIC, 2 sockets)",
            ])
        summary.others.refused = 1
        #expect(summary.lines.first == start + "it connected only to ports of this machine on which nothing listens")
    }

    @Test func aFailedConnectionIsTraffic() {
        let summary = Self.summary([Self.traffic("a.test", connections: 0, failed: 1, up: 0, down: 0)])
        #expect(summary.connections == 1)
        #expect(summary.lines == ["a.test:443  0 connections  0 B down  0 B up  1 failed"])
    }

    @Test func otherTrafficFollowsTheHosts() {
        var summary = Self.summary([Self.traffic("a.test")])
        summary.faults = ["fault 1: matched 1, fired 1: POST *"]
        summary.others.datagramSockets = [53: 1, 443: 1, 5353: 9]
        summary.others.refused = 2
        summary.others.unreadable = 1
        summary.leavesProcesses = true
        #expect(
            summary.lines.dropFirst() == [
                "fault 1: matched 1, fired 1: POST *",
                "2 connections to ports of this machine on which nothing listens: refused at once",
                "not through the proxy: 1 connection of processes that do not allow their sockets to be copied",
                "not through the proxy: UDP to port 53 (DNS, 1 socket), port 443 (QUIC, 1 socket)",
                "processes that the command has started still run; their further connections fail (ENOSYS)",
            ])
    }

    @Test func theJSONHasTheSameFigures() {
        var summary = Self.summary([Self.traffic("a.test", connections: 2, failed: 1), Self.traffic(nil)])
        summary.others.datagramSockets = [443: 1]
        let text = summary.json(
            command: ["curl", "a"], conditions: "no conditions", faults: [(rule: "GET *", matched: 2, fired: 1)])
        for part in [
            #""command":["curl","a"]"#, #""mode":"connect""#, #""exit_status":0"#,
            #"{"host":"a.test","port":443,"connections":2,"connections_failed":1,"bytes_down":2000,"bytes_up":10}"#,
            #"{"host":null,"port":null,"#, #""faults":[{"rule":"GET *","matched":2,"fired":1}]"#,
            #""udp_sockets":{"443":1}"#, #""leaves_processes":false"#,
        ] {
            #expect(text.replacing(": ", with: ":").replacing(", ", with: ",").contains(part), "\(part) in \(text)")
        }
    }
}
