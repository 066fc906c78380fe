internal import ArgumentParser
internal import CommandSupport
internal import ConfigFiles
internal import ControlAPI
internal import Foundation
internal import LinkModel

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
            var rows = [["PROFILE", "DOWN", "UP", "DELAY DOWN/UP", "LOSS DOWN/UP", "DNS", "NAME"]]
            for profile in ProfileCatalogue.builtIn {
                let (down, up) = (profile.conditions.down, profile.conditions.up)
                rows.append([
                    profile.id, down.rate?.description ?? "unlimited", up.rate?.description ?? "unlimited",
                    "\(Units.delay(down.delay)) / \(Units.delay(up.delay))", "\(down.loss) / \(up.loss)",
                    Units.delay(profile.conditions.dnsDelay), profile.name,
                ])
            }
            for line in TextTable.lines(rows) { console.print(line) }
            console.print("")
            let timelines =
                [["TIMELINE", "REPEATS EVERY", "NAME"]]
                + ProfileCatalogue.timelines.map { file in
                    [file.id, file.timeline.repeatsAfter.map(Units.time) ?? "-", file.name]
                }
            for line in TextTable.lines(timelines) { console.print(line) }
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

        @Argument(help: "A built-in profile or timeline, or the path of a file.")
        var profile: String

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() throws {
            let console = Console()
            switch try find(console) {
            case .profile(let profile): show(profile, console)
            case .timeline(let file): show(file, console)
            }
        }

        private func find(_ console: Console) throws -> ProfileCatalogue.ProfileOrTimeline {
            do {
                return try ProfileCatalogue.profileOrTimeline(profile)
            } catch {
                throw error.exitCode(reportingTo: console)
            }
        }

        private func show(_ file: TimelineFile, _ console: Console) {
            if json { return console.print(file.json) }
            console.print("\(file.id): \(file.name)\(file.grade.map { " (\($0.rawValue))" } ?? "")")
            if !file.about.isEmpty { console.print(file.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
            console.print("")
            var rows = [["FROM", "CONDITIONS"]]
            for entry in file.timeline.entries {
                let conditions =
                    switch entry.phase {
                    case .hold(let link): "\(link.name) (\(Units.conditions(link.conditions)))"
                    case .ramp(let link, let over): "ramp to \(link.name) over \(Units.time(over))"
                    case .flap(let intervals, let jitter):
                        "alternates "
                            + intervals.map { "\($0.link.name) \(Units.time($0.length))" }.joined(separator: ", ")
                            + (jitter == .zero ? "" : ", ±\(jitter)")
                    }
                rows.append([Units.time(entry.start), conditions])
            }
            for line in TextTable.lines(rows) { console.print(line) }
            if let period = file.timeline.repeatsAfter { console.print("repeats every \(Units.time(period))") }
        }

        private func show(_ profile: Profile, _ console: Console) {
            if json { return console.print(profile.json) }
            console.print("\(profile.id): \(profile.name) (\(profile.interface.rawValue))")
            if !profile.about.isEmpty { console.print(profile.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
            let conditions = profile.conditions
            console.print("")
            console.print("round trip without queueing: \(Units.delay(conditions.up.delay + conditions.down.delay))")
            for (name, direction) in [("down", conditions.down), ("up", conditions.up)] {
                guard let rate = direction.rate else { continue }
                let full = rate.serializationTime(ofBytes: direction.queue.approximateBytes)
                console.print("delay of a full queue \(name): \(Units.milliseconds(full))")
            }
            console.print("")
            var rows = [["FIGURE", "VALUE", "GRADE", "SOURCE"]]
            for figure in profile.figures {
                rows.append([
                    figure.key, figure.value, figure.grade?.rawValue ?? "-",
                    figure.source?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "not given",
                ])
            }
            for line in TextTable.lines(rows) { console.print(line) }
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

        @Argument(help: "Paths of files.")
        var files: [String]

        func run() throws {
            let console = Console()
            var isValid = true
            for file in files {
                do {
                    guard case .profile(let profile) = try ProfileCatalogue.profileOrTimeline(atPath: file) else {
                        console.print("\(file): ok: timeline")
                        continue
                    }
                    let unsourced = profile.figures.count { $0.source == nil || $0.grade == nil }
                    let note =
                        unsourced == 0 ? "" : " (\(TextTable.count(unsourced, "figure")) without source or grade)"
                    console.print("\(file): ok: \(Units.conditions(profile.conditions))\(note)")
                } catch {
                    console.print("\(error)", to: .progress)
                    isValid = false
                }
            }
            if !isValid { throw ExitStatus.invalidFile }
        }
    }
}
