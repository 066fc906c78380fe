import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// Commands under conditions that let no connection through, and the JSON of conditions.
    @Suite(.serialized) struct ConditionsTests {
        @Test(arguments: [
            ("offline", "it refuses all connections (ECONNREFUSED)"), ("dns", "(ECONNREFUSED)"),
            ("portal", "captive portal"), ("100-loss", "100 % loss"), ("uplink-loss", "100 % loss"),
        ]) func aProfileThatLetsNoEchoThroughIsNotMeasured(_ profile: String, reason: String) async throws {
            let result = try await Command.run("measure", profile)
            #expect(result.status == 64)
            #expect(result.errors.hasPrefix("error: cannot measure '\(profile)': "), "\(result.errors)")
            #expect(result.errors.contains(reason), "\(result.errors)")
            #expect(result.output.isEmpty)
        }

        @Test(arguments: ["offline", "dns", "portal"])
        func aProfileThatLetsNoConnectionThroughIsNotModelled(_ profile: String) async throws {
            for arguments in [["--profile", profile], ["--timeline", "0s: 3g, 20s: \(profile)"]] {
                let command = try Command(["model", "--plan", "ttfb", "--trials", "1"] + arguments)
                #expect(await command.end() == 64)
                #expect(
                    command.errors.text.contains(
                        "cannot model '\(profile)': no connection to the server is possible"))
                #expect(command.output.text.isEmpty)
            }
        }

        @Test func repliesNameTheOutageThatRemains() async throws {
            let (_, upstream) = try TestSocket.listen()
            let command = try Command(["proxy", "--upstream", "\(upstream)"])
            func reply(_ line: String, _ expected: String) async throws {
                command.type("\(line)\n")
                let reply = try await command.output.line(with: expected)
                #expect(reply == expected)
            }
            let outage = "'outage' still blocks"
            try await reply("outage up", "ok outage up")
            try await reply(
                "profile edge",
                "ok profile edge: down 240 kbit/s 400 ms, up 200 kbit/s 440 ms; \(outage) upstream: end it with 'end-outage'"
            )
            try await reply("outage", "ok outage both")
            try await reply("clear", "ok clear: no conditions; \(outage) both directions: end it with 'end-outage'")
            try await reply(
                "timeline subway", "ok timeline subway; \(outage) both directions: end it with 'end-outage'")
            command.type("profile 100-loss\nend-outage\n")
            #expect(
                try await command.output.line(with: "ok end-outage")
                    == "ok end-outage; '100-loss' still blocks both directions (100 % loss): change it with 'profile NAME' or 'clear'"
            )
            command.type("profile offline\nend-outage\n")
            #expect(try await command.output.line(with: "'offline' still").contains("refuses all connections"))
            command.type("clear\nend-outage\nquit\n")
            _ = try await command.output.line(with: "ok quit")
            #expect(await command.end() == 0)
            #expect(command.output.text.hasSuffix("ok clear: no conditions\nok end-outage\nok quit\n"))
        }

        private static func object(_ text: some StringProtocol) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }

        private static func json(_ object: Any?) throws -> Data {
            try JSONSerialization.data(withJSONObject: try #require(object), options: .sortedKeys)
        }

        @Test func profilesTimelinesAndTheAPIHaveOneSchema() async throws {
            let edge = try Self.object(try await Command.run("profiles", "show", "edge", "--json").output)
            let down = try #require(edge["down"] as? [String: Any])
            #expect(down["rate_bps"] as? Int == 240_000)
            #expect(down["delay_ms"] as? Int == 400 && down["loss_percent"] as? Int == 0)
            #expect(edge["connection_policy"] as? String == "open" && edge["type"] as? String == "profile")

            let timeline = try Self.object(try await Command.run("profiles", "show", "subway", "--json").output)
            #expect(timeline["type"] as? String == "timeline" && timeline["id"] as? String == "subway")
            let entries = try #require(timeline["entries"] as? [[String: Any]])
            #expect(entries.first?["start_ms"] as? Int == 0)
            let link = try #require(entries.first?["link"] as? [String: Any])
            #expect((link["down"] as? [String: Any])?["rate_bps"] != nil)

            let list = try await Command.run("profiles", "list", "--json").output.split(separator: "\n")
            let types = try list.map { try Self.object($0)["type"] as? String }
            #expect(types.count { $0 == "profile" } == 52 && types.count { $0 == "timeline" } == 4)

            let server = try Command(["server", "--port", "0"])
            let line = try await server.output.line(with: "listening on ")
            let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
            #expect(
                try await Command.run("create", "p", "--upstream", "1", "--profile", "edge", "--host", url).status == 0)
            let inspected = try Self.object(try await Command.run("inspect", "p", "--json", "--host", url).output)
            let shown = try #require(inspected["link"] as? [String: Any])
            #expect(shown["profile"] as? String == "edge")
            #expect(try Self.json(shown["down"]) == Self.json(down))
            #expect(shown["dns_delay_ms"] as? Int == 0 && shown["connection_policy"] as? String == "open")
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        @Test func unknownAttributesAndProbabilitiesAboveOneAreRefused() async throws {
            let server = try Command(["server", "--port", "0"])
            let line = try await server.output.line(with: "listening on ")
            let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
            #expect(try await Command.run("create", "p", "--upstream", "1", "--host", url).status == 0)
            func toxic(_ words: String) async throws -> Command.Result {
                let command = try Command(
                    ["toxic"] + words.split(separator: " ").map(String.init) + ["p", "--host", url])
                let status = await command.end()
                return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
            }
            for (words, message) in [
                ("add -t bandwidth -a rates=100", "a bandwidth toxic has no attribute 'rates'; did you mean 'rate'?"),
                (
                    "add -t latency -a latencyy=5",
                    "a latency toxic has no attribute 'latencyy'; did you mean 'latency'?"
                ),
                ("add -t noop -a delay=5", "a noop toxic has no attribute 'delay' (it has none)"),
                ("add -t packet_loss -a loss_rate=1.5", "the value must be a probability from 0 to 1"),
                ("add -t latency --toxicity 1.5", "--toxicity 1.5 must be a probability from 0 to 1"),
                ("add -t latency --toxicity=-0.1", "--toxicity -0.1 must be a probability from 0 to 1"),
            ] {
                let result = try await toxic(words)
                #expect(result.status == 64 && result.errors.contains(message), "\(words): \(result.errors)")
            }
            #expect(try await toxic("add -t latency -a Latency=5").status == 0)
            let update = try await toxic("update -n latency_downstream -a jiter=5")
            #expect(update.status == 64)
            #expect(update.errors.contains("a latency toxic has no attribute 'jiter'; did you mean 'jitter'?"))
            #expect(try await toxic("update -n latency_downstream --toxicity 2").status == 64)
            #expect(try await toxic("update -n latency_downstream -a jitter=5 --toxicity 1").status == 0)
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }
    }
}
