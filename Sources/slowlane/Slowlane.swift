//  slowlane: arguments, wiring and exit statuses. Everything else is in libraries.

internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import ToxiproxyCLI

/// The entry point, which depends on the name of the program: Slowlane's own or one of Toxiproxy's programs.
@main
enum Main {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch ToxiproxyProgram.invoked {
        case nil:
            if let message = UnknownCommand.message(for: arguments, of: Slowlane.self)
                ?? RepeatedOption.message(for: arguments, of: Slowlane.self)
            {
                Console().print(message, to: .progress)
                exit(ExitStatus.usage.rawValue)
            }
            await Slowlane.main()
        case .client:
            let outcome = await ToxiproxyCLI(
                environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.isStandardOutput
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

/// `slowlane`.
struct Slowlane: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "slowlane",
        abstract: "A TCP proxy that delays traffic as a real mobile network would.",
        discussion: """
            Examples:
              slowlane proxy --upstream localhost:8000 --profile edge
              slowlane server
              slowlane run edit-conflict-after-subway
              slowlane notes-server
              slowlane profiles list
              slowlane measure edge 3g wifi

            Exit status: 0 success; 1 a measurement, an expectation or a server call failed; 64 wrong arguments; 65 invalid file; \
            69 cannot bind the port or reach the server; 70 internal error (please report); 77 not permitted; \
            130 interrupted.
            """,
        version: SlowlaneVersion.current,
        subcommands: [
            ProxyCommand.self, ServerCommand.self, ListCommand.self, InspectCommand.self, CreateCommand.self,
            ToggleCommand.self, DeleteCommand.self, ToxicCommand.self, LinkCommand.self, ResetCommand.self,
            EventsCommand.self, DemoCommand.self, RunCommand.self, ExploreCommand.self, ShrinkCommand.self,
            MergeReportsCommand.self, SelfTestCommand.self,
            ScenariosCommand.self, LintCommand.self, FormatCommand.self,
            ExplainCommand.self, SchemaCommand.self, NotesServerCommand.self, NotesCommand.self, ProfilesCommand.self,
            MeasureCommand.self, ModelCommand.self, CaptureCommand.self, DoctorCommand.self,
        ]
    )
}
