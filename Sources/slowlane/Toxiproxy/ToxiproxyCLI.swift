internal import ControlAPI
internal import Foundation
internal import JSON

/// `toxiproxy-cli`: the commands of Toxiproxy's client with its flags, output, error texts and exit statuses.
///
/// Wrong usage is reported on standard output and is no failure, as there; what the server refuses exits with 1, an unknown
/// command with 3.
struct ToxiproxyCLI {
    /// A command, or a group of commands.
    struct Entry {
        let name: String
        var aliases: [String] = []
        let about: String
        /// What follows the command's name in its usage line.
        var usage = ""
        var details = ""
        var flags: [GoFlags.Flag] = []
        var subcommands: [Entry] = []
        var action: (@Sendable (ToxiproxyCLI, GoFlags) async throws -> String)?

        func isCalled(_ word: String) -> Bool { name == word || aliases.contains(word) }
    }

    /// What a run prints, and its exit status.
    struct Outcome: Equatable {
        var output = ""
        var errors = ""
        var status: Int32 = 0
    }

    /// Ends a command.
    struct Exit: Error {
        let text: String
        var status: Int32 = 1
        /// Whether the command's help comes before the text.
        var showsHelp = false
    }

    let environment: [String: String]
    /// Whether results go to a terminal: with colours, headings and hints.
    let isTerminal: Bool

    private static let hostDefault = "http://localhost:8474"
    private var host = ""

    init(environment: [String: String], isTerminal: Bool) {
        self.environment = environment
        self.isTerminal = isTerminal
    }

    /// Runs a command line without the program's name.
    func run(_ arguments: [String]) async -> Outcome {
        var outcome = Outcome()
        do {
            try await run(arguments, &outcome)
        } catch {
            let exit = error as? Exit ?? Exit(text: "\(error)")
            outcome.errors += exit.text + "\n"
            outcome.status = exit.status
        }
        return outcome
    }

    private func run(_ arguments: [String], _ outcome: inout Outcome) async throws {
        let flags: GoFlags
        do {
            flags = try GoFlags(arguments[...], Self.globalFlags)
        } catch {
            outcome.output += "Incorrect Usage: \(error.text)\n\n" + Self.rootHelp
            return
        }
        if flags.isOn("help") {
            outcome.output += try Self.help(on: flags.rest.first)
        } else if flags.isOn("version") {
            outcome.output += "toxiproxy-cli version \(API.toxiproxyVersion)\n"
        } else if let word = flags.rest.first {
            var client = self
            client.host =
                flags.has("host") ? flags.text("host") : environment["TOXIPROXY_URL"] ?? Self.hostDefault
            try await client.run(word, in: Self.commands, [], flags.rest.dropFirst(), &outcome)
        } else {
            outcome.output += Self.rootHelp
        }
    }

    /// Runs the entry that is called `word`, or shows a topic of help.
    private func run(
        _ word: String, in entries: [Entry], _ path: [Entry], _ words: ArraySlice<String>, _ outcome: inout Outcome
    ) async throws {
        if Self.helpEntry.isCalled(word) {
            outcome.output += try Self.help(on: words.first, in: entries, path)
        } else if let entry = entries.first(where: { $0.isCalled(word) }) {
            try await run(entry, path + [entry], words, &outcome)
        } else {
            throw Self.noTopic(word)
        }
    }

    private func run(
        _ entry: Entry, _ path: [Entry], _ words: ArraySlice<String>, _ outcome: inout Outcome
    ) async throws {
        let flags: GoFlags
        do {
            flags = try GoFlags(words, entry.flags + [Self.helpFlag])
        } catch {
            outcome.output += "Incorrect Usage: \(error.text)\n\n" + Self.help(path)
            return
        }
        if flags.isOn("help") {
            outcome.output += try Self.help(on: flags.rest.first, in: entry.subcommands, path)
        } else if let word = flags.rest.first, entry.action == nil || Self.helpEntry.isCalled(word) {
            try await run(word, in: entry.subcommands, path, flags.rest.dropFirst(), &outcome)
        } else if let action = entry.action {
            do {
                outcome.output += try await action(self, flags)
            } catch let exit as Exit {
                if exit.showsHelp { outcome.output += Self.help(path) }
                throw exit
            }
        } else {
            outcome.output += Self.help(path)
        }
    }

    static func noTopic(_ word: String) -> Exit { Exit(text: "No help topic for '\(word)'", status: 3) }

    // MARK: The server

    /// A proxy as the server describes it.
    private struct ProxyDescription {
        let name, listen, upstream: String
        var isEnabled: Bool
        let toxics: [JSONValue]

        init(_ json: JSONValue) {
            name = json["name"].text ?? ""
            listen = json["listen"].text ?? ""
            upstream = json["upstream"].text ?? ""
            isEnabled = json["enabled"] == .bool(true)
            toxics = json["toxics"].array
        }

        var json: JSONValue {
            .object([
                "name": .text(name), "listen": .text(listen), "upstream": .text(upstream), "enabled": .bool(isEnabled),
            ])
        }

        var state: String { isEnabled ? "enabled" : "disabled" }
    }

    /// Calls the server; what fails ends the command with `failure` before the reason.
    private func call(
        _ method: String, _ path: String, _ body: JSONValue? = nil, orFailWith failure: String, _ end: String = "\n"
    ) async throws -> JSONValue {
        guard
            let client = APIClient(
                url: host, token: environment["SLOWLANE_TOKEN"], userAgent: "slowlane/\(SlowlaneVersion.current)")
        else {
            throw Exit(text: "\(failure): '\(host)' is not a server's URL (as \(Self.hostDefault))\(end)")
        }
        do {
            return try await client.call(method, path, body)
        } catch let error as APIClient.CallError {
            throw Exit(text: "\(failure): \(Self.reason(error))\(end)")
        }
    }

    private static func reason(_ failure: APIClient.CallError) -> String {
        switch failure {
        case .noConnection(let method, let url, let address, let reason):
            let call = "\(method.prefix(1))\(method.dropFirst().lowercased()) \(GoText.quoted(url))"
            guard let address else { return "fail to request: \(call): dial tcp: \(reason)" }
            return "fail to request: \(call): dial tcp \(address): connect: \(reason.lowercased())"
        case .refused, .unreadable: return "\(failure)"
        }
    }

    private func proxy(_ name: String, orFailWith failure: String) async throws -> ProxyDescription {
        ProxyDescription(try await call("GET", APIClient.path("proxies", name), orFailWith: failure))
    }

    private static func proxyName(_ flags: GoFlags) throws(Exit) -> String {
        guard let name = flags.rest.first, !name.isEmpty else {
            throw Exit(text: "Proxy name is required as the first argument.\n", showsHelp: true)
        }
        return name
    }

    private static func required(_ name: String, _ flags: GoFlags) throws(Exit) -> String {
        let value = flags.text(name)
        if value.isEmpty { throw Exit(text: "Required argument '\(name)' was empty.\n", showsHelp: true) }
        return value
    }

    // MARK: Proxies

    @Sendable static func list(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let json = try await cli.call("GET", "/proxies", orFailWith: "Failed to retrieve proxies", "")
        let proxies = (json.object ?? [:]).map { ProxyDescription($0.value) }
            .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        var text = ""
        if cli.isTerminal {
            text += "\(Colour.green)Name\t\t\t\(Colour.blue)Listen\t\t\(Colour.yellow)Upstream\t\t"
            text += "\(Colour.purple)Enabled\t\t\(Colour.red)Toxics\n\(Colour.none)\(Colour.none)"
            text += String(repeating: "=", count: 86) + "\n"
            if proxies.isEmpty {
                return text + "\(Colour.red)no proxies\n\(Colour.none)"
                    + cli.hint("create a proxy with `toxiproxy-cli create`")
            }
        }
        for proxy in proxies {
            let count = proxy.toxics.isEmpty && cli.isTerminal ? "None" : "\(proxy.toxics.count)"
            text += cli.cell(proxy.name, proxy.isEnabled ? .green : .red, tabs: 3)
            text += cli.cell(proxy.listen, .blue, tabs: 2) + cli.cell(proxy.upstream, .yellow, tabs: 3)
            text += cli.cell(proxy.state, .purple, tabs: 2) + cli.coloured(count, .red) + "\n"
        }
        return text + cli.hint("inspect toxics with `toxiproxy-cli inspect <proxyName>`")
    }

    @Sendable static func inspect(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        let proxy = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        guard cli.isTerminal else { return proxy.toxics.map(cli.line).joined() }
        var text =
            "\(cli.coloured("Name: ", .purple))\(proxy.name)\t\(cli.coloured("Listen: ", .blue))\(proxy.listen)\t"
        text += "\(cli.coloured("Upstream: ", .yellow))\(proxy.upstream)\n"
        text += "\(Colour.none)\(String(repeating: "=", count: 70))\n"
        if proxy.toxics.isEmpty {
            text += "\(Colour.red)Proxy has no toxics enabled.\n\(Colour.none)"
        } else {
            let isUp = { (toxic: JSONValue) in toxic["stream"].text == "upstream" }
            text += cli.section("Upstream", proxy.toxics.filter(isUp)) + "\n"
            text += cli.section("Downstream", proxy.toxics.filter { !isUp($0) })
        }
        return text + cli.hint("add a toxic with `toxiproxy-cli toxic add`")
    }

    @Sendable static func create(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        let (listen, upstream) = (try required("listen", flags), try required("upstream", flags))
        let body = JSONValue.object([
            "name": .text(name), "listen": .text(listen), "upstream": .text(upstream), "enabled": .bool(true),
        ])
        _ = try await cli.call("POST", "/proxies", body, orFailWith: "Failed to create proxy: create")
        return "Created new proxy \(name)\n"
    }

    @Sendable static func toggle(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        var proxy = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        proxy.isEnabled.toggle()
        // POST, as servers older than 2.6 want it.
        proxy = ProxyDescription(
            try await cli.call(
                "POST", APIClient.path("proxies", name), proxy.json, orFailWith: "Failed to toggle proxy \(name)"))
        let colour = proxy.isEnabled ? Colour.green : .red
        return "Proxy \(cli.coloured(name, colour)) is now \(cli.coloured(proxy.state, colour))\n"
    }

    @Sendable static func delete(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        _ = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        _ = try await cli.call(
            "DELETE", APIClient.path("proxies", name), orFailWith: "Failed to delete proxy: Delete")
        return "Deleted proxy \(name)\n"
    }

    // MARK: Toxics

    private static func toxicsProxyName(_ flags: GoFlags) throws(Exit) -> String {
        guard let name = flags.rest.first, !name.isEmpty else {
            throw Exit(text: "Proxy name is missing.\n", showsHelp: true)
        }
        return name
    }

    private static func toxicity(_ flags: GoFlags) throws(Exit) -> JSONValue {
        let text = flags.text("toxicity")
        if text.isEmpty { return .integer(1) }
        guard let number = GoText.number(text), (0...1).contains(number) else {
            throw Exit(text: "toxicity should be a float between 0 and 1.\n")
        }
        return .number(number)
    }

    /// The attributes that are given as `k=v`; what reads as a number is one, what has no `=` is none.
    private static func attributes(_ flags: GoFlags, orFailWith failure: String) throws(Exit) -> JSONValue {
        var attributes: JSONObject = [:]
        for pair in flags.list("attribute") {
            guard let equals = pair.firstIndex(of: "=") else { continue }
            let text = String(pair[pair.index(after: equals)...])
            let number = GoText.number(text)
            if let number, !number.isFinite {
                throw Exit(text: "\(failure): json: unsupported value: \(GoText.text(of: number))\n")
            }
            attributes[String(pair[..<equals])] = number.map { .number($0) } ?? .text(text)
        }
        return .object(attributes)
    }

    @Sendable static func addToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        let type = try required("type", flags)
        let isUp = flags.isOn("upstream")
        if isUp && flags.isOn("downstream") {
            throw Exit(text: "Only one should be specified: upstream or downstream.\n")
        }
        let toxicity = try toxicity(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to add toxic: failed to retrieve proxy with name `\(name)`")
        let failure = "Failed to add toxic: failed to add toxic to proxy \(name)"
        let toxic = try await cli.call(
            "POST", APIClient.path("proxies", name, "toxics"),
            .object([
                "name": .text(flags.text("toxicName")), "type": .text(type),
                "stream": .text(isUp ? "upstream" : "downstream"), "toxicity": toxicity,
                "attributes": try attributes(flags, orFailWith: failure),
            ]), orFailWith: "\(failure): AddToxic")
        return
            "Added \(toxic["stream"].shown) \(toxic["type"].shown) toxic '\(toxic["name"].shown)' on proxy '\(name)'\n"
    }

    @Sendable static func updateToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        let toxicity = try toxicity(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to update toxic: failed to retrieve proxy with name `\(name)`")
        let toxicName = flags.text("toxicName")
        let failure = "Failed to update toxic: failed to update toxic '\(toxicName)' of proxy '\(name)'"
        let toxic = try await cli.call(
            "PATCH", APIClient.path("proxies", name, "toxics", toxicName),
            .object(["toxicity": toxicity, "attributes": try attributes(flags, orFailWith: failure)]),
            orFailWith: failure)
        return "Updated toxic '\(toxic["name"].shown)' on proxy '\(name)'\n"
    }

    @Sendable static func removeToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to remove toxic: failed to retrieve proxy with name `\(name)`")
        let toxicName = flags.text("toxicName")
        _ = try await cli.call(
            "DELETE", APIClient.path("proxies", name, "toxics", toxicName),
            orFailWith: "Failed to remove toxic: failed to remove toxic '\(toxicName)' from proxy '\(name)'")
        return "Removed toxic '\(toxicName)' on proxy '\(name)'\n"
    }

    // MARK: Output

    enum Colour: String, CustomStringConvertible {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case purple = "35"
        case none = "0"

        var description: String { "\u{1B}[\(rawValue)m" }
    }

    private func coloured(_ text: String, _ colour: Colour) -> String {
        isTerminal ? "\(colour)\(text)\(Colour.none)" : text
    }

    private func hint(_ text: String) -> String { isTerminal ? "\n\(Colour.none)Hint: \(text)\n" : "" }

    /// A cell of a table whose columns are `tabs` tabs wide.
    private func cell(_ text: String, _ colour: Colour, tabs: Int) -> String {
        let missing = isTerminal ? max(0, tabs - (text.utf8.count / 8 + 1)) : 0
        let start = isTerminal ? "\(colour)" : ""
        return "\(start)\(text)\(isTerminal ? "\(Colour.none)" : "")\t\(String(repeating: "\t", count: missing))"
    }

    private func section(_ stream: String, _ toxics: [JSONValue]) -> String {
        let title = "\(Colour.green)\(stream) toxics:\n\(Colour.none)"
        if toxics.isEmpty {
            return title + "\(Colour.red)Proxy has no \(stream) toxics enabled.\n\(Colour.none)"
        }
        return title + toxics.map(line).joined()
    }

    /// A toxic with its attributes, sorted by name.
    private func line(_ toxic: JSONValue) -> String {
        let name = toxic["name"].shown
        let attributes = (toxic["attributes"].object ?? [:])
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let toxicity = String(format: "%.2f", toxic["toxicity"].double ?? 0)
        var text = isTerminal ? "\(Colour.blue)\(name):\(Colour.none)" : name
        text += "\ttype=\(toxic["type"].shown)\tstream=\(toxic["stream"].shown)\ttoxicity=\(toxicity)\tattributes=["
        for (key, value) in attributes {
            text += "\t\(key)=\(value.double.map(GoText.text) ?? value.shown)"
        }
        return text + "\t]\n"
    }
}

extension JSONValue {
    /// A number of any kind.
    fileprivate var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
