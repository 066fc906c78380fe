import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// `slowlane run --shrink` and `slowlane shrink`.
    @Suite(.serialized) struct ShrinkCommandTests {
        /// The command after a label, without the name of the program; a command may have several lines.
        private static func command(_ output: String, after label: String) throws -> [String] {
            let lines = output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            let start = try #require(lines.firstIndex { $0.hasPrefix("\(label): ") }, "\(output)")
            var command = ""
            for line in lines[start...] {
                command += (command.isEmpty ? String(line.dropFirst(label.count + 2)) : line)
                guard command.hasSuffix("\\") else { break }
                command.removeLast()
            }
            return command.split(separator: " ").dropFirst().map(String.init)
        }

        /// The run that was shrunk, and the file, fail in the same way with the commands that are printed.
        @Test func theCommandsThatArePrintedRepeatTheFailure() async throws {
            let folder = try TemporaryFolder()
            let shrunk = try await Command.run(
                "shrink", "put-answer-lost", "--variant", "none", "--mutant", "drops-on-lost-response", "--output",
                folder.path("f"))
            #expect(shrunk.status == 0, "\(shrunk.output)\(shrunk.errors)")
            #expect(shrunk.output.split(separator: "\n").count <= 24)
            let check = try #require(
                shrunk.output.split(separator: "\n").first?.split(separator: ": ").dropFirst(2).joined())
            let replay = try Self.command(shrunk.output, after: "replay")
            #expect(replay.prefix(1) == ["run"])
            let again = try await Command.run(replay)
            #expect(again.status == 1 && again.output.contains(check), "\(again.output)")
            // The file alone, without the seed and the variant, is the same.
            let file = try await Command.run("run", replay[1], "--mutant", "drops-on-lost-response", "--quiet")
            #expect(file.status == 1, "\(file.output)")
            #expect(try await Command.run("run", replay[1], "--quiet").status == 0)
            #expect(try await Command.run("lint", "--strict", replay[1]).status == 0)
            #expect(try await Command.run("fmt", "--check", replay[1]).status == 0)
        }
    }
}
