#if os(Linux)
import Foundation
import TestSupport
import Testing

/// `slowlane proxy --udp`, with clients and servers of DNS and HTTP/3.
@Suite(.tags(.tools), .timeLimit(.minutes(5))) struct DatagramCommandTests {
    private static let script = Repository.root.appending(path: "Tests/Program/CommandTests/Python/datagram_peer.py")
        .path()
    private static let python = Repository.root.appending(path: ".build/python/bin/python")

    /// Starts a server and returns it with its port.
    private static func server(_ arguments: String...) async throws -> (server: Command, port: String) {
        let server = try Command([script] + arguments, binary: python)
        await server.output.wait { $0.text.contains("\n") || $0.isFinished }
        let port = server.output.text.split(separator: "\n").first.map(String.init)
        return (server, try #require(port, "\(server.errors.text)"))
    }

    private struct Answer: Decodable {
        let texts: Int?
        let status: Int?
        let bytes: Int?
        let error: String?
        let seconds: Double
    }

    private static func client(_ arguments: String...) async throws -> Answer {
        let (status, output) = try await runPython("python", [script] + arguments)
        #expect(status == 0, "\(output)")
        return try JSONDecoder().decode(Answer.self, from: Data(output.utf8))
    }

    private static func port(of proxy: Command) async throws -> String {
        let line = try await proxy.output.line(with: "listening on ")
        return String(try #require(line.split(separator: " ")[2].split(separator: ":").last))
    }

    @Test func aResolverRepeatsALostQueryAndTakesALongResponseOverTCP() async throws {
        let folder = try TemporaryFolder()
        let profile = folder.url.appending(path: "lossy.yaml")
        let text = "profile: 1\nname: Lossy\ndown: { delay: 10 ms }\nup: { delay: 10 ms, lose-packets: 1 }\n"
        try text.write(to: profile, atomically: true, encoding: .utf8)
        let (server, upstream) = try await Self.server("dns-server")
        let proxy = try Command([
            "proxy", "--protocol", "tcp,udp", "--upstream", upstream, "--profile", profile.path(),
        ])
        let port = try await Self.port(of: proxy)
        #expect(proxy.output.text.contains("-> 127.0.0.1:\(upstream) (tcp,udp), profile lossy"))
        let repeated = try await Self.client("dns", port, "a.test", "1")
        #expect(repeated.texts == 1 && repeated.seconds >= 1.02, "\(repeated)")
        let long = try await Self.client("dns", port, "large.test", "5")
        #expect(long.texts == 40 && long.seconds >= 0.06, "\(long)")
        proxy.type("status\ndisconnect\nquit\n")
        let status = try await proxy.output.line(with: "ok profile")
        // The lost query, the repeated one, and the one with the truncated response.
        #expect(status.contains("0 open of 1 accepted"), "\(status)")
        #expect(status.contains("1 packet lost") && status.contains("datagrams 2 down, 2 up"), "\(status)")
        #expect(await proxy.end() == 0)
        server.signal(9)
    }

    @Test func http3DownloadsOverASlowLink() async throws {
        let certificates = try TestCertificates()
        let (server, upstream) = try await Self.server(
            "h3-server", certificates.certificate("right"), certificates.key("right"))
        let proxy = try Command(["proxy", "--udp", "--upstream", upstream, "--profile", "3g"])
        let port = try await Self.port(of: proxy)
        let download = try await Self.client("h3", port, certificates.certificate("ca"), "/150000")
        #expect(download.status == 200 && download.bytes == 150_000, "\(download)")
        // 150 000 bytes at 780 kbit/s, and two round trips of 200 ms.
        #expect(download.seconds >= 1.53 + 0.4, "\(download)")
        proxy.type("quit\n")
        #expect(await proxy.end() == 0)
        server.signal(9)
    }

    @Test(arguments: [
        (
            ["--udp", "--forward"],
            "--udp needs --upstream HOST:PORT; a forward proxy forwards TCP and the datagrams of SOCKS 5"
        ),
        (["--udp", "--upstream", "https://a.test"], "--udp cannot be combined with TLS of the proxy"),
        (["--udp", "--protocol", "tcp", "--upstream", "1"], "give --udp or --protocol, not both"),
        (["--protocol", "sctp", "--upstream", "1"], "--protocol 'sctp' must be tcp, udp or tcp,udp"),
        (
            ["--udp", "--upstream", "1", "--fault", "any * after-response reset"],
            "--fault and --har are for HTTP over TCP"
        ),
    ]) func whatCannotBeCombinedIsAnError(_ arguments: [String], _ error: String) async throws {
        let result = try await Command.run(["proxy"] + arguments)
        #expect(result.status == 64 && result.errors.contains(error), "\(result.errors)")
    }

    @Test func aCaptureContainsTheDatagrams() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "udp.pcapng").path()
        let (server, upstream) = try await Self.server("dns-server")
        let proxy = try Command(["proxy", "--udp", "--upstream", upstream, "--pcapng", file, "--delay", "20ms"])
        let answer = try await Self.client("dns", try await Self.port(of: proxy), "a.test", "5")
        #expect(answer.texts == 1 && answer.seconds >= 0.04)
        proxy.type("quit\n")
        #expect(await proxy.end() == 0)
        server.signal(9)
        let lines = try await blocking {
            try runProgram(
                "tshark",
                [
                    "-r", file, "-d", "udp.port==\(upstream),dns", "-o", "udp.check_checksum:TRUE", "-T", "fields",
                    "-e",
                    "ip.len", "-e", "udp.checksum.status", "-e", "dns.qry.name", "-e", "dns.txt",
                ]
            ).output.split(separator: "\n").map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
        }
        #expect(lines.count == 2 && lines.allSatisfy { $0.count == 4 && $0[1] == "1" && $0[2] == "a.test" }, "\(lines)")
        #expect(lines.map { $0.last ?? "" } == ["", "hello"])
    }
}
#endif
