import Foundation
import TestSupport
import Testing

extension NotesCommandTests {
    /// The options of the notes server and those it refuses before it listens.
    @Suite(.serialized) struct NotesServerStartTests {
        private static func refuse(_ status: Int32, _ parts: [String], _ arguments: String...) async throws {
            let listen = arguments.contains("--listen") ? [] : ["--listen", "127.0.0.1:0"]
            let command = try Command(["notes-server"] + listen + arguments)
            #expect(await command.end() == status, "\(arguments)")
            for part in parts { #expect(command.errors.text.contains(part), "\(arguments): \(command.errors.text)") }
            #expect(!command.errors.text.contains("secret"), "a password is printed")
            #expect(command.output.text.isEmpty)
        }

        @Test func wrongOptionsAreRefusedWithTheirNamesAndARemedy() async throws {
            try await Self.refuse(64, ["--db", "leave --db out"], "--db", "")
            try await Self.refuse(64, ["--db", "leave --db out"], "--db", ":memory:")
            try await Self.refuse(64, ["--user", "duplicate user"], "--user", "ada:secret1", "--user", "ada:secret2")
            for user in ["ada", ":secret", "ada:"] { try await Self.refuse(64, ["NAME:PASSWORD"], "--user", user) }
            for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
                try await Self.refuse(64, ["--listen \(address)", "--user NAME:PASSWORD"], "--listen", address)
            }
        }

        @Test func aFileOfUsersIsRefusedWithItsLineNumber() async throws {
            let folder = try TemporaryFolder()
            func file(_ text: String) throws -> String {
                try Data(text.utf8).write(to: URL(filePath: folder.path("users")))
                return folder.path("users")
            }
            let twice = try file("# users\nada:secret\n\nbo:secret\nada:secret\n")
            try await Self.refuse(65, ["users:5", "first given by", "users:2"], "--user-file", twice)
            try await Self.refuse(65, ["users:1", "NAME:PASSWORD"], "--user-file", try file("secret"))
            try await Self.refuse(65, ["no users"], "--user-file", try file("\n"))
            try await Self.refuse(
                65, ["users:1", "--user"], "--user", "ada:secret", "--user-file", try file("ada:secret"))
            try await Self.refuse(65, ["--user-file", "no such file"], "--user-file", folder.path("none"))
        }

        @Test func aForeignDatabaseIsRefused() async throws {
            let folder = try TemporaryFolder()
            let made = try runProgram(
                "python3",
                ["-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE person (name)')"]
                    + [folder.path("other.db")])
            #expect(made.status == 0, "\(made.errors)")
            let before = try Data(contentsOf: URL(filePath: folder.path("other.db")))
            try await Self.refuse(
                65, ["--db", "is not a notes database (tables person)"], "--db", folder.path("other.db"))
            #expect(try Data(contentsOf: URL(filePath: folder.path("other.db"))) == before)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")) == ["other.db"])
        }

        private static func status(_ command: Command, _ user: String) async throws -> Int {
            let line = try await command.output.line(with: "listening on ")
            let port = try #require(line.firstMatch(of: /:(\d+)\/api/).flatMap { Int($0.1) })
            let field = "Authorization: Basic " + Data(user.utf8).base64EncodedString()
            return try await blocking { try HTTPPeer(port: port).ask("GET", "/api/notes/", "", [field]).status }
        }

        @Test func usersComeFromAFileOrTheEnvironment() async throws {
            let folder = try TemporaryFolder()
            try Data("bo:with:colons\r\ncy:c\n".utf8).write(to: URL(filePath: folder.path("users")))
            let byFile = try Command([
                "notes-server", "--listen", "0.0.0.0:0", "-q", "--user", "ada:a", "--user-file", folder.path("users"),
            ])
            for user in ["ada:a", "bo:with:colons", "cy:c"] { #expect(try await Self.status(byFile, user) == 200) }
            #expect(try await Self.status(byFile, "bo:bo") == 403)
            byFile.signal(SIGTERM)
            #expect(await byFile.end() == 0)
            let script = "SLOWLANE_NOTES_USERS='di:d\ned:e' exec \"$0\" notes-server -q --listen 127.0.0.1:0 \"$@\""
            for (more, known, unknown) in [([], "ed:e", "ada:ada"), (["--user", "ada:a"], "ada:a", "ed:e")] {
                let byEnvironment = try Command(
                    ["-c", script, Command.binary.path()] + more, binary: URL(filePath: "/bin/sh"))
                #expect(try await Self.status(byEnvironment, known) == 200)
                #expect(try await Self.status(byEnvironment, unknown) == 403)
                byEnvironment.signal(SIGTERM)
                #expect(await byEnvironment.end() == 0)
            }
        }
    }
}
