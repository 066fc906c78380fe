import Foundation
import TestSupport
import Testing

extension NotesCommandTests {
    /// The commands that read a store: they create nothing and write nothing.
    @Suite(.serialized) struct NotesReadingTests {
        private static let commands = [
            ["list"], ["list", "--json"], ["show", "Milk"], ["conflicts"], ["status"], ["attachments", "Milk"],
        ]

        /// Whether this process may mount file systems.
        private static let isMounting: Bool = {
            #if os(Linux)
            return geteuid() == 0 && (try? runProgram("unshare", ["-m", "true"]).status) == 0
            #else
            return false
            #endif
        }()

        private static func run(_ store: String, _ arguments: [String]) async throws -> Command.Result {
            try await Command.run(["notes"] + arguments + ["--store", store])
        }

        @Test func readingCommandsDoNotCreateAStore() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("none.db")
            for command in Self.commands + [["resolve", "Milk"]] {
                let result = try await Self.run(store, command)
                #expect(result.status == 69, "\(command)")
                #expect(result.errors.hasPrefix("error: no store at \(store); "), "\(command): \(result.errors)")
                #expect(result.output.isEmpty)
            }
            let watch = try Command(["notes", "watch", "--store", store])
            let isMissing = try await watch.errors.line(with: "error: ").hasPrefix("error: no store at \(store); ")
            #expect(isMissing)
            #expect(await watch.end() == 69)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")).isEmpty)
        }

        @Test(.enabled(if: isMounting, "needs the right to mount"))
        func readingCommandsWorkOnAReadOnlyFileSystem() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            #expect(try await Self.run(store, ["new", "Milk", "--text", "2 l"]).status == 0)
            let script = #"mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@""#
            func readOnly(_ arguments: [String]) throws -> (status: Int32, output: String, errors: String) {
                let result = try runProgram(
                    "unshare",
                    ["-m", "sh", "-c", script, "sh", folder.path("."), Command.binary.path(), "notes"] + arguments
                        + ["--store", store])
                return (result.status, result.output, result.errors)
            }
            for command in Self.commands {
                let result = try readOnly(command)
                #expect(result.status == 0, "\(command): \(result.errors)")
            }
            #expect(try readOnly(["list"]).output.contains("Milk   2 l"))
            let change = try readOnly(["new", "Bread"])
            #expect(change.status == 69)
            #expect(change.errors.contains("(EROFS)"), "\(change.errors)")
        }
    }
}
