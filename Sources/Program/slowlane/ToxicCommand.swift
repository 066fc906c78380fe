internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Foundation
internal import Wire

/// `slowlane toxic`.
struct ToxicCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "toxic", abstract: "Add, update and remove toxics of a proxy.",
        discussion: """
            Examples:
              slowlane toxic add -t latency -a latency=1000 -a jitter=100 redis
              slowlane toxic update -n latency_downstream -a latency=200 redis
              slowlane toxic remove -n latency_downstream redis

            Types, with their effects and attributes:
              latency       delays data: latency, jitter (ms)
              bandwidth     limits the rate: rate (kB/s)
              slow_close    delays the end of the stream: delay (ms)
              timeout       discards data, closes an idle connection: timeout (ms)
              reset_peer    resets the connection after a time: timeout (ms)
              slicer        sends data in small pieces: average_size,
                            size_variation (bytes), delay (us)
              limit_data    closes the connection after a number of bytes: bytes
              packet_loss   loses packets: loss_rate, correlation (0 to 1)
              noop          has no effect
            """,
        subcommands: [AddCommand.self, UpdateCommand.self, RemoveCommand.self], aliases: ["t"])

    /// Returns the attributes of `NAME=VALUE` texts as JSON.
    fileprivate static func attributes(_ pairs: [String], ofType type: String?) throws -> JSONValue {
        do {
            return .object(try ToxicAttributes.parse(pairs, ofType: type))
        } catch {
            throw ValidationError("-a \(error)")
        }
    }

    fileprivate static func checkToxicity(_ toxicity: Double) throws {
        guard (0...1).contains(toxicity) else {
            throw ValidationError("--toxicity \(toxicity) must be a probability from 0 to 1")
        }
    }

    struct AddCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "add", abstract: "Add a toxic to a proxy.",
            discussion: "Example:\n  slowlane toxic add -t latency -a latency=1000 redis", aliases: ["a"])

        @Argument(help: "Name of the proxy.") var proxy: String
        @Option(
            name: [.customShort("t"), .long],
            help: ArgumentHelp("Type of the toxic ('slowlane toxic --help' lists all).", valueName: "type")) var type:
            String
        @Option(
            name: [.customShort("n"), .customLong("toxicName"), .customLong("name")],
            help: "Name of the toxic. (default: TYPE_STREAM)")
        var name: String?
        @Option(
            name: [.customLong("toxicity"), .customLong("tox")],
            help: ArgumentHelp("Probability that a connection is affected, 0 to 1.", valueName: "probability"))
        var toxicity = 1.0
        @Option(name: .shortAndLong, help: ArgumentHelp("Attribute, NAME=VALUE (repeatable).", valueName: "name=value"))
        var attribute: [String] = []
        @Flag(name: .shortAndLong, help: "Affect data from client to server.") var upstream = false
        @Flag(name: .shortAndLong, help: "Affect data from server to client. (default)") var downstream = false
        @OptionGroup(title: "Server") var server: ServerOptions
        var purpose: String { "add toxic" }

        func validate() throws {
            try ToxicCommand.checkToxicity(toxicity)
            if upstream && downstream { throw ValidationError("give one of --upstream and --downstream") }
            _ = try ToxicCommand.attributes(attribute, ofType: type)
        }

        func run(_ client: APIClient, _ console: Console) async throws {
            let stream = upstream ? "upstream" : "downstream"
            let definition: JSONObject = [
                "name": name.map { .text($0) } ?? .null, "type": .text(type), "stream": .text(stream),
                "toxicity": .number(toxicity), "attributes": try ToxicCommand.attributes(attribute, ofType: type),
            ]
            let toxic: JSONValue
            do {
                toxic = try await client.call(
                    "POST", APIClient.path("proxies", proxy, "toxics"), .object(definition))
            } catch APIClient.CallError.errorResponse(status: 400, let reason) {
                throw APIClient.CallError.errorResponse(
                    status: 400, reason: reason + ToxicAttributes.hint(ofUnknownType: type))
            }
            if server.json { return console.print(toxic.json) }
            console.print("Added \(stream) \(type) toxic '\(toxic["name"].displayText)' on proxy '\(proxy)'")
        }
    }

    struct UpdateCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "update", abstract: "Change the given settings of a toxic; the others stay.",
            discussion: "Example:\n  slowlane toxic update -n latency_downstream -a latency=200 redis", aliases: ["u"])

        @Argument(help: "Name of the proxy.") var proxy: String
        @Option(name: [.customShort("n"), .customLong("toxicName"), .customLong("name")], help: "Name of the toxic.")
        var name: String
        @Option(
            name: [.customLong("toxicity"), .customLong("tox")],
            help: ArgumentHelp("Probability that a connection is affected, 0 to 1.", valueName: "probability"))
        var toxicity: Double?
        @Option(name: .shortAndLong, help: ArgumentHelp("Attribute, NAME=VALUE (repeatable).", valueName: "name=value"))
        var attribute: [String] = []
        @OptionGroup(title: "Server") var server: ServerOptions
        var purpose: String { "update toxic" }

        func validate() throws {
            if let toxicity { try ToxicCommand.checkToxicity(toxicity) }
            _ = try ToxicCommand.attributes(attribute, ofType: nil)
        }

        func run(_ client: APIClient, _ console: Console) async throws {
            let path = APIClient.path("proxies", proxy, "toxics", name)
            // The valid attributes depend on the type.
            let type = attribute.isEmpty ? nil : try await client.call("GET", path)["type"].text
            let toxic = try await client.call(
                "PATCH", path,
                .object([
                    "toxicity": toxicity.map { .number($0) } ?? .null,
                    "attributes": try ToxicCommand.attributes(attribute, ofType: type),
                ]))
            if server.json { return console.print(toxic.json) }
            console.print("Updated toxic '\(name)' on proxy '\(proxy)'")
        }
    }

    struct RemoveCommand: ControlCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove", abstract: "Remove a toxic from a proxy.",
            discussion: "Example:\n  slowlane toxic remove -n latency_downstream redis", aliases: ["r", "delete", "d"])

        @Argument(help: "Name of the proxy.") var proxy: String
        @Option(name: [.customShort("n"), .customLong("toxicName"), .customLong("name")], help: "Name of the toxic.")
        var name: String
        @OptionGroup(title: "Server") var server: ServerOptions
        var purpose: String { "remove toxic" }

        func run(_ client: APIClient, _ console: Console) async throws {
            _ = try await client.call("DELETE", APIClient.path("proxies", proxy, "toxics", name))
            console.print("Removed toxic '\(name)' on proxy '\(proxy)'")
        }
    }
}
