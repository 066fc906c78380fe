internal import ArgumentParser
internal import Foundation

/// The check for options that are given twice but have one value. ArgumentParser takes the last value.
enum RepeatedOption {
    /// Returns the error message for the first such option; `nil` if there is none.
    static func message(for arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command = root
        var path = [name(of: root)]
        var words = arguments.prefix { $0 != "--" }[...]
        while let next = command.configuration.subcommands.first(where: { name(of: $0) == words.first }) {
            words.removeFirst()
            command = next
            path.append(name(of: next))
        }
        let names = words.filter { $0.hasPrefix("-") && $0.utf8.count > 1 }.map { String($0.prefix { $0 != "=" }) }
        guard Set(names).count < names.count else { return nil }
        let single = singleOptions(of: command)
        var seen: Set<String> = []
        for name in names where single.contains(name) && !seen.insert(name).inserted {
            return "error: \(name) is given twice; '\(path.joined(separator: " "))' takes one\(hints[name] ?? "")"
        }
        return nil
    }

    /// What to do instead, by option.
    private static let hints = [
        "--upstream": ", because a proxy has one upstream; for several, start 'slowlane server' and run "
            + "'slowlane create NAME --upstream HOST:PORT' for each"
    ]

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    /// The part of ArgumentParser's description of a command that is used here.
    private struct Description: Decodable {
        struct Command: Decodable { let arguments: [Argument]? }

        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }

            let kind: String
            let isRepeating: Bool
            let names: [Name]?
        }

        let command: Command
    }

    /// Returns the options of a command that have one value, with their dashes.
    private static func singleOptions(of command: any ParsableCommand.Type) -> Set<String> {
        guard let description = try? JSONDecoder().decode(Description.self, from: Data(command._dumpHelp().utf8))
        else { return [] }
        let options = description.command.arguments?.filter { $0.kind == "option" && !$0.isRepeating } ?? []
        return Set(options.flatMap { $0.names ?? [] }.map { $0.kind == "long" ? "--\($0.name)" : "-\($0.name)" })
    }
}
