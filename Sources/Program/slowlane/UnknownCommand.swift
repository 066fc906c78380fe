internal import ArgumentParser
internal import ConfigFiles

/// The check for misspelt and renamed subcommands, and for renamed options. ArgumentParser only reports an unexpected
/// argument for them.
enum UnknownCommand {
    /// Returns the error message for the first argument that should be a subcommand and is not; `nil` if there is none.
    static func message(for arguments: [String], of root: any ParsableCommand.Type) -> String? {
        var command = root
        var path = [name(of: root)]
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
            if let next = subcommands.first(where: { names(of: $0).contains(argument) }) {
                command = next
                path.append(name(of: next))
                continue
            }
            let known = subcommands.map(name(of:))
            return "error: unknown command '\(argument.prefix(60))'\(NearestName.hint(argument, in: known)) "
                + "('\(path.joined(separator: " ")) --help' lists all)"
        }
        return nil
    }

    /// Returns the error message for the first renamed option; `nil` if there is none.
    static func message(forOptionsOf arguments: [String]) -> String? {
        // After a terminator there are no options.
        for argument in arguments.prefix(while: { $0 != "--" }) where argument.hasPrefix("--") {
            guard let new = RenamedWords.newOption(for: argument) else { continue }
            return "error: '\(argument.prefix { $0 != "=" })' is now called '\(new)'"
        }
        return nil
    }

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }

    private static func names(of command: any ParsableCommand.Type) -> [String] {
        [name(of: command)] + command.configuration.aliases
    }
}
