internal import ArgumentParser
internal import Foundation
internal import JSON

/// A command that calls a server and shows what it says.
protocol ControlCommand: AsyncParsableCommand {
    var server: ServerOptions { get }
    /// What failed, if it does: `list proxies`.
    var purpose: String { get }
    func run(_ client: APIClient, _ console: Console) async throws
}

extension ControlCommand {
    mutating func run() async throws {
        let console = Console()
        let client = try server.client()
        do {
            try await run(client, console)
        } catch let failure as APIClient.Failure {
            console.print("Failed to \(purpose): \(failure)", to: .progress)
            throw ExitStatus.failed
        }
    }
}

extension JSONValue {
    subscript(key: String) -> JSONValue { object?[key] ?? .null }

    /// The value without the quotes of a string.
    var shown: String { text ?? json }

    var array: [JSONValue] {
        if case .array(let values) = self { return values }
        return []
    }
}

/// Rows for people on a terminal, tab-separated for programs.
enum Table {
    static func print(_ rows: [[String]], header: [String], _ console: Console) {
        guard Terminal.isTerminal(STDOUT_FILENO) else {
            for row in rows { console.print(row.joined(separator: "\t")) }
            return
        }
        let widths = header.indices.map { column in ([header] + rows).map { $0[column].count }.max() ?? 0 }
        for row in [header] + rows {
            let cells = zip(row, widths).map { $0.padding(toLength: max($1, $0.count), withPad: " ", startingAt: 0) }
            console.print(cells.joined(separator: "  ").trimmingCharacters(in: .whitespaces))
        }
    }
}

/// `slowlane list`.
struct ListCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists a server's proxies.",
        discussion: """
            Examples:
              slowlane list
              slowlane list --host http://ci-host:8474 --json
            """, aliases: ["l", "li", "ls"])

    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "list proxies" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let proxies = try await client.call("GET", "/proxies")
        if server.json { return console.print(proxies.json) }
        let rows = (proxies.object ?? [:]).map { name, proxy in
            [
                name, proxy["listen"].shown, proxy["upstream"].shown,
                proxy["enabled"] == .bool(true) ? "enabled" : "disabled", "\(proxy["toxics"].array.count)",
            ]
        }
        Table.print(rows, header: ["NAME", "LISTEN", "UPSTREAM", "STATE", "TOXICS"], console)
        if rows.isEmpty {
            console.print("no proxies; make one: slowlane create NAME --upstream HOST:PORT", to: .progress)
        }
    }
}

/// `slowlane inspect`.
struct InspectCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Shows one proxy: its toxics, link and connections.",
        discussion: "Example:\n  slowlane inspect redis", aliases: ["i", "ins"])

    @Argument(help: "The proxy's name.") var name: String
    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "inspect proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let proxy = try await client.call("GET", APIClient.path("proxies", name))
        if server.json { return console.print(proxy.json) }
        if Terminal.isTerminal(STDOUT_FILENO) {
            let state = proxy["enabled"] == .bool(true) ? "enabled" : "disabled"
            console.print("\(name): \(proxy["listen"].shown) -> \(proxy["upstream"].shown), \(state)")
            // A Toxiproxy has none.
            if let more = try? await client.call("GET", APIClient.path("slowlane", "v1", "proxies", name)) {
                let link = more["link"]
                let what = [link["profile"], link["timeline"]].compactMap(\.text).first ?? "nothing in force"
                console.print(
                    "link: \(what); seed \(more["seed"].shown); \(more["connections_open"].shown) connections open")
            }
        }
        for toxic in proxy["toxics"].array {
            let toxicity: Double =
                switch toxic["toxicity"] {
                case .integer(let number): Double(number)
                case .number(let number): number
                default: 1
                }
            let attributes = toxic["attributes"].object ?? [:]
            console.print(
                ([
                    toxic["name"].shown, "type=\(toxic["type"].shown)", "stream=\(toxic["stream"].shown)",
                    "toxicity=\(String(format: "%.2f", toxicity))", "attributes=[",
                ] + attributes.map { "\($0.key)=\($0.value.shown)" } + ["]"]).joined(separator: "\t"))
        }
    }
}

/// `slowlane create`.
struct CreateCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Makes a proxy.",
        discussion: """
            Examples:
              slowlane create redis --listen 127.0.0.1:26379 --upstream 127.0.0.1:6379
              slowlane create api --upstream localhost:8000 --profile edge
            """, aliases: ["c", "new"])

    @Argument(help: "What it is called.") var name: String
    @Option(name: .shortAndLong, help: "Where clients connect, HOST:PORT; port 0 takes a free one.")
    var listen = "127.0.0.1:0"
    @Option(name: .shortAndLong, help: "Where their connections go, HOST:PORT.") var upstream: String
    @Option(help: "The network it is on from the start (slowlane profiles lists them).") var profile: String?
    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "create proxy" }

    func run(_ client: APIClient, _ console: Console) async throws {
        var body: JSONObject = [
            "name": .text(name), "listen": .text(listen), "upstream": .text(upstream), "enabled": .bool(true),
        ]
        if let profile { body["link"] = .object(["profile": .text(profile)]) }
        let proxy = try await client.call("POST", "/proxies", .object(body))
        if server.json { return console.print(proxy.json) }
        console.print("Created new proxy \(name)")
        if listen.hasSuffix(":0") { console.print("listening on \(proxy["listen"].shown)") }
    }
}

/// `slowlane toggle`.
struct ToggleCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "toggle", abstract: "Disables an enabled proxy, enables a disabled one.",
        discussion: "Example:\n  slowlane toggle redis", aliases: ["tog"])

    @Argument(help: "The proxy's name.") var name: String
    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "toggle proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let path = APIClient.path("proxies", name)
        let isEnabled = try await client.call("GET", path)["enabled"] == .bool(true)
        let proxy = try await client.call("PATCH", path, .object(["enabled": .bool(!isEnabled)]))
        if server.json { return console.print(proxy.json) }
        console.print("Proxy \(name) is now \(isEnabled ? "disabled" : "enabled")")
    }
}

/// `slowlane delete`.
struct DeleteCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Closes a proxy and its connections, and forgets it.",
        discussion: "Example:\n  slowlane delete redis", aliases: ["d"])

    @Argument(help: "The proxy's name.") var name: String
    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "delete proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        _ = try await client.call("DELETE", APIClient.path("proxies", name))
        console.print("Deleted proxy \(name)")
    }
}

/// `slowlane reset`.
struct ResetCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Enables every proxy, removes every toxic, and puts links back to what they were made with.",
        discussion: "Example:\n  slowlane reset")

    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "reset" }

    func run(_ client: APIClient, _ console: Console) async throws {
        _ = try await client.call("POST", "/reset")
        console.print("Every proxy is enabled and without toxics")
    }
}

/// `slowlane link`.
struct LinkCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Puts a proxy on another network; in force when the command ends.",
        discussion: """
            Examples:
              slowlane link api edge
              slowlane link api --timeline '0s: 3g, 20s: 100-loss, 50s: 3g'
              slowlane link api --netem-down 'delay 100ms loss 2%' --netem-up 'delay 100ms'
              slowlane link api --clear
              slowlane link api                # what is in force
            """)

    @Argument(help: "The proxy's name.") var name: String
    @Argument(help: "A built-in profile's name.") var profile: String?
    @Option(help: "Instead: a built-in timeline's name, or times with links.") var timeline: String?
    @Option(help: "Instead: the downlink in netem's words.") var netemDown: String?
    @Option(help: "Instead: the uplink in netem's words.") var netemUp: String?
    @Flag(help: "Instead: nothing in force.") var clear = false
    @OptionGroup(title: "The server") var server: ServerOptions
    var purpose: String { "change the link of proxy '\(name)'" }

    func validate() throws {
        let given = [profile != nil, timeline != nil, netemDown != nil || netemUp != nil, clear]
        if given.count(where: { $0 }) > 1 {
            throw ValidationError("give one of a profile, --timeline, --netem-down with --netem-up, or --clear")
        }
    }

    func run(_ client: APIClient, _ console: Console) async throws {
        let path = APIClient.path("slowlane", "v1", "proxies", name, "link")
        let link: JSONValue
        if clear {
            link = try await client.call("DELETE", path)
        } else if let profile {
            link = try await client.call("PUT", path, .object(["profile": .text(profile)]))
        } else if let timeline {
            link = try await client.call("PUT", path, .object(["timeline": .text(timeline)]))
        } else if netemDown != nil || netemUp != nil {
            let both: JSONObject = ["down": .text(netemDown ?? ""), "up": .text(netemUp ?? "")]
            link = try await client.call("PUT", path, .object(["netem": .object(both)]))
        } else {
            link = try await client.call("GET", path)
        }
        if server.json { return console.print(link.json) }
        let what = [link["profile"], link["timeline"]].compactMap(\.text).first
        func words(_ direction: JSONValue) -> String {
            var rate = "no cap"
            if case .integer(let bits) = direction["rate_bps"] {
                rate = "\(JSONText.number(Double(bits) / 1000)) kbit/s"
            }
            return "\(rate) \(direction["delay_ms"].shown) ms"
                + (direction["loss_percent"] == .integer(0) ? "" : " loss \(direction["loss_percent"].shown) %")
        }
        console.print("\(name): \(what.map { "\($0), " } ?? "")down \(words(link["down"])), up \(words(link["up"]))")
    }
}

/// `slowlane toxic`.
struct ToxicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "toxic", abstract: "Adds, changes and removes toxics of a proxy.",
        discussion: """
            Types, with their attributes:
              latency       latency, jitter (ms)
              bandwidth     rate (kB/s)
              slow_close    delay (ms)
              timeout       timeout (ms)
              reset_peer    timeout (ms)
              slicer        average_size, size_variation (bytes), delay (microseconds)
              limit_data    bytes
              packet_loss   loss_rate, correlation (0 to 1)
              noop

            Examples:
              slowlane toxic add -t latency -a latency=1000 -a jitter=100 redis
              slowlane toxic update -n latency_downstream -a latency=200 redis
              slowlane toxic remove -n latency_downstream redis
            """,
        subcommands: [AddCommand.self, UpdateCommand.self, RemoveCommand.self], aliases: ["t"])

    /// `k=v`; what reads as a number is sent as one.
    fileprivate static func attributes(_ pairs: [String]) throws -> JSONValue {
        var members = JSONObject()
        for pair in pairs {
            guard let equals = pair.firstIndex(of: "="), equals != pair.startIndex else {
                throw ValidationError("-a '\(pair)' is not NAME=VALUE")
            }
            let text = String(pair[pair.index(after: equals)...])
            members[String(pair[..<equals])] =
                Int64(text).map { .integer($0) } ?? Double(text).flatMap { $0.isFinite ? .number($0) : nil }
                ?? .text(text)
        }
        return .object(members)
    }

    struct AddCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Adds a toxic.",
            discussion: "Example:\n  slowlane toxic add -t latency -a latency=1000 redis", aliases: ["a"])

        @Argument(help: "The proxy's name.") var proxy: String
        @Option(name: [.customShort("t"), .long], help: "What it does.") var type: String
        @Option(
            name: [.customShort("n"), .customLong("toxicName"), .customLong("name")],
            help: "What it is called. (default: TYPE_STREAM)")
        var name: String?
        @Option(name: [.customLong("toxicity"), .customLong("tox")], help: "The share of connections, 0 to 1.")
        var toxicity = 1.0
        @Option(name: .shortAndLong, help: "An attribute, NAME=VALUE; may be given again.") var attribute: [String] = []
        @Flag(name: .shortAndLong, help: "From client to server.") var upstream = false
        @Flag(name: .shortAndLong, help: "From server to client. (default)") var downstream = false
        @OptionGroup(title: "The server") var server: ServerOptions
        var purpose: String { "add toxic" }

        func validate() throws {
            guard toxicity.isFinite else { throw ValidationError("--toxicity \(toxicity) is not a number from 0 to 1") }
            if upstream && downstream { throw ValidationError("--upstream and --downstream: give one") }
            _ = try ToxicCommand.attributes(attribute)
        }

        func run(_ client: APIClient, _ console: Console) async throws {
            let stream = upstream ? "upstream" : "downstream"
            let toxic = try await client.call(
                "POST", APIClient.path("proxies", proxy, "toxics"),
                .object([
                    "name": name.map { .text($0) } ?? .null, "type": .text(type), "stream": .text(stream),
                    "toxicity": .number(toxicity), "attributes": try ToxicCommand.attributes(attribute),
                ]))
            if server.json { return console.print(toxic.json) }
            console.print("Added \(stream) \(type) toxic '\(toxic["name"].shown)' on proxy '\(proxy)'")
        }
    }

    struct UpdateCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "update", abstract: "Changes those settings of a toxic that are given.",
            discussion: "Example:\n  slowlane toxic update -n latency_downstream -a latency=200 redis", aliases: ["u"])

        @Argument(help: "The proxy's name.") var proxy: String
        @Option(name: [.customShort("n"), .customLong("toxicName"), .customLong("name")], help: "The toxic's name.")
        var name: String
        @Option(name: [.customLong("toxicity"), .customLong("tox")], help: "The share of connections, 0 to 1.")
        var toxicity: Double?
        @Option(name: .shortAndLong, help: "An attribute, NAME=VALUE; may be given again.") var attribute: [String] = []
        @OptionGroup(title: "The server") var server: ServerOptions
        var purpose: String { "update toxic" }

        func validate() throws {
            guard toxicity?.isFinite != false else { throw ValidationError("--toxicity is not a number from 0 to 1") }
            _ = try ToxicCommand.attributes(attribute)
        }

        func run(_ client: APIClient, _ console: Console) async throws {
            let toxic = try await client.call(
                "PATCH", APIClient.path("proxies", proxy, "toxics", name),
                .object([
                    "toxicity": toxicity.map { .number($0) } ?? .null,
                    "attributes": try ToxicCommand.attributes(attribute),
                ]))
            if server.json { return console.print(toxic.json) }
            console.print("Updated toxic '\(name)' on proxy '\(proxy)'")
        }
    }

    struct RemoveCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Removes a toxic.",
            discussion: "Example:\n  slowlane toxic remove -n latency_downstream redis", aliases: ["r", "delete", "d"])

        @Argument(help: "The proxy's name.") var proxy: String
        @Option(name: [.customShort("n"), .customLong("toxicName"), .customLong("name")], help: "The toxic's name.")
        var name: String
        @OptionGroup(title: "The server") var server: ServerOptions
        var purpose: String { "remove toxic" }

        func run(_ client: APIClient, _ console: Console) async throws {
            _ = try await client.call("DELETE", APIClient.path("proxies", proxy, "toxics", name))
            console.print("Removed toxic '\(name)' on proxy '\(proxy)'")
        }
    }
}
