internal import ArgumentParser
internal import ConfigFiles
internal import Foundation
internal import LinkModel

/// `slowlane profiles`.
struct ProfilesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profiles",
        abstract: "Lists, shows and checks profiles: named conditions of a link.",
        subcommands: [List.self, Show.self, Check.self],
        defaultSubcommand: List.self
    )

    /// `slowlane profiles list`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the built-in profiles and timelines.",
            discussion: "Rates are kbit/s = 1000 bit/s and count whole IP packets; delays are one way.")

        @Flag(help: "One JSON object a line.")
        var json = false

        func run() throws {
            let console = Console()
            if json {
                for profile in ProfileCatalogue.builtIn { console.print(try profile.json()) }
                return
            }
            var rows = [["PROFILE", "DOWN", "UP", "DELAY DOWN/UP", "LOSS DOWN/UP", "DNS", "NAME"]]
            for profile in ProfileCatalogue.builtIn {
                let (down, up) = (profile.conditions.down, profile.conditions.up)
                rows.append([
                    profile.id, down.rate?.description ?? "no cap", up.rate?.description ?? "no cap",
                    "\(Units.delay(down.delay)) / \(Units.delay(up.delay))", "\(down.loss) / \(up.loss)",
                    Units.delay(profile.conditions.dnsDelay), profile.name,
                ])
            }
            for line in Units.table(rows) { console.print(line) }
            console.print("")
            let timelines =
                [["TIMELINE", "ROUND", "NAME"]]
                + ProfileCatalogue.timelines.map { file in
                    [file.id, file.timeline.repeatsAfter.map(Units.time) ?? "-", file.name]
                }
            for line in Units.table(timelines) { console.print(line) }
        }
    }

    /// `slowlane profiles show`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows a profile with the source of each number, or what a timeline does when.",
            discussion: """
                Examples:
                  slowlane profiles show 3g
                  slowlane profiles show subway
                  slowlane profiles show ./office.yaml --json
                """)

        @Argument(help: "A built-in profile's or timeline's name, or a path to a file.")
        var profile: String

        @Flag(help: "As one JSON object.")
        var json = false

        func run() throws {
            let console = Console()
            switch try find(console) {
            case .profile(let profile): try show(profile, console)
            case .timeline(let file): show(file, console)
            }
        }

        private func find(_ console: Console) throws -> ProfileCatalogue.Either {
            do {
                return try ProfileCatalogue.either(profile)
            } catch {
                throw error.told(to: console)
            }
        }

        private func show(_ file: TimelineFile, _ console: Console) {
            console.print("\(file.id): \(file.name)\(file.grade.map { " (\($0.rawValue))" } ?? "")")
            if !file.about.isEmpty { console.print(file.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
            console.print("")
            var rows = [["FROM", "WHAT"]]
            for entry in file.timeline.entries {
                let what =
                    switch entry.phase {
                    case .hold(let link): "\(link.name) (\(Units.conditions(link.conditions)))"
                    case .ramp(let link, let over): "evenly to \(link.name) within \(Units.time(over))"
                    case .flap(let intervals, let jitter):
                        "in turn "
                            + intervals.map { "\($0.link.name) \(Units.time($0.length))" }.joined(separator: ", ")
                            + (jitter == .zero ? "" : ", give or take \(jitter)")
                    }
                rows.append([Units.time(entry.start), what])
            }
            for line in Units.table(rows) { console.print(line) }
            if let round = file.timeline.repeatsAfter { console.print("and again after \(Units.time(round))") }
        }

        private func show(_ profile: Profile, _ console: Console) throws {
            if json { return console.print(try profile.json()) }
            console.print("\(profile.id): \(profile.name) (\(profile.interface.rawValue))")
            if !profile.about.isEmpty { console.print(profile.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
            let conditions = profile.conditions
            console.print("")
            console.print("round trip \(Units.delay(conditions.up.delay + conditions.down.delay)) without queues")
            for (name, direction) in [("down", conditions.down), ("up", conditions.up)] {
                guard let rate = direction.rate else { continue }
                let full = rate.serializationTime(ofBytes: direction.queue.approximateBytes)
                console.print("a full queue \(name) adds \(Units.milliseconds(full))")
            }
            console.print("")
            var rows = [["FIGURE", "VALUE", "GRADE", "SOURCE"]]
            for figure in profile.figures {
                rows.append([
                    figure.key, figure.value, figure.grade?.rawValue ?? "-",
                    figure.source?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "not given",
                ])
            }
            for line in Units.table(rows) { console.print(line) }
        }
    }

    /// `slowlane profiles check`.
    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Checks profile and timeline files: every problem with file:line:column and what was expected.",
            discussion: "Example: slowlane profiles check profiles/*.yaml")

        @Argument(help: "The files.")
        var files: [String]

        func run() throws {
            let console = Console()
            var isValid = true
            for file in files {
                do {
                    guard case .profile(let profile) = try ProfileCatalogue.either(atPath: file) else {
                        console.print("\(file): ok: a timeline")
                        continue
                    }
                    let unsourced = profile.figures.filter { $0.source == nil || $0.grade == nil }.count
                    let note = unsourced == 0 ? "" : " (\(unsourced) figures without source or grade)"
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

extension Profile {
    /// The profile as one line of JSON: rates in bit/s or `null`, times in milliseconds, loss in percent.
    fileprivate func json() throws -> String {
        struct Out: Encodable {
            struct Direction: Encodable {
                let rate: Int64?
                let delay: Double
                let loss: Double
                let queue: String

                init(_ conditions: DirectionConditions) {
                    rate = conditions.rate?.bitsPerSecond
                    delay = conditions.delay.inMilliseconds
                    loss = Double(conditions.loss.partsPerMillion) / 10_000
                    queue = conditions.queue.description
                }

                enum CodingKeys: String, CodingKey {
                    case rate = "rate_bps"
                    case delay = "delay_ms"
                    case loss = "loss_percent"
                    case queue
                }

                func encode(to encoder: any Encoder) throws {
                    var container = encoder.container(keyedBy: CodingKeys.self)
                    try container.encode(rate, forKey: .rate)
                    try container.encode(delay, forKey: .delay)
                    try container.encode(loss, forKey: .loss)
                    try container.encode(queue, forKey: .queue)
                }
            }
            struct Figure: Encodable {
                let key: String
                let value: String
                let grade: String?
                let source: String?
            }
            let id: String
            let name: String
            let interface: String
            let down: Direction
            let up: Direction
            let dns_delay_ms: Double
            let figures: [Figure]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let out = Out(
            id: id, name: name, interface: interface.rawValue, down: .init(conditions.down), up: .init(conditions.up),
            dns_delay_ms: conditions.dnsDelay.inMilliseconds,
            figures: figures.map {
                .init(
                    key: $0.key, value: $0.value, grade: $0.grade?.rawValue,
                    source: $0.source?.trimmingCharacters(in: .whitespacesAndNewlines))
            })
        return String(decoding: try encoder.encode(out), as: UTF8.self)
    }
}
