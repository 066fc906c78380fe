internal import CommandSupport
internal import ControlAPI
internal import Foundation

/// The commands and their help.
extension ToxiproxyCLI {
    static let helpFlag = GoFlags.Flag(name: "help", kind: .toggle, about: "show this help")

    static let globalFlags = [
        GoFlags.Flag(
            name: "host", aliases: ["h"], kind: .text,
            about: "the server's URL (default: TOXIPROXY_URL, or http://localhost:8474)"),
        helpFlag,
        GoFlags.Flag(name: "version", aliases: ["v"], kind: .toggle, about: "print the version"),
    ]

    static let helpEntry = Entry(
        name: "help", aliases: ["h"], about: "show the list of commands or the help of one command", usage: "[COMMAND]")

    static let commands = [
        Entry(name: "list", aliases: ["l", "li", "ls"], about: "list the proxies", action: list),
        Entry(
            name: "inspect", aliases: ["i", "ins"], about: "show the toxics of a proxy", usage: "PROXY",
            action: inspect),
        Entry(
            name: "create", aliases: ["c", "new"], about: "create a proxy",
            usage: "--listen HOST:PORT --upstream HOST:PORT PROXY",
            flags: [
                GoFlags.Flag(name: "listen", aliases: ["l"], kind: .text, about: "listen address"),
                GoFlags.Flag(name: "upstream", aliases: ["u"], kind: .text, about: "upstream address"),
            ], action: create),
        Entry(
            name: "toggle", aliases: ["tog"], about: "toggle a proxy between enabled and disabled",
            usage: "PROXY", action: toggle),
        Entry(
            name: "delete", aliases: ["d"], about: "delete a proxy and close its connections", usage: "PROXY",
            action: delete),
        Entry(
            name: "toxic", aliases: ["t"], about: "add, update or remove a toxic", usage: "COMMAND",
            details: toxicDetails, subcommands: toxicCommands),
    ]

    private static let toxicName = GoFlags.Flag(
        name: "toxicName", aliases: ["n"], kind: .text, about: "name of the toxic")
    private static let toxicityFlag = GoFlags.Flag(
        name: "toxicity", aliases: ["tox"], kind: .text,
        about: "probability that the toxic applies to a connection, 0 to 1 (default: 1)")
    private static let attribute = GoFlags.Flag(
        name: "attribute", aliases: ["a"], kind: .list, about: "toxic attribute KEY=VALUE (repeatable)")

    private static let toxicCommands = [
        Entry(
            name: "add", aliases: ["a"], about: "add a toxic",
            usage: "--type TYPE [--upstream | --downstream] [--attribute KEY=VALUE] PROXY",
            flags: [
                toxicName,
                GoFlags.Flag(name: "type", aliases: ["t"], kind: .text, about: "the type of the toxic"), toxicityFlag,
                attribute,
                GoFlags.Flag(name: "upstream", aliases: ["u"], kind: .toggle, about: "from client to server"),
                GoFlags.Flag(
                    name: "downstream", aliases: ["d"], kind: .toggle, about: "from server to client (default)"),
            ], action: addToxic),
        Entry(
            name: "update", aliases: ["u"],
            about: "change a toxic; resets the toxicity to 1 unless --toxicity is given",
            usage: "--toxicName TOXIC [--attribute KEY=VALUE] PROXY", flags: [toxicName, toxicityFlag, attribute],
            action: updateToxic),
        Entry(
            name: "remove", aliases: ["r", "delete", "d"], about: "remove a toxic", usage: "--toxicName TOXIC PROXY",
            flags: [toxicName], action: removeToxic),
    ]

    private static let toxicDetails = """
        latency       latency, jitter (ms)
        bandwidth     rate (kB/s)
        slow_close    delay (ms)
        timeout       timeout (ms)
        reset_peer    timeout (ms)
        slicer        average_size, size_variation (bytes), delay (microseconds)
        limit_data    bytes
        packet_loss   loss_rate, correlation (0 to 1)
        """

    static let rootHelp =
        "NAME:\n   toxiproxy-cli - commands for a Toxiproxy server (slowlane \(SlowlaneVersion.current))\n\n"
        + "USAGE:\n   toxiproxy-cli [OPTIONS] COMMAND [OPTIONS] [ARGUMENTS]\n\n"
        + "VERSION:\n   \(API.toxiproxyVersion)\n\n"
        + listing("COMMANDS", commands + [helpEntry]) + "\n" + listing("GLOBAL OPTIONS", globalFlags)

    /// Returns the help of the entry with the name `topic`, or of the last entry of the path.
    static func help(
        on topic: String?, in entries: [Entry] = commands, _ path: [Entry] = []
    ) throws(Exit) -> String {
        guard let topic else { return path.isEmpty ? rootHelp : help(path) }
        guard let entry = (entries + [helpEntry]).first(where: { $0.hasName(topic) }) else { throw noTopic(topic) }
        return help(path + [entry])
    }

    /// Returns the help of the last entry of a path.
    static func help(_ path: [Entry]) -> String {
        guard let entry = path.last else { return rootHelp }
        let name = (["toxiproxy-cli"] + path.map(\.name)).joined(separator: " ")
        var text = "NAME:\n   \(name) - \(entry.about)\n\n"
        text += "USAGE:\n   \(name)\(entry.usage.isEmpty ? "" : " \(entry.usage)")\n\n"
        if !entry.details.isEmpty {
            let lines = entry.details.split(separator: "\n").map { "   \($0)\n" }
            text += "TOXICS AND ATTRIBUTES:\n\(lines.joined())\n"
        }
        if !entry.subcommands.isEmpty { text += listing("COMMANDS", entry.subcommands + [helpEntry]) + "\n" }
        return text + listing("OPTIONS", entry.flags + [helpFlag])
    }

    private static func listing(_ title: String, _ entries: [Entry]) -> String {
        listing(title, entries.map { (([$0.name] + $0.aliases).joined(separator: ", "), $0.about) })
    }

    private static func listing(_ title: String, _ flags: [GoFlags.Flag]) -> String {
        listing(
            title,
            flags.map { flag in
                let forms = flag.names.map {
                    "\($0.count == 1 ? "-" : "--")\($0)\(flag.kind == .toggle ? "" : " value")"
                }
                return (forms.joined(separator: ", "), flag.about)
            })
    }

    private static func listing(_ title: String, _ rows: [(String, String)]) -> String {
        let width = rows.map(\.0.count).max() ?? 0
        return "\(title):\n"
            + rows.map { "   \($0.padding(toLength: width, withPad: " ", startingAt: 0))  \($1)\n" }.joined()
    }
}
