import Foundation
import TestSupport
import Testing

extension NotesCommandTests {
    /// The account of a store, rejected credentials, and the address of the server.
    @Suite(.serialized) struct NotesCredentialsTests {
        private static func server() async throws -> (command: Command, address: String) {
            let command = try Command([
                "notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--user", "bo:hidden", "--quiet",
            ])
            let line = try await command.output.line(with: "listening on ")
            return (command, try #require(line.firstMatch(of: /127\.0\.0\.1:\d+/).map { String($0.0) }))
        }

        private static func run(_ store: String, _ arguments: String...) async throws -> Command.Result {
            try await Command.run(["notes"] + arguments + ["--store", store])
        }

        private static func sync(
            _ store: String, _ address: String, _ user: String, _ more: String...
        ) async throws -> Command.Result {
            try await Command.run(
                ["notes", "sync", "--server", address, "--user", user, "--timeout", "20", "--store", store] + more)
        }

        private static func account(_ store: String) async throws -> String {
            let line = try await run(store, "status").output.split(separator: "\n").first { $0.hasPrefix("account ") }
            return try #require(line.map(String.init))
        }

        @Test(arguments: [true, false]) func rejectedCredentialsBindNoStore(isEmpty: Bool) async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            let (server, address) = try await Self.server()
            if !isEmpty { #expect(try await Self.run(store, "new", "Milk").status == 0) }
            for user in ["ada:wrong", "nobody:secret"] {
                let rejected = try await Self.sync(store, address, user)
                #expect(rejected.status == 69)
                #expect(rejected.errors.contains("error: the server rejects the credentials (403)"))
                #expect(try await Self.account(store) == "account    none: the first sync decides")
            }
            #expect(try await Self.sync(store, address, "bo:hidden").status == 0)
            #expect(try await Self.account(store) == "account    bo at \(address)")
            #expect(try await Self.sync(store, address, "ada:secret").status == 65)
            // An adoption with rejected credentials leaves the store with its account.
            #expect(try await Self.sync(store, address, "ada:wrong", "--adopt", "--yes").status == 69)
            #expect(try await Self.account(store) == "account    bo at \(address)")
            #expect(try await Self.sync(store, address, "bo:hidden").status == 0)
            #expect(try await Self.sync(store, address, "ada:secret", "--adopt", "--yes").status == (isEmpty ? 0 : 1))
            #expect(try await Self.account(store) == "account    ada at \(address)")
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        @Test func watchPrintsRejectedCredentialsAndAnotherAccountAsErrors() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            let (server, address) = try await Self.server()
            #expect(try await Self.sync(store, address, "bo:hidden").status == 0)
            for (user, error) in [
                ("bo:wrong", "error: the server rejects the credentials (403); pending changes are kept"),
                (
                    "ada:secret",
                    "error: the store belongs to the user 'bo' and not to 'ada'; nothing was sent or deleted"
                ),
            ] {
                let watch = try Command(["notes", "watch", "--server", address, "--user", user, "--store", store])
                _ = try await watch.errors.line(with: error)
                watch.signal(SIGINT)
                #expect(await watch.end() == 0)
                #expect(watch.errors.text.split(separator: "\n").count == 1, "\(watch.errors.text)")
                let last = try #require(watch.output.text.split(separator: "\n").last)
                #expect(
                    last.contains(user == "ada:secret" ? "belongs to the user" : "rejects the credentials"), "\(last)")
            }
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        @Test func theServerIsGivenByItsURL() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            let (server, address) = try await Self.server()
            for url in ["http://\(address)", "HTTP://\(address)/", address] {
                let result = try await Self.sync(store, url, "ada:secret")
                #expect(result.status == 0, "\(url): \(result.errors)")
            }
            #expect(try await Self.account(store) == "account    ada at \(address)")
            let watched = try await Self.run(
                store, "watch", "--server", "http://\(address)/api", "--user", "ada:secret")
            #expect(watched.status == 64)
            #expect(watched.errors.contains("the path '/api' at column \(8 + address.count)"))
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }
    }
}
