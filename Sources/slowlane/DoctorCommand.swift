internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles

/// `slowlane doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check which features work on this machine, and print remedies for those that do not.",
        discussion: """
            Example:
              slowlane doctor

            Exit status: 0 the proxy works here, possibly with limitations (lines 'note'); 1 the proxy cannot work here.
            """)

    func run() async throws {
        let console = Console()
        console.print(
            "ok    slowlane \(SlowlaneVersion.current), \(ProfileCatalogue.builtIn.count) built-in profiles")
        var hasFailure = false
        for finding in await SystemCheck.run() {
            switch finding {
            case .ok(let text): console.print("ok    \(text)")
            case .limitation(let text, let remedy): console.print("note  \(text)\n      -> \(remedy)")
            case .failure(let text, let remedy):
                console.print("FAIL  \(text)\n      -> \(remedy)")
                hasFailure = true
            }
        }
        if hasFailure { throw ExitStatus.failed }
    }
}
