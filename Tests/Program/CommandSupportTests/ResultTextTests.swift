import ConfigFiles
import Determinism
import LinkModel
import Logging
import Testing
import Wire

@testable import CommandSupport
@testable import PacketCapture
@testable import slowlane

/// The results of commands as text.
@Suite struct ResultTextTests {
    private static func json(_ text: String) throws -> JSONValue { try #require(JSONText.parse(text.utf8)) }

    private static let proxies = """
        {"redis":{"listen":"127.0.0.1:26379","upstream":"db:6379","enabled":true,"toxics":[{"name":"a"},{"name":"b"}]},
         "api":{"listen":"127.0.0.1:1","upstream":"x:2","enabled":false,"toxics":[]}}
        """

    @Test func proxiesHaveAHeaderOnATerminalAndTabsElsewhere() throws {
        let proxies = try Self.json(Self.proxies)
        #expect(
            ProxyText.list(proxies, terminalWidth: nil) == [
                "api\t127.0.0.1:1\tx:2\tdisabled\t0", "redis\t127.0.0.1:26379\tdb:6379\tenabled\t2",
            ])
        #expect(
            ProxyText.list(proxies, terminalWidth: 100) == [
                "NAME   LISTEN           UPSTREAM  STATE     TOXICS",
                "api    127.0.0.1:1      x:2       disabled  0",
                "redis  127.0.0.1:26379  db:6379   enabled   2",
            ])
        #expect(ProxyText.list(.null, terminalWidth: nil).isEmpty)
    }

    @Test(arguments: [80, 90, 110, 200]) func theProfilesFitATerminalWithWholeNamesAndValues(_ width: Int) {
        let lines = ProfileText.catalogue(width: width)
        #expect(lines.allSatisfy { $0.count <= width }, "\(lines)")
        for profile in ProfileCatalogue.builtIn {
            #expect(
                lines.contains { $0.hasPrefix("\(profile.id)  ") && (width < 90 || !$0.contains("...")) },
                "\(profile.id)")
        }
        #expect(
            lines.contains { $0.contains("240 kbit/s") && $0.contains(width < 120 ? "400/440 ms" : "400 ms / 440 ms") })
    }

    @Test func theLinkOfAProxyIsShownOnlyIfTheServerHasLinks() throws {
        let proxy = try #require(try Self.json(Self.proxies).object?["redis"])
        #expect(ProxyText.heading("redis", proxy, details: nil) == ["redis: 127.0.0.1:26379 -> db:6379, enabled"])
        let details = try Self.json(
            """
            {"seed":7,"connections_open":1,"link":{"profile":"edge","timeline":null,
             "down":{"rate_bps":240000,"delay_ms":400,"loss_percent":0},
             "up":{"rate_bps":null,"delay_ms":0.5,"loss_percent":1.5}}}
            """)
        #expect(
            ProxyText.heading("redis", proxy, details: details).last
                == "link: edge, down 240 kbit/s 400 ms, up no rate limit 0.5 ms 1.5 % loss; seed 7; 1 open connection")
        #expect(ProxyText.json(proxy, details: nil) == proxy.json)
        let merged = try Self.json(ProxyText.json(proxy, details: details))
        #expect(merged["seed"] == 7 && merged["connections_open"] == 1 && merged["listen"] == "127.0.0.1:26379")
    }

    @Test(arguments: ["1e300", "-1e300", "\"x\"", "1.5"])
    func anImpossibleNumberOfConnectionsFromAServerIsShownAsZero(_ number: String) throws {
        let details = try Self.json("{\"connections_open\":\(number)}")
        #expect(ProxyText.heading("p", .null, details: details).last?.hasSuffix("; 0 open connections") == true)
    }

    @Test func aToxicHasTabSeparatedFields() throws {
        let toxic = try Self.json(
            #"{"name":"n","type":"latency","stream":"upstream","toxicity":0.5,"attributes":{"latency":5,"jitter":0}}"#)
        #expect(
            ProxyText.toxic(toxic)
                == "n\ttype=latency\tstream=upstream\ttoxicity=0.50\tattributes=[\tjitter=0\tlatency=5\t]")
    }

    @Test func theLineOfAnExchangeHasNoQueryAndNoControlCharacters() {
        let (client, server) = (
            TCPSegment.Endpoint(address: [10, 0, 0, 1], port: 4000),
            TCPSegment.Endpoint(address: [10, 0, 0, 2], port: 80)
        )
        let start: Int64 = 1_700_000_000_000_001_500
        let exchange = CapturedExchange(
            client: client, server: server, method: "GET", target: "/a\u{1B}b?token=secret", status: nil,
            requestBytes: 90, responseBytes: 0, start: start, firstByte: start + 2_000_000, end: start + 3_500_000)
        #expect(
            CaptureText.line(.exchange(exchange), showsConnections: false)
                == "22:13:20.000001  10.0.0.1:4000  GET /a b?... -> no response, 90 B up, 0 B down, first byte 2.000 ms, "
                + "3.500 ms")
        let opened = CaptureEvent.opened(client: client, server: server, at: start)
        #expect(CaptureText.line(opened, showsConnections: false) == nil)
        #expect(
            CaptureText.line(opened, showsConnections: true)
                == "22:13:20.000001  10.0.0.1:4000 -> 10.0.0.2:80 opened")
    }

    @Test func aTimelineShowsWhatHappensAndWhen() throws {
        let file = try ProfileCatalogue.timeline("0s: edge, 20s: 100-loss")
        let lines = ProfileText.lines(file)
        #expect(lines.first == "inline: 0s: edge, 20s: 100-loss")
        #expect(lines.dropFirst(2).first == "FROM  CONDITIONS")
        #expect(lines.last == "20s   100-loss (down 100 % loss, up 100 % loss)")
    }

    @Test func aLinkThatEverRefusesConnectionsIsNamed() throws {
        let open = LinkSource.timeline(try ProfileCatalogue.timeline("0s: edge, 20s: 100-loss"))
        #expect(open.connectionProblem == nil)
        #expect(LinkSource.unconditioned.connectionProblem == nil)
        let refusing = LinkSource.timeline(try ProfileCatalogue.timeline("0s: edge, 20s: offline"))
        #expect(
            refusing.connectionProblem
                == "'offline': no connection to the server is possible (all connections refused); "
                + "choose a profile that lets connections through")
    }

    @Test func logLevelsHaveToxiproxysNamesToo() {
        let levels: [(String, Logger.Level?)] = [
            ("panic", .critical), ("FATAL", .critical), ("warn", .warning), ("Info", .info), ("trace", .trace),
            ("", nil), ("loud", nil),
        ]
        for (name, level) in levels { #expect(ForegroundServer.level(name) == level, "\(name)") }
    }
}
