//  slowlane: the commands.
//
//  Owns: arguments, wiring, exit statuses; the results of commands as text (`Texts/`); servers in the foreground, from the
//  line "listening" until a signal, and the commands that `slowlane proxy` takes while it runs (`Foreground/`); transfers
//  through a live proxy, timed by the real clock (`Measurement/`); the command lines of Toxiproxy's programs
//  (`Toxiproxy/`).
//
//  Does not own: what the servers do (Proxy, ControlAPI, NotesServer), runs of scenarios (ScenarioRunner), the terminal
//  (CommandSupport).

internal import ArgumentParser
internal import CommandSupport
internal import Foundation

/// The entry point, which depends on the name of the program: Slowlane's own or one of Toxiproxy's programs.
@main
enum Main {
    static func main() async {
        StandardStream.openClosedStreams()
        if let number = invalidArgument {
            Console().error("argument \(number) is not valid UTF-8")
            exit(ExitStatus.usage.rawValue)
        }
        let arguments = Array(CommandLine.arguments.dropFirst())
        let status: Int32
        switch ToxiproxyProgram.invoked {
        case nil: status = await run(arguments)
        case .client:
            let outcome = await ToxiproxyCLI(
                environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.isStandardOutput
            ).run(arguments)
            StandardStream.output.write(outcome.output)
            StandardStream.errors.write(outcome.errors)
            status = outcome.status
        case .server:
            switch ToxiproxyServerArguments.parse(arguments) {
            case .run(let arguments): status = await run(arguments)
            case .exit(let text, let code):
                (code == 0 ? StandardStream.output : .errors).write(text)
                status = code
            }
        }
        exit(StandardStream.exitStatus(status))
    }

    /// The number of the first argument that is not valid UTF-8, which would be stored in another form; `nil` if there is none.
    private static var invalidArgument: Int? {
        (1..<max(1, Int(CommandLine.argc))).first { number in
            CommandLine.unsafeArgv[number].map { String(validatingCString: $0) == nil } ?? false
        }
    }

    /// Runs a command of Slowlane and returns its exit status. ArgumentParser's own entry point does not notice output
    /// that cannot be written.
    private static func run(_ arguments: [String]) async -> Int32 {
        if let message = UnknownCommand.message(for: arguments, of: Slowlane.self)
            ?? UnknownCommand.message(forOptionsOf: arguments)
            ?? RepeatedOption.message(for: arguments, of: Slowlane.self)
        {
            Console().print(message, to: .progress)
            return ExitStatus.usage.rawValue
        }
        do {
            var command = try await Slowlane.asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            return 0
        } catch {
            let status = Slowlane.exitCode(for: error).rawValue
            let text = Slowlane.fullMessage(for: error)
            if !text.isEmpty { (status == 0 ? StandardStream.output : .errors).write(text + "\n") }
            return status
        }
    }
}

/// `slowlane`.
struct Slowlane: AsyncParsableCommand {
    /// The beginning of ArgumentParser's messages, in the style of all others.
    static let _errorPrefix = "error: "

    static let configuration = CommandConfiguration(
        commandName: "slowlane",
        abstract: "Test how an app behaves on a bad network.",
        discussion: """
            Examples:
              slowlane proxy --upstream localhost:8000 --profile edge
              slowlane with --profile 3g -- curl https://example.com/
              slowlane server
              slowlane run edit-conflict-after-subway
              slowlane notes-server
              slowlane profiles list
              slowlane measure edge 3g wifi

            Exit status: 0 success; 1 a measurement, an expectation or a server call failed; 3 a run is inconclusive, or no traffic; 4 no \
            scenario selected; 64 wrong arguments; 65 invalid file; 69 cannot bind the port, reach the server or write the \
            output; 70 internal error (please report); 77 not permitted; 124 the time limit has passed; 126 a command of 'with' cannot be executed; 127 there is no such command; 130 interrupted.
            """,
        version: SlowlaneVersion.current,
        subcommands: [
            ProxyCommand.self, WithCommand.self, AuthorityCommand.self, ServerCommand.self, ListCommand.self,
            InspectCommand.self,
            CreateCommand.self,
            ToggleCommand.self, DeleteCommand.self, ToxicCommand.self, LinkCommand.self, ResetCommand.self,
            EventsCommand.self, DemoCommand.self, RunCommand.self, ExploreCommand.self, ShrinkCommand.self,
            MergeReportsCommand.self, MutationTestCommand.self,
            ScenariosCommand.self, LintCommand.self, FormatCommand.self,
            ExplainCommand.self, SchemaCommand.self, NotesServerCommand.self, NotesCommand.self, ProfilesCommand.self,
            MeasureCommand.self, ModelCommand.self, CaptureCommand.self, CalibrateCommand.self, TraceCommand.self,
            DoctorCommand.self,
        ]
    )
}
