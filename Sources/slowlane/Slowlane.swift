//  slowlane: arguments, wiring, exit status. Everything else lives in a library.

internal import ArgumentParser
internal import Foundation

/// Where the process begins: under its own name, or under that of a program of Toxiproxy's.
@main
enum Main {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch ToxiproxyProgram.invoked {
        case nil: await Slowlane.main()
        case .client:
            let outcome = await ToxiproxyCLI(
                environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.isTerminal(STDOUT_FILENO)
            ).run(arguments)
            try? FileHandle.standardOutput.write(contentsOf: Data(outcome.output.utf8))
            try? FileHandle.standardError.write(contentsOf: Data(outcome.errors.utf8))
            exit(outcome.status)
        case .server:
            switch ToxiproxyServerArguments.parse(arguments) {
            case .run(let arguments): await Slowlane.main(arguments)
            case .exit(let text, let status):
                (status == 0 ? FileHandle.standardOutput : .standardError).write(Data(text.utf8))
                exit(status)
            }
        }
    }
}

/// The command.
struct Slowlane: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "slowlane",
        abstract: "Bad networks on demand: a TCP proxy that is late the way a network is late.",
        discussion: """
            Examples:
              slowlane proxy --upstream localhost:8000 --profile edge
              slowlane server
              slowlane run edit-conflict-after-subway
              slowlane notes-server
              slowlane profiles list
              slowlane measure edge 3g wifi

            Exit status: 0 done; 1 a measurement was off; 64 wrong arguments; 65 a file is invalid; \
            69 a port or the upstream cannot be had; 70 a fault of ours; 77 not permitted; 130 interrupted.
            """,
        version: SlowlaneVersion.current,
        subcommands: [
            ProxyCommand.self, ServerCommand.self, ListCommand.self, InspectCommand.self, CreateCommand.self,
            ToggleCommand.self, DeleteCommand.self, ToxicCommand.self, LinkCommand.self, ResetCommand.self,
            RunCommand.self, NotesServerCommand.self, NotesCommand.self, ProfilesCommand.self,
            MeasureCommand.self, ModelCommand.self, CaptureCommand.self, DoctorCommand.self,
        ]
    )
}

/// The version of the program.
enum SlowlaneVersion {
    static let current = "0.1.0"
}

/// Exit statuses that mean the same in every subcommand.
enum ExitStatus {
    /// A measurement or an expectation failed.
    static let failed = ExitCode(1)
    /// Wrong arguments (`EX_USAGE`).
    static let usage = ExitCode(64)
    /// A file is invalid (`EX_DATAERR`).
    static let invalidFile = ExitCode(65)
    /// A port or the upstream cannot be had (`EX_UNAVAILABLE`).
    static let unavailable = ExitCode(69)
    /// Something that must not happen happened (`EX_SOFTWARE`).
    static let internalError = ExitCode(70)
    /// The system does not allow it (`EX_NOPERM`).
    static let notPermitted = ExitCode(77)
    /// Interrupted before the end.
    static let interrupted = ExitCode(130)
}
