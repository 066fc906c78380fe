//  slowlane/Toxiproxy: the command lines of Toxiproxy's programs, by whose names `slowlane` can be invoked.
//
//  Owns: the names of the programs; the commands, help, output and exit statuses of `toxiproxy-cli`; the translation of
//  the flags of `toxiproxy-server`; Go's rules for flags and numbers.
//
//  Does not own: the HTTP API and its client (ControlAPI), the server itself, Slowlane's own commands (slowlane).

internal import ControlAPI
internal import Foundation

/// `toxiproxy-cli`, with the commands, flags, output, error texts and exit statuses of Toxiproxy's client.
///
/// As in the original, usage errors go to standard output with exit status 0, errors from the server exit with 1, and
/// unknown commands with 3.
public struct ToxiproxyCLI: Sendable {
    /// A command, or a group of commands.
    struct Entry {
        let name: String
        var aliases: [String] = []
        let about: String
        /// The arguments in the usage line.
        var usage = ""
        var details = ""
        var flags: [GoFlags.Flag] = []
        var subcommands: [Entry] = []
        var action: (@Sendable (ToxiproxyCLI, GoFlags) async throws -> String)?

        func hasName(_ word: String) -> Bool { name == word || aliases.contains(word) }
    }

    /// The output and the exit status of a run.
    public struct Outcome: Equatable, Sendable {
        /// The text for standard output.
        public fileprivate(set) var output = ""
        /// The text for standard error.
        public fileprivate(set) var errors = ""
        /// The exit status.
        public fileprivate(set) var status: Int32 = 0
    }

    /// An error that ends a command.
    struct Exit: Error {
        let text: String
        var status: Int32 = 1
        /// Whether the help of the command precedes the text.
        var showsHelp = false
    }

    let environment: [String: String]
    /// Whether standard output is a terminal: then results have colors, headings and hints.
    let isTerminal: Bool

    static let hostDefault = "http://localhost:8474"
    private(set) var host = ""

    /// Creates the program.
    ///
    /// - Parameters:
    ///   - environment: The environment variables.
    ///   - isTerminal: Whether standard output is a terminal: then results have colors, headings and hints.
    public init(environment: [String: String], isTerminal: Bool) {
        self.environment = environment
        self.isTerminal = isTerminal
    }

    /// Runs a command line, without the program's name.
    public func run(_ arguments: [String]) async -> Outcome {
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

    /// Runs the entry with the name `word`, or shows a help topic.
    private func run(
        _ word: String, in entries: [Entry], _ path: [Entry], _ words: ArraySlice<String>, _ outcome: inout Outcome
    ) async throws {
        if Self.helpEntry.hasName(word) {
            outcome.output += try Self.help(on: words.first, in: entries, path)
        } else if let entry = entries.first(where: { $0.hasName(word) }) {
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
        } else if let word = flags.rest.first, entry.action == nil || Self.helpEntry.hasName(word) {
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
}
