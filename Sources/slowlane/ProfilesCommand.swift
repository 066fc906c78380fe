internal import ArgumentParser
internal import Files
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
            abstract: "Lists the built-in profiles.",
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
        }
    }

    /// `slowlane profiles show`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shows a profile with the source of each number.",
            discussion: """
                Examples:
                  slowlane profiles show 3g
                  slowlane profiles show ./office.yaml --json
                """)

        @Argument(help: "A built-in profile's name, or a path to a file.")
        var profile: String

        @Flag(help: "As one JSON object.")
        var json = false

        func run() throws {
            let console = Console()
            let profile: Profile
            do {
                profile = try ProfileCatalogue.profile(self.profile)
            } catch {
                console.print("error: \(error)", to: .progress)
                if case .unknown = error { throw ExitStatus.usage }
                throw ExitStatus.invalidFile
            }
            if json { return console.print(try profile.json()) }
            console.print("\(profile.id): \(profile.name) (\(profile.interface.rawValue))")
            if !profile.about.isEmpty { console.print(profile.about.trimmingCharacters(in: .whitespacesAndNewlines)) }
            let conditions = profile.conditions
            console.print("")
            console.print("round trip \(Units.delay(conditions.up.delay + conditions.down.delay)) without queues")
            for (name, direction) in [("down", conditions.down), ("up", conditions.up)] {
                guard let rate = direction.rate else { continue }
                let full = rate.serialisation(ofBytes: direction.queue.packets * 1500)
                console.print("a full queue \(name) adds \(Units.milliseconds(full))")
            }
            if let reason = conditions.unsupported { console.print("not yet usable: \(reason)") }
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
            abstract: "Checks profile files: every problem with file:line:column and what was expected.",
            discussion: "Example: slowlane profiles check profiles/*.yaml")

        @Argument(help: "The files.")
        var files: [String]

        func run() throws {
            let console = Console()
            var isValid = true
            for file in files {
                do {
                    let profile = try ProfileCatalogue.profile(atPath: file)
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
                let queue: Int

                init(_ conditions: DirectionConditions) {
                    rate = conditions.rate?.bitsPerSecond
                    delay = conditions.delay.inMilliseconds
                    loss = Double(conditions.loss.partsPerMillion) / 10_000
                    queue = conditions.queue.packets
                }

                enum CodingKeys: String, CodingKey {
                    case rate = "rate_bps"
                    case delay = "delay_ms"
                    case loss = "loss_percent"
                    case queue = "queue_packets"
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
