import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// `slowlane explore`.
    @Suite struct ExploreTests {
        private static let scenario = """
            scenario: 1
            name: small
            server: { notes: { n1: { title: Milk, text: two } } }
            devices: { A: { user: ada } }
            network: { A: { 0s: wifi } }
            steps: [{ at: 200ms, A: { edit: n1, text: three } }, { at: 5s, A: { delete: n1 } }]
            expect: { sometimes: [{ A: { row: n1, icon: upload } }] }

            """

        /// Returns a folder with the scenario.
        private static func folder() throws -> TemporaryFolder {
            let folder = try TemporaryFolder()
            try Data(scenario.utf8).write(to: URL(filePath: folder.path("small.yaml")))
            return folder
        }

        @Test func seedsPassAndAreCounted() async throws {
            let folder = try Self.folder()
            let path = folder.path("small.yaml")
            // The folder is removed with its last use.
            defer { withExtendedLifetime(folder) {} }
            let result = try await Command.run("explore", path, "--vary", "faults", "--seeds", "20", "--coverage")
            #expect(result.status == 0, "\(result.output)")
            #expect(result.output.contains("20 seeds: 20 pass, 0 fail; 1 repeated with equal digests; "))
            #expect(result.output.contains("PUT of a note that is pending: 200"))
        }

        /// A failing seed is repeated by the command that its report names.
        @Test func theReplayCommandFailsInTheSameWay() async throws {
            let folder = try Self.folder()
            let path = folder.path("small.yaml")
            // The folder is removed with its last use.
            defer { withExtendedLifetime(folder) {} }
            let arguments = ["--vary", "faults", "--mutant", "drops-on-lost-response", "--no-shrink"]
            let result = try await Command.run(
                ["explore", path, "--seeds", "30+10", "--json"] + arguments)
            #expect(result.status == 1)
            let lines = result.output.split(separator: "\n").filter {
                $0.contains("\"type\":\"failure\"") && $0.contains("no-lost-write (I1)")
            }
            let failure = try #require(lines.first.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) })
            let object = try #require(failure as? [String: Any])
            #expect(object["check"] as? String == "no-lost-write (I1)")
            #expect(object["subject"] as? String == "note")
            let replay = try #require(object["replay"] as? [String])
            #expect(replay.prefix(3) == ["slowlane", "explore", path])
            let again = try await Command.run(Array(replay.dropFirst()) + ["--no-shrink"])
            #expect(again.status == 1)
            #expect(again.output.contains("no-lost-write (I1)"))
            #expect(again.output.contains("seed \(object["seed"] ?? ""): contract "))
            #expect(again.output.contains("reproducible: repeated with the same digest"))
        }

        /// Four shards by GNU parallel are one exploration; three of them are no report.
        @Test func shardsOnSeveralProcessesAreTheWholeExploration() async throws {
            let folder = try Self.folder()
            let arguments = [
                "explore", folder.path("small.yaml"), "--vary", "faults", "--seeds", "9+12", "--mutant",
                "drops-on-lost-response", "--no-shrink", "--jobs", "1", "--quiet",
            ]
            let parallel = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map {
                "\($0)/parallel"
            }.first { FileManager.default.isExecutableFile(atPath: $0) }
            let shards = try Command(
                ["--will-cite", "--jobs", "2", Command.binary.path()] + arguments
                    + ["--shard", "{}/4", "--results", folder.path("{}.jsonl"), ":::", "1", "2", "3", "4"],
                binary: URL(filePath: try #require(parallel)))
            // The shards with failing seeds have the exit status 1.
            #expect(await shards.end() > 0)
            let merged = try await Command.run("merge-reports", folder.url.path, "--json")
            let whole = try await Command.run(arguments + ["--json", "--coverage"])
            func lines(_ output: String) -> [String] {
                output.split(separator: "\n").map { line in
                    // The real time differs.
                    line.contains("exploration_end") ? String(line.prefix { $0 != "w" }) : String(line)
                }
            }
            #expect(merged.status == 1 && whole.status == 1, "\(merged.errors)")
            #expect(lines(merged.output).count > 3)
            #expect(lines(merged.output) == lines(whole.output))
            try FileManager.default.removeItem(atPath: folder.path("3.jsonl"))
            let three = try await Command.run("merge-reports", folder.url.path)
            #expect(three.status == 65 && three.errors == "error: missing: shard 3/4\n")
        }

        @Test(arguments: [
            (["--shard", "1/4"], "needs --results"), (["--bias", "x"], "must be auto"),
            (["--shard", "1/4", "--results", "x", "--time", "5s"], "exclude --time"),
            (["--seeds", "5..<5"], "must be a range"), (["--time", "0s"], "must be a duration above 0"),
            (["--seed", "x"], "must be a whole number from 0 to 18446744073709551615, or commit"),
            (["--vary", "all"], "must be a list of workload"),
            (["--seed", "3", "--seeds", "7"], "excludes --seeds"),
            (["--mutant", "no-such"], "is not the name of a mutant"),
        ]) func wrongArgumentsAreExplained(_ arguments: [String], _ message: String) async throws {
            let result = try await Command.run(["explore", "two-device-soak"] + arguments)
            #expect(result.status == 64)
            #expect(result.errors.contains(message), "\(result.errors)")
        }
    }
}
