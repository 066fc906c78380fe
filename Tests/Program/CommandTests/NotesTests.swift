import Foundation
import TestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The commands of the notes server and the notes client.
@Suite(.tags(.services), .serialized, .timeLimit(.minutes(10))) enum NotesCommandTests {}

extension NotesCommandTests {
    /// The notes server and the notes client, run as commands.
    @Suite(.serialized) struct NotesTests {
        /// A server on a free port.
        private struct Server {
            let command: Command
            let port: Int

            init(_ arguments: String...) async throws {
                command = try Command(
                    ["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"] + arguments)
                let line = try await command.output.line(with: "listening on ")
                port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            }

            func stop() async {
                command.signal(SIGTERM)
                #expect(await command.end() == 0)
            }
        }

        /// The notes client with a store of its own.
        private struct Client {
            let store: String

            func run(_ arguments: String...) async throws -> Command.Result {
                let command = try Command(["notes"] + arguments + ["--store", store])
                let status = await command.end()
                return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
            }

            func sync(_ port: Int, timeout: String = "20") async throws -> Command.Result {
                try await run(
                    "sync", "--server", "127.0.0.1:\(port)", "--user", "ada:secret", "--timeout", timeout, "--quiet")
            }
        }

        @Test(arguments: ["compat", "orig", "strict"])
        func aConflictIsReportedAndItsResolutionReachesBothClients(contract: String) async throws {
            let folder = try TemporaryFolder()
            let server = try await Server("--contract", contract)
            let phone = Client(store: folder.path("phone.db"))
            let laptop = Client(store: folder.path("laptop.db"))
            #expect(try await phone.run("new", "Milk", "--text", "2 l").status == 0)
            #expect(try await phone.run("status").output.contains("1 note, 1 pending change,"))
            #expect(try await phone.sync(server.port).status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            #expect(try await laptop.run("edit", "Milk", "--text", "3 l").status == 0)
            #expect(try await phone.run("edit", "Milk", "--text", "2 l, oat").status == 0)
            #expect(try await laptop.sync(server.port).status == 0)

            let refused = try await phone.sync(server.port)
            #expect(refused.status == 1)
            #expect(refused.errors.contains("the sync is complete, but 1 note in conflict; see"))
            #expect(refused.output.contains("conflict: 'Milk' was changed both locally and on the server"))
            let both = try await phone.run("conflicts").output
            #expect(both.contains("base    Milk | 2 l\n"))
            #expect(both.contains("mine    Milk | 2 l, oat\n"))
            #expect(both.contains("theirs  Milk | 3 l\n"))
            #expect(try await phone.run("resolve", "Milk", "--text", "3 l, oat").status == 0)
            #expect(try await phone.sync(server.port).status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            let lists = try await (phone.run("list").output, laptop.run("list").output)
            #expect(lists.0 == lists.1)
            #expect(lists.0.contains("3 l, oat"))
            await server.stop()
        }

        /// Changes of different lines are merged by a policy; others stay in conflict.
        @Test func allConflictsAreResolvedByAPolicy() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let phone = Client(store: folder.path("phone.db"))
            let laptop = Client(store: folder.path("laptop.db"))
            for title in ["Milk", "Bread"] {
                #expect(try await phone.run("new", title, "--text", "1\n2\n3").status == 0)
            }
            for client in [phone, laptop] { #expect(try await client.sync(server.port).status == 0) }
            for (title, mine, theirs) in [("Milk", "0\n2\n3", "1\n2\n4"), ("Bread", "x", "y")] {
                #expect(try await laptop.run("edit", title, "--text", theirs).status == 0)
                #expect(try await phone.run("edit", title, "--text", mine).status == 0)
            }
            #expect(try await laptop.sync(server.port).status == 0)
            let result = try await phone.run(
                "sync", "--server", "127.0.0.1:\(server.port)", "--user", "ada:secret", "--json")
            #expect(result.status == 1)
            #expect(
                result.output.hasPrefix(
                    #"{"type":"sync","version":1,"result":"conflicts","cause":null,"reason":null,"notes":2,"pending":0,"#
                        + #""conflicts":2,"rejected":0,"#), "\(result.output)")
            let resolved = try await phone.run("resolve", "--all", "--policy", "lines")
            #expect(resolved.status == 1 && resolved.output.hasPrefix("1 conflict resolved, 1 open\nopen: "))
            #expect(resolved.output.contains("Bread"))
            #expect(try await phone.run("resolve", "--all", "--policy", "mine").status == 0)
            #expect(try await phone.sync(server.port).status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            #expect(try await laptop.run("show", "Milk").output.contains("\n0\n2\n4\n"))
            #expect(try await laptop.run("show", "Bread").output.contains("\nx\n"))
            // The policy of a sync leaves no conflict of its own.
            #expect(try await laptop.run("edit", "Bread", "--text", "later").status == 0)
            #expect(try await phone.run("edit", "Bread", "--text", "earlier").status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            let merged = try await phone.run(
                "sync", "--server", "127.0.0.1:\(server.port)", "--user", "ada:secret", "--conflicts", "theirs")
            #expect(merged.status == 0)
            #expect(try await phone.run("show", "Bread").output.contains("\nlater\n"))
            for arguments in [["resolve"], ["resolve", "--all"], ["resolve", "Milk", "--policy", "mine"]] {
                let command = try Command(["notes"] + arguments + ["--store", phone.store])
                #expect(await command.end() == 64)
            }
            await server.stop()
        }

        /// Each reason has a name of its own, the same in the result of the sync, in the status and in the lines of a watch, and
        /// the same words beside it.
        @Test func theReasonsWhyNothingIsSynchronisedAreDistinct() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let forbidding = try await Server("--test-hooks")
            let rule = """
                {"path":"/api/*","do":"respond","status":403,"body":"{}","headers":
                {"Slowlane-Notes":"1","Content-Type":"application/json"}}
                """
            let reply = try await blocking { [port = forbidding.port] in
                try HTTPPeer(port: port).ask("POST", "/test-hooks/rules", rule)
            }
            #expect((200..<300).contains(reply.status), "\(reply)")
            for (address, user, cause, text) in [
                ("127.0.0.1:\(server.port)", "ada:wrong", "credentials-rejected", "rejects the credentials (403)"),
                ("127.0.0.1:\(forbidding.port)", "ada:secret", "forbidden", "rejects the user (403)"),
                ("127.0.0.1:\(try TestSocket.unusedPort())", "ada:secret", "connection-refused", "connection refused"),
                ("name.invalid:80", "ada:secret", "name-not-found", "unknown host"),
            ] {
                let client = Client(store: folder.path("\(cause).db"))
                #expect(try await client.run("new", "Milk").status == 0)
                let sync = try await client.run(
                    "sync", "--server", address, "--user", user, "--timeout", "3", "--json")
                #expect(sync.status == 69)
                #expect(sync.output.contains(#""cause":"\#(cause)""#), "\(sync.output)\(sync.errors)")
                #expect(sync.errors.contains(text), "\(sync.errors)")
                let json = try #require(
                    sync.output.firstMatch(of: /"cause":"[^"]*","reason":"[^"]*"/), "\(sync.output)"
                ).0
                #expect(json.contains(text))
                let status = try await client.run("status")
                #expect(
                    status.output.contains("problem    \(cause): ") && status.output.contains(text), "\(status.output)")
                #expect(try await client.run("status", "--json").output.contains(json))
                #expect(try await client.run("status").output.contains("account    none"))
                let watch = try Command(
                    ["notes", "watch", "--json", "--server", address, "--user", user, "--store", client.store])
                let line = try await watch.output.line(with: String(json))
                #expect(line.hasPrefix(#"{"type":"sync","version":1,"#))
                watch.signal(SIGTERM)
                #expect(await watch.end() == 0)
            }
            await server.stop()
            await forbidding.stop()
        }

        @Test func anArgumentThatIsNotUTF8IsRefused() async throws {
            let folder = try TemporaryFolder()
            let command = try Command(
                [
                    "-c", #"exec "$0" notes new "$(printf 'a\377')" --store "$1""#, Command.binary.path(),
                    folder.path("notes.db"),
                ], binary: URL(filePath: "/bin/sh"))
            #expect(await command.end() == 64)
            #expect(command.errors.text == "error: argument 3 is not valid UTF-8\n")
        }

        /// Responses of peers that are not notes servers: the client reports an error and keeps its changes.
        @Test(arguments: [
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>",
            "HTTP/1.1 200 OK\r\nSlowlane-Notes: 1\r\nContent-Length: 900\r\n\r\n[{\"uuid\":",
            "HTTP/1.1 200 OK\r\nSlowlane-Notes: 1\r\nContent-Length: 9\r\n\r\n{nonsense",
            "HTTP/1.1 302 Found\r\nLocation: http://portal/\r\nContent-Length: 0\r\n\r\n",
            "220 mail.example ESMTP\r\n", "",
        ]) func aForeignServerCausesNoLoss(response: String) async throws {
            let folder = try TemporaryFolder()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk", "--text", "2 l").status == 0)
            let (listener, port) = try TestSocket.listen()
            // Each connection gets the response and a FIN.
            Thread.detachNewThread {
                while let connection = try? listener.accept() {
                    guard (try? connection.receive()) != nil else { return }
                    try? connection.send(Array(response.utf8))
                    connection.finish()
                }
            }
            let tried = try await client.sync(port, timeout: "2")
            #expect(tried.status == 69, "\(tried.errors)")
            #expect(tried.errors.split(separator: "\n").count == 1, "\(tried.errors)")
            #expect(tried.errors.hasPrefix("error: "))
            let status = try await client.run("status").output
            #expect(status.hasPrefix("1 note, 1 pending change, 0 in conflict, 0 rejected\n"))
            let server = try await Server()
            #expect(try await client.sync(server.port).status == 0)
            #expect(try await client.run("list").output.contains("synced"))
            await server.stop()
            // Ends the thread's last accept().
            _ = try TestSocket.connect(port: port)
        }

        @Test func anUnusableStoreIsReportedInOneLine() async throws {
            let folder = try TemporaryFolder()
            func lines(_ client: Client, status: Int32, _ part: String) async throws {
                let result = try await client.run("new", "Milk")
                #expect(result.status == status, "\(result.errors)")
                #expect(result.errors.split(separator: "\n").count == 1)
                #expect(result.errors.contains(part), "\(result.errors)")
            }
            try Data("no database at all, but long enough to be one".utf8).write(to: URL(filePath: folder.path("text")))
            try await lines(Client(store: folder.path("text")), status: 65, "is not a")
            try await lines(Client(store: folder.path("none/notes.db")), status: 69, "no such directory; create ")
            #expect(try await Client(store: folder.path("a")).run("edit", "Milk", "--text", "x").status == 64)
        }

        @Test func theServerRefusesATakenPortAndInvalidOptions() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let taken = try await Command.run("notes-server", "--listen", "127.0.0.1:\(server.port)")
            #expect(taken.status == 69)
            #expect(taken.errors.hasPrefix("error: ") && taken.errors.split(separator: "\n").count == 1)
            #expect(taken.errors.contains("127.0.0.1:\(server.port)"))
            try Data("no database at all, but long enough to be one".utf8).write(to: URL(filePath: folder.path("text")))
            #expect(try await Command.run("notes-server", "--db", folder.path("text")).status == 65)
            #expect(try await Command.run("notes-server", "--user", "ada").status == 64)
            for wrong in [
                ["--contract", "none"], ["--unauthenticated", "404"], ["--rate", "0"], ["--token-life", "0"],
                ["--retention", "0"], ["--test-hooks", "--listen", "0.0.0.0:0"],
            ] {
                let command = try Command(["notes-server"] + wrong)
                #expect(await command.end() == 64, "\(wrong)")
                #expect(command.errors.text.contains(wrong[0]))
            }
            await server.stop()
            // A database keeps the contract's form of note names.
            let orig = try await Server("--db", folder.path("notes.db"), "--contract", "orig")
            await orig.stop()
            let strict = try await Command.run("notes-server", "--db", folder.path("notes.db"), "--contract", "strict")
            #expect(strict.status == 65)
            #expect(strict.errors.contains("use contract orig"))
        }

        /// A client is killed at random times while it sends over a slow link; the server then has each note once.
        @Test(arguments: 0..<2) func aKilledClientNeitherDuplicatesNorLosesNotes(round: UInt64) async throws {
            var generator = SeededGenerator(seed: round)
            let folder = try TemporaryFolder()
            let server = try await Server("--db", folder.path("server.db"))
            let proxy = try Command([
                "proxy", "--upstream", "\(server.port)", "--profile", "100-loss", "--quiet", "--listen", "127.0.0.1:0",
            ])
            let line = try await proxy.output.line(with: "listening on ")
            let port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            let client = Client(store: folder.path("notes.db"))
            let titles = ["Milk", "Bread", "Trip"]
            for title in titles { #expect(try await client.run("new", title, "--text", "x").status == 0) }
            proxy.type("profile 3g\n")
            _ = try await proxy.output.line(with: "ok profile 3g")
            for _ in 0..<4 {
                let sync = try Command([
                    "notes", "sync", "--server", "127.0.0.1:\(port)", "--user", "ada:secret", "--store", client.store,
                ])
                try await Task.sleep(for: .milliseconds(.random(in: 20...900, using: &generator)))
                sync.signal(SIGKILL)
                _ = await sync.end()
            }
            #expect(try await client.sync(port, timeout: "60").status == 0)
            let fresh = Client(store: folder.path("fresh.db"))
            #expect(try await fresh.sync(server.port).status == 0)
            let rows = try await fresh.run("list").output.split(separator: "\n").dropFirst()
            let seen = rows.compactMap { row in titles.first { row.contains($0) } }
            #expect(seen.sorted() == titles.sorted())
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            await server.stop()
        }
    }
}
