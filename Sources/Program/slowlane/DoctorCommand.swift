internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles

/// `slowlane doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check which features work on this machine, and print remedies for those that do not.",
        discussion: """
            Examples:
              slowlane doctor
              slowlane doctor --json

            Exit status: 0 the proxy works here, possibly with limitations (lines 'note'); 1 the proxy cannot work here.
            """)

    @Flag(help: "Print one JSON object.") var json = false

    func run() async throws {
        let console = Console()
        let findings = await SystemCheck.run()
        if json {
            console.print(SystemCheck.json(findings))
        } else {
            console.print(
                "ok    slowlane \(SlowlaneVersion.current), \(ProfileCatalogue.builtIn.count) built-in profiles")
            for finding in findings { console.print(finding.text) }
        }
        if findings.contains(where: \.isFailure) { throw ExitStatus.failed }
    }
}
