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

        /// Starts a server and a client that synchronises a store with one note, and waits until it has done so.
        private static func writer(of store: String) async throws -> (server: Command, client: Command) {
            #expect(try await run(store, ["new", "Milk", "--text", "2 l"]).status == 0)
            let server = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            let line = try await server.output.line(with: "listening on ")
            let address = try #require(line.firstMatch(of: /127\.0\.0\.1:\d+/).map { String($0.0) })
            let client = try Command([
                "notes", "watch", "--json", "--store", store, "--server", address, "--user", "ada:secret",
            ])
            _ = try await client.output.line(with: #""state":"synced""#)
            return (server, client)
        }

        private static func files(_ folder: TemporaryFolder) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path(".")).sorted()
        }

        /// The files of a process that does not run any more are read as they are: the log has all of the note.
        @Test func readingCommandsNeitherWaitForAStoppedWriterNorCreateAFile() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            let (server, client) = try await Self.writer(of: store)
            client.signal(SIGSTOP)
            let before = try Self.files(folder)
            #expect(before.contains("notes.db-wal"))
            for command in Self.commands {
                let result = try await Self.run(store, command)
                #expect(result.status == 0, "\(command): \(result.errors)")
            }
            #expect(try await Self.run(store, ["list"]).output.contains("synced  1    Milk   2 l"))
            #expect(try Self.files(folder) == before)
            client.signal(SIGKILL)
            _ = await client.end()
            #expect(try await Self.run(store, ["list"]).output.contains("Milk   2 l"))
            #expect(try Self.files(folder) == before)
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        @Test(.enabled(if: isMounting, "needs the right to mount"), arguments: [false, true])
        func readingCommandsWorkOnAReadOnlyFileSystem(hasLog: Bool) async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            if hasLog {
                let (server, client) = try await Self.writer(of: store)
                for command in [client, server] {
                    command.signal(SIGKILL)
                    _ = await command.end()
                }
                #expect(try Self.files(folder).contains("notes.db-wal"))
            } else {
                #expect(try await Self.run(store, ["new", "Milk", "--text", "2 l"]).status == 0)
            }
            let script = #"mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@""#
            func readOnly(
                _ arguments: [String], variables: [String] = []
            ) throws -> (status: Int32, output: String, errors: String) {
                let result = try runProgram(
                    "unshare",
                    ["-m", "sh", "-c", script, "sh", folder.path("."), "env"] + variables
                        + [Command.binary.path(), "notes"] + arguments + ["--store", store])
                return (result.status, result.output, result.errors)
            }
            for command in Self.commands {
                let result = try readOnly(command)
                #expect(result.status == 0, "\(command): \(result.errors)")
            }
            #expect(try readOnly(["list"]).output.contains("Milk   2 l"))
            if hasLog {
                // Without its index, the log is read from a copy.
                try FileManager.default.removeItem(atPath: store + "-shm")
                #expect(try readOnly(["list"]).output.contains("Milk   2 l"))
                let result = try readOnly(["list"], variables: ["TMPDIR=\(folder.path("."))"])
                #expect(result.status == 69 && result.errors.contains("set TMPDIR"), "\(result.errors)")
            }
            let change = try readOnly(["new", "Bread"])
            #expect(change.status == 69)
            #expect(change.errors.contains("(EROFS)"), "\(change.errors)")
        }
    }
}
