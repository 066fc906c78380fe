import Foundation
import Synchronization
import TestSupport
import Testing

/// The help texts of all commands, at the 80 columns of a pipe.
@Suite(.tags(.commands), .timeLimit(.minutes(5))) struct HelpTests {
    private static let commands: [[String]] = [
        [], ["proxy"], ["with"], ["ca"], ["ca", "create"], ["ca", "show"], ["ca", "export"], ["ca", "delete"],
        ["server"], ["list"], ["inspect"], ["create"], ["toggle"], ["delete"], ["toxic"],
        ["toxic", "add"], ["toxic", "update"], ["toxic", "remove"], ["link"], ["reset"], ["events"],
        ["run"], ["explore"],
        ["shrink"], ["merge-reports"], ["demo"], ["demo", "patterns"],
        ["mutation-test"],
        ["scenarios"],
        ["scenarios", "list"],
        ["scenarios", "new"], ["lint"],
        ["fmt"], ["explain"], ["schema"], ["notes-server"],
        ["notes"], ["notes", "sync"], ["notes", "watch"], ["notes", "resolve"], ["notes", "retry"],
        ["notes", "dismiss"], ["notes", "status"], ["notes", "attach"], ["notes", "fetch"], ["profiles"],
        ["profiles", "list"], ["profiles", "show"],
        ["profiles", "check"],
        ["measure"], ["model"], ["capture"], ["calibrate"], ["trace"], ["doctor"],
    ]

    /// The help texts that tests have read.
    private static let texts = Mutex<[[String]: [Substring]]>([:])

    private static func help(_ command: [String]) async throws -> [Substring] {
        if let text = texts.withLock({ $0[command] }) { return text }
        let process = try Command(command + ["--help"])
        #expect(await process.end() == 0)
        let text = process.output.text.split(separator: "\n", omittingEmptySubsequences: false)
        texts.withLock { $0[command] = text }
        return text
    }

    @Test(arguments: commands) func examplesAreWholeCommands(_ command: [String]) async throws {
        let lines = try await Self.help(command)
        let start = try #require(lines.firstIndex { $0.hasPrefix("Example") }, "no examples: \(lines)")
        let examples = lines[(start + 1)...].prefix { !$0.isEmpty }
        #expect(!examples.isEmpty)
        var isContinuation = false
        for example in examples {
            // A line that ArgumentParser has broken begins with another word.
            let isCommand = example.hasPrefix("  slowlane ") || example.hasPrefix("  curl ")
            #expect(isContinuation ? example.hasPrefix("      ") : isCommand, "'\(example)'")
            #expect(example.count <= 80)
            isContinuation = example.hasSuffix("\\")
        }
    }

    /// A line that is too long for 80 columns continues at the first column.
    @Test(arguments: commands) func indentedLinesAreNotBroken(_ command: [String]) async throws {
        let lines = try await Self.help(command).prefix { !$0.hasPrefix("USAGE") }
        for (line, next) in zip(lines, lines.dropFirst()) where line.hasPrefix("  ") {
            #expect(next.isEmpty || next.hasPrefix(" "), "'\(line)' continues with '\(next)'")
        }
    }

    @Test(arguments: commands) func tablesAndOptionsUseStandardTerms(_ command: [String]) async throws {
        let text = try await Self.help(command).joined(separator: " ").lowercased()
        for word in [
            "may be given again", "how many", "nothing in force", "where all chance", "answers", "who ", "is told",
            "cannot be had", "any number",
        ] {
            #expect(!text.contains(word), "'\(word)' in the help of '\(command.joined(separator: " "))'")
        }
    }

    @Test(arguments: [
        (["prox"], "unknown command 'prox'; did you mean 'proxy'?"),
        (["profile"], "unknown command 'profile'; did you mean 'profiles'"),
        (["notes", "lst"], "unknown command 'lst'; did you mean 'list'?"),
        (["toxic", "ad"], "unknown command 'ad'; did you mean 'add'?"),
        (["profiles", "sho", "3g"], "unknown command 'sho'; did you mean 'show'?"),
        (["frobnicate"], "unknown command 'frobnicate' ('slowlane --help' lists all)"),
    ]) func aMisspeltCommandGetsTheNearestName(_ arguments: [String], message: String) async throws {
        let command = try Command(arguments)
        #expect(await command.end() == 64)
        #expect(command.errors.text.contains(message), "\(command.errors.text)")
    }

    @Test(arguments: [["help", "proxy"], ["--version"], ["ls", "--help"], ["toxic", "a", "--help"]])
    func aliasesAndHelpAreNoMisspellings(_ arguments: [String]) async throws {
        let command = try Command(arguments)
        #expect(await command.end() == 0)
        #expect(command.errors.text.isEmpty)
    }

    /// The root of the repository, where the README is.
    private static let root = Repository.root

    @Test func theDocumentationListsEachCommand() async throws {
        let lines = try await Self.help([])
        let start = try #require(lines.firstIndex(of: "SUBCOMMANDS:"))
        let names = lines[(start + 1)...].prefix { !$0.isEmpty }
            .compactMap { $0.firstMatch(of: /^  ([a-z-]+)/).map { String($0.1) } }
        #expect(names.count > 20)
        let page = try String(contentsOf: Self.root.appending(path: "docs/reference/commands.md"), encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `slowlane ") }.joined(separator: "\n")
        for name in names {
            #expect(rows.contains("`slowlane \(name)`") || rows.contains("`\(name)`"), "\(name)")
        }
    }

    @Test func theREADMEAndTheHelpBeginWithTheSameSentence() async throws {
        let readme = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
        #expect(readme.hasPrefix("# Slowlane\n\nSlowlane tests how an app behaves on a bad network. "))
        #expect(try await Self.help([]).first == "OVERVIEW: Test how an app behaves on a bad network.")
    }

    /// Each option of a command in a fenced block, a table or a text of the documentation is in the help of the command.
    @Test func theOptionsOfTheDocumentationExist() async throws {
        let folder = Self.root.appending(path: "docs").path()
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix(".md") }
        #expect(names.count > 30)
        var helps: [[String]: String] = [:]
        for name in ["README.md"] + names.map({ "docs/" + $0 }) where !name.contains("/decisions/") {
            let text = try String(contentsOf: Self.root.appending(path: name), encoding: .utf8)
            for line in text.split(separator: "\n") {
                for call in line.matches(of: /slowlane( [^`#|;]*)/) {
                    let words = call.1.split(separator: " ").map(String.init)
                    let command = Self.commands.filter { words.starts(with: $0) }.max { $0.count < $1.count } ?? []
                    if command.isEmpty { continue }
                    let own = words.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }.map { $0.prefix { $0 != "=" } }
                    if own.isEmpty { continue }
                    if helps[command] == nil { helps[command] = try await Self.help(command).joined(separator: " ") }
                    for option in own {
                        let option = option.prefix { $0 == "-" || $0.isLetter || $0.isNumber }
                        #expect(
                            helps[command]?.contains(option) ?? false,
                            "\(name): 'slowlane \(command.joined(separator: " "))' has no option \(option)")
                    }
                }
            }
        }
        #expect(helps.count > 15)
    }

    /// Statuses that a command's own help explains are in the list of the program.
    @Test func theProgramListsTheStatusesOfItsCommands() async throws {
        func statuses(_ command: [String]) async throws -> Set<String> {
            let text = try await Self.help(command).joined(separator: " ")
            let list = try #require(text.firstMatch(of: /Exit status: (.*?)USAGE/)).1
            return Set(list.matches(of: /(?:^|; ?) ?([0-9]+) [a-z]/).map { String($0.1) })
        }
        let all = try await statuses([])
        #expect(all.count > 5)
        for command in ["run", "explore", "shrink", "server", "demo", "with"] {
            let own = try await statuses([command])
            #expect(!own.isEmpty && own.isSubset(of: all), "\(command): \(own.subtracting(all))")
        }
    }
}
