import Foundation
import TestSupport
import Testing
import Wire

@testable import slowlane

/// `toxiproxy-cli`, compared with a recording of Toxiproxy 2.12.0's client and server.
@Suite(.tags(.tools), .timeLimit(.minutes(10))) struct ToxiproxyCLITests {
    /// A command of the table, with the exit status and the output of the original.
    private struct Row {
        let arguments: [String]
        let environment: [String: String]
        let status: Int32
        /// Standard output without the help.
        let output: String
        /// The name of the command whose help ends standard output. The text of the help is Slowlane's.
        let help: String?
        let errors: String
        /// Why Slowlane's output differs.
        let difference: String?

        init(_ json: JSONValue) throws {
            let object = try #require(json.object)
            guard case .array(let arguments)? = object["args"] else { throw CocoaError(.fileReadCorruptFile) }
            self.arguments = arguments.compactMap(\.text)
            var environment: [String: String] = [:]
            for (name, value) in object["environment"]?.object ?? [:] { environment[name] = value.text }
            self.environment = environment
            guard case .integer(let status)? = object["status"] else { throw CocoaError(.fileReadCorruptFile) }
            self.status = Int32(status)
            output = try #require(object["stdout"]?.text)
            help = object["help"]?.text
            errors = try #require(object["stderr"]?.text)
            difference = object["differs"]?.text
        }
    }

    private static let table = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Tables/toxiproxy-cli.json")

    /// The rows run one after the other on one server, and depend on the changes of earlier rows.
    @Test func everyCommandOfTheTableMatchesTheOriginal() async throws {
        let json = try #require(JSONText.parse(Array(try Data(contentsOf: Self.table))))
        guard case .array(let values) = json else { throw CocoaError(.fileReadCorruptFile) }
        let rows = try values.map(Row.init)
        try #require(rows.count >= 111)

        let folder = try TemporaryFolder()
        let link = folder.url.appending(path: "toxiproxy-cli")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: Command.binary)
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        var words = ["server": url, "bare": String(url.dropFirst("http://".count))]
        for name in ["port1", "port2", "port3", "port4", "closed"] {
            words[name] = "\(try TestSocket.unusedPort())"
        }
        func filled(_ text: String) -> String {
            words.reduce(text) { $0.replacing("{\($1.key)}", with: $1.value) }
        }

        var equal = 0
        for row in rows {
            let variables = ["TOXIPROXY_URL": url].merging(row.environment.mapValues(filled)) { $1 }
            let command = try Command(
                variables.map { "\($0)=\($1)" } + [link.path()] + row.arguments.map(filled),
                binary: URL(filePath: "/usr/bin/env"))
            command.type("", andClose: true)
            let status = await command.end()
            var output = command.output.text
            if let help = row.help, let start = output.range(of: "NAME:\n   ") {
                let title = output[start.upperBound...].prefix { $0 != "\n" }
                #expect(row.difference != nil || title.hasPrefix("\(help) - "), "\(row.arguments): \(title)")
                output = String(output[..<start.lowerBound])
            }
            #expect(status == row.status, "\(row.arguments): \(command.output.text)\(command.errors.text)")
            guard row.difference == nil else { continue }
            #expect(output == filled(row.output), "\(row.arguments)")
            #expect(command.errors.text == filled(row.errors), "\(row.arguments)")
            equal +=
                status == row.status && output == filled(row.output) && command.errors.text == filled(row.errors)
                ? 1 : 0
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
        #expect(equal == rows.count { $0.difference == nil }, "\(equal) of \(rows.count) are equal")
    }

    @Test func aTerminalGetsColorsHeadingsAndHints() async throws {
        let server = try Command(["server", "--port", "0"])
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        func run(_ words: String) async -> String {
            let cli = ToxiproxyCLI(environment: ["TOXIPROXY_URL": url], isTerminal: true)
            let outcome = await cli.run(words.split(separator: " ").map(String.init))
            #expect(outcome.status == 0 && outcome.errors.isEmpty)
            return outcome.output.replacing("\u{1B}", with: "^")
        }
        let heading =
            "^[32mName\t\t\t^[34mListen\t\t^[33mUpstream\t\t^[35mEnabled\t\t^[31mToxics\n^[0m^[0m"
            + String(repeating: "=", count: 86) + "\n"
        #expect(
            await run("list")
                == heading + "^[31mno proxies\n^[0m\n^[0mHint: create a proxy with `toxiproxy-cli create`\n")
        let port = try TestSocket.unusedPort()
        _ = await run("create -l 127.0.0.1:\(port) -u 127.0.0.1:1 redis")
        #expect(await run("toggle redis") == "Proxy ^[31mredis^[0m is now ^[31mdisabled^[0m\n")
        #expect(await run("toggle redis") == "Proxy ^[32mredis^[0m is now ^[32menabled^[0m\n")
        #expect(
            await run("list")
                == heading
                + "^[32mredis^[0m\t\t\t^[34m127.0.0.1:\(port)^[0m\t^[33m127.0.0.1:1^[0m\t\t^[35menabled^[0m\t\t^[31mNone^[0m\n"
                + "\n^[0mHint: inspect toxics with `toxiproxy-cli inspect <proxyName>`\n")
        _ = await run("toxic add -t latency -a latency=5 -u redis")
        #expect(
            await run("inspect redis")
                == "^[35mName: ^[0mredis\t^[34mListen: ^[0m127.0.0.1:\(port)\t^[33mUpstream: ^[0m127.0.0.1:1\n^[0m"
                + String(repeating: "=", count: 70) + "\n^[32mUpstream toxics:\n^[0m^[34mlatency_upstream:^[0m\t"
                + "type=latency\tstream=upstream\ttoxicity=1.00\tattributes=[\tjitter=0\tlatency=5\t]\n\n"
                + "^[32mDownstream toxics:\n^[0m^[31mProxy has no Downstream toxics enabled.\n^[0m"
                + "\n^[0mHint: add a toxic with `toxiproxy-cli toxic add`\n")
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    /// The formats of Go's `fmt.Print`.
    @Test(arguments: [
        (0.0, "0"), (1, "1"), (-5, "-5"), (1000, "1000"), (123_456, "123456"), (999_999, "999999"),
        (1_000_000, "1e+06"),
        (21_000_000, "2.1e+07"), (1_234_567, "1.234567e+06"), (0.5, "0.5"), (0.1, "0.1"), (100.25, "100.25"),
        (0.0001, "0.0001"), (0.00001, "1e-05"), (1.5e-7, "1.5e-07"), (1e100, "1e+100"), (1e21, "1e+21"),
    ]) func numbersAreFormattedAsInGo(_ value: Double, _ text: String) {
        #expect(GoText.format(value) == text)
    }

    @Test func numbersAreParsedAsInGo() {
        for (text, value) in [("5", 5.0), ("+5", 5), ("1e2", 100), (".5", 0.5), ("0x1p-1", 0.5)] {
            #expect(GoText.number(text) == value, "\(text)")
        }
        for text in ["", "abc", "_5", " 5", "0x10", "1e400", "nan(1)", "5 "] {
            #expect(GoText.number(text) == nil, "\(text)")
        }
        #expect(GoText.number("Inf") == .infinity)
    }
}
