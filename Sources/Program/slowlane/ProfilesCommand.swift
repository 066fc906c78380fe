internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ControlAPI

/// `slowlane profiles`.
struct ProfilesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profiles",
        abstract: "List, show and check profiles (named network conditions) and timelines.",
        discussion: """
            Examples:
              slowlane profiles
              slowlane profiles show 3g
              slowlane profiles check ./office.yaml
            """,
        subcommands: [List.self, Show.self, Check.self],
        defaultSubcommand: List.self
    )

    /// `slowlane profiles list`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the built-in profiles and timelines.",
            discussion: """
                Example:
                  slowlane profiles list --json

                1 kbit/s is 1000 bit/s. Rates count whole packets, headers included. Delays are one way.
                """)

        @Flag(help: "Print JSON, one object per line.")
        var json = false

        func run() throws {
            let console = Console()
            if json {
                for profile in ProfileCatalogue.builtIn { console.print(profile.json) }
                for timeline in ProfileCatalogue.timelines { console.print(timeline.json) }
                return
            }
            for line in ProfileText.catalogue(width: Terminal.tableWidth) { console.print(line) }
        }
    }

    /// `slowlane profiles show`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show a profile with the source of each number, or the entries of a timeline.",
            discussion: """
                Examples:
                  slowlane profiles show 3g
                  slowlane profiles show subway
                  slowlane profiles show ./office.yaml --json
                """)

        @Argument(
            help: "A built-in profile or timeline, or the path of a file.", completion: NameCompletion.profileOrTimeline
        )
        var profile: String

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() throws {
            let console = Console()
            let found: ProfileCatalogue.ProfileOrTimeline
            do {
                found = try ProfileCatalogue.profileOrTimeline(profile)
            } catch {
                throw error.exitCode(reportingTo: console)
            }
            let lines =
                switch found {
                case .profile(let profile):
                    json ? [profile.json] : ProfileText.lines(profile, width: Terminal.tableWidth)
                case .timeline(let file): json ? [file.json] : ProfileText.lines(file, width: Terminal.tableWidth)
                }
            for line in lines { console.print(line) }
        }
    }

    /// `slowlane profiles check`.
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check profile and timeline files and print each problem with file:line:column.",
            discussion: """
                Example:
                  slowlane profiles check profiles/*.yaml

                Exit status: 0 all files are valid; 65 a file is invalid or cannot be read.
                """)

        @Argument(help: "Paths of files.", completion: NameCompletion.file)
        var files: [String]

        func run() throws {
            let console = Console()
            var isValid = true
            for file in files {
                do {
                    let found = try ProfileCatalogue.profileOrTimeline(atPath: file)
                    console.print("\(file): \(ProfileText.checked(found))")
                } catch {
                    console.errors(error)
                    isValid = false
                }
            }
            if !isValid { throw ExitStatus.invalidFile }
        }
    }
}
