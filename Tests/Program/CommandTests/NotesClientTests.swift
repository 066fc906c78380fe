import Foundation
import TestSupport
import Testing
import Wire

extension NotesCommandTests {
    /// The commands of the notes client for conflicts, rejected changes, accounts and several processes.
    @Suite(.serialized) struct NotesClientTests {
        /// A server on a free port.
        private struct Server {
            let command: Command
            let port: Int

            init(port: Int = 0) async throws {
                command = try Command([
                    "notes-server", "--listen", "127.0.0.1:\(port)", "--user", "ada:secret", "--user", "bo:secret",
                    "--quiet",
                ])
                let line = try await command.output.line(with: "listening on ")
                self.port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            }

            func stop() async {
                command.signal(SIGTERM)
                #expect(await command.end() == 0)
            }
        }

        /// The notes client with a store of its own.
        private struct Client {
            let store: String

            func start(_ arguments: [String], variables: [String] = [], limit: Int? = nil) throws -> Command {
                let words = ["notes"] + arguments + ["--store", store]
                // 512-byte blocks, or 1 KiB where /bin/sh is bash.
                let ulimit = limit.map { "trap '' XFSZ; ulimit -S -f \($0); " } ?? ""
                return try Command(
                    ["-c", "\(ulimit)exec env \"$@\"", "sh"] + variables + [Command.binary.path()] + words,
                    binary: URL(filePath: "/bin/sh"))
            }

            func run(_ arguments: String..., variables: [String] = [], input: String = "") async throws
                -> Command.Result
            {
                let command = try start(arguments, variables: variables)
                command.type(input, andClose: true)
                let status = await command.end()
                return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
            }

            func sync(_ port: Int, user: String = "ada", _ more: String..., input: String = "") async throws
                -> Command.Result
            {
                let command = try start(
                    ["sync", "--server", "127.0.0.1:\(port)", "--user", "\(user):secret", "--timeout", "20", "--quiet"]
                        + more)
                command.type(input, andClose: true)
                let status = await command.end()
                return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
            }
        }

        /// Starts a server and a client whose note Milk is in conflict: mine "2 l, oat", theirs "3 l".
        private static func conflict(_ folder: TemporaryFolder) async throws -> (Server, Client) {
            let server = try await Server()
            let (phone, laptop) = (Client(store: folder.path("phone.db")), Client(store: folder.path("laptop.db")))
            #expect(try await phone.run("new", "Milk", "--text", "2 l").status == 0)
            #expect(try await phone.sync(server.port).status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            #expect(try await laptop.run("edit", "Milk", "--text", "3 l").status == 0)
            #expect(try await phone.run("edit", "Milk", "--text", "2 l, oat").status == 0)
            #expect(try await laptop.sync(server.port).status == 0)
            #expect(try await phone.sync(server.port).output.contains("conflict: 'Milk'"))
            return (server, phone)
        }

        // MARK: Conflicts

        @Test func bothVersionsAreShownBesideEachOther() async throws {
            let folder = try TemporaryFolder()
            let (server, phone) = try await Self.conflict(folder)
            let shown = try await phone.run("show", "Milk")
            #expect(shown.status == 0)
            #expect(shown.output.contains("state      CONFLICT\n"))
            #expect(shown.output.contains("revision   1-"))
            #expect(shown.output.contains("theirs (server, revision 2)"))
            #expect(shown.output.split(separator: "\n").contains { $0.contains("2 l, oat") && $0.hasSuffix("| 3 l") })
            #expect(shown.output.contains("base       Milk | 2 l\n"))
            let undecided = try await phone.run("resolve", "Milk")
            #expect(undecided.status == 64)
            #expect(undecided.output.contains("| 3 l"))
            #expect(undecided.errors.contains("--mine, --theirs, --text, --title or --edit"))
            await server.stop()
        }

        @Test func anEditorDecidesAConflictAndLeftoverMarkersAreRefused() async throws {
            let folder = try TemporaryFolder()
            let (server, phone) = try await Self.conflict(folder)
            func editor(_ name: String, _ script: String) throws -> String {
                let path = folder.path(name)
                try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(filePath: path))
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
                return path
            }
            func resolve(_ editor: String) async throws -> Command.Result {
                try await phone.run(
                    "resolve", "Milk", "--edit",
                    variables: ["VISUAL=", "EDITOR=\(editor)", "TMPDIR=\(folder.url.path)"])
            }
            let unedited = try await resolve("true")
            #expect(unedited.status == 65)
            #expect(unedited.errors.contains("line 4: '<<<<<<< mine' is a conflict marker"), "\(unedited.errors)")
            #expect(unedited.errors.contains("the file is kept"))
            let halfEdited = try await resolve(editor("half", "sed -i -e '/^<<<<<<</d' -e '/^=======/d' \"$1\""))
            #expect(halfEdited.status == 65)
            #expect(halfEdited.errors.contains("'>>>>>>> theirs' is a conflict marker"))
            let failed = try await resolve("false")
            #expect(failed.status == 1)
            #expect(failed.errors.contains("nothing was changed"))
            #expect(try await phone.run("list").output.contains("CONFLICT"))

            // The editor's arguments are words of the shell.
            let merge = try editor(
                "merge",
                #"[ "$1" = --wait ] || exit 1; cp "$2" "$2.seen"; sed -i -e '/^[<=>]\{7\}/d' -e 's/3 l/and 3 l/' "$2""#)
            let merged = try await resolve("\(merge) --wait")
            #expect(merged.status == 0, "\(merged.errors)")
            #expect(try await phone.run("list").output.contains("2 l, oat and 3 l"))
            #expect(try await phone.sync(server.port).status == 0)
            #expect(try await phone.run("show", "Milk").output.contains("state      synced\n"))
            let seen = try FileManager.default.contentsOfDirectory(atPath: folder.url.path).filter {
                $0.hasSuffix(".seen")
            }
            let text = try String(contentsOf: URL(filePath: folder.path(#require(seen.first))), encoding: .utf8)
            #expect(text.contains("<<<<<<< mine\n2 l, oat\n=======\n3 l\n>>>>>>> theirs\n"))
            await server.stop()
        }

        // MARK: Accounts

        @Test func theStoreOfAnotherAccountIsAdoptedOnlyAfterAQuestion() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk").status == 0)
            #expect(try await client.sync(server.port).status == 0)
            #expect(try await client.run("new", "Bread").status == 0)
            let refused = try await client.sync(server.port, user: "bo")
            #expect(refused.status == 65)
            #expect(refused.errors.contains("the store belongs to the user 'ada' and not to 'bo'"))
            #expect(refused.errors.contains("--adopt") && refused.errors.contains("nothing is deleted"))
            for input in ["n\n", "", "maybe\n"] {
                let declined = try await client.sync(server.port, user: "bo", "--adopt", input: input)
                #expect(declined.status == 1)
                #expect(declined.errors.contains("1 pending change of 2 notes will be sent to this server"))
            }
            #expect(try await client.run("status").output.contains("account    ada at 127.0.0.1:\(server.port)\n"))
            let adopted = try await client.sync(server.port, user: "bo", "--adopt", input: "y\n")
            #expect(adopted.status == 1, "\(adopted.errors)")
            #expect(adopted.output.contains("conflict: 'Milk'"))
            let list = try await client.run("list").output
            #expect(list.contains("CONFLICT") && list.contains("synced"))
            #expect(try await client.run("status").output.contains("account    bo at 127.0.0.1:\(server.port)\n"))
            let back = try await client.sync(server.port, "--adopt", "--yes")
            #expect(back.status == 1 && back.errors.contains("1 note in conflict"), "\(back.errors)")
            await server.stop()
        }

        @Test func aMeteredInterfaceIsNotUsedIfThePolicyForbidsIt() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk").status == 0)
            let held = try await client.sync(server.port, "--interface", "unmetered", "--metered")
            #expect(held.status == 69)
            #expect(held.errors.contains("--interface any"))
            #expect(try await client.run("list").output.contains("pending"))
            #expect(try await client.sync(server.port, "--interface", "unmetered").status == 0)
            await server.stop()
        }

        // MARK: Rejected changes

        /// The server's test hooks answer the creation with 422.
        @Test func aRejectedChangeIsShownRetriedAndDismissed() async throws {
            let folder = try TemporaryFolder()
            let (listener, port) = try TestSocket.listen()
            Thread.detachNewThread {
                while let connection = try? listener.accept() {
                    Thread.detachNewThread {
                        while let bytes = try? connection.receive(), !bytes.isEmpty {
                            let isPost = String(decoding: bytes, as: UTF8.self).hasPrefix("POST")
                            let (status, body) =
                                isPost ? ("422 Unprocessable Content", #"{"detail":"no"}"#) : ("200 OK", "[]")
                            let head =
                                "HTTP/1.1 \(status)\r\nSlowlane-Notes: 1\r\nContent-Type: application/json\r\n"
                                + "Content-Length: \(body.utf8.count)\r\n\r\n"
                            try? connection.send(Array((head + body).utf8))
                        }
                    }
                }
            }
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk", "--text", "2 l").status == 0)
            let sync = try await client.sync(port)
            #expect(sync.status == 1 && sync.errors.contains("but 1 rejected change; see"), "\(sync.errors)")
            #expect(sync.output.contains("rejected: 'Milk':"))
            #expect(try await client.run("show", "Milk").output.contains("pending    create, 1 attempt; rejected: "))
            let json = try #require(JSONText.parse(Array(try await client.run("status", "--json").output.utf8))?.object)
            guard case .array(let rejected)? = json["rejected"], let first = rejected.first?.object else {
                Issue.record("no rejected change in \(json)")
                return
            }
            #expect(first["title"] == "Milk" && first["reason"]?.text?.isEmpty == false)
            #expect(json["pending"] == 0 && json["version"] == 1 && json["type"] == "status")
            #expect(json["policy"]?.object?["first_delay_ms"] == 1000)

            #expect(try await client.run("retry", "Milk").status == 0)
            #expect(
                try await client.run("status").output.hasPrefix("1 note, 1 pending change, 0 in conflict, 0 rejected"))
            #expect(try await client.run("retry", "Milk").status == 64)
            #expect(try await client.sync(port).output.contains("rejected: 'Milk':"))
            let kept = try await client.run("dismiss", "Milk", input: "n\n")
            #expect(kept.status == 1)
            #expect(kept.errors.contains("lost: Milk | 2 l\n") && kept.errors.contains("kept: nothing"))
            #expect(try await client.run("list").output.contains("rejected"))
            #expect(try await client.run("dismiss", "Milk", "--yes").status == 0)
            #expect(try await client.run("list").errors.contains("no notes in"))
            _ = try TestSocket.connect(port: port)
        }

        // MARK: Several processes

        @Test func changesAreMadeWhileASyncWaitsForADeadServerAndSentWhenItComes() async throws {
            let folder = try TemporaryFolder()
            let client = Client(store: folder.path("notes.db"))
            let port = try TestSocket.unusedPort()
            let sync = try client.start([
                "sync", "--server", "127.0.0.1:\(port)", "--user", "ada:secret", "--timeout", "60", "--verbose",
            ])
            _ = try await sync.errors.line(with: "failed: connection refused")
            let start = ContinuousClock.now
            #expect(try await client.run("new", "Milk", "--text", "2 l").status == 0)
            #expect(try await client.run("edit", "Milk", "--text", "3 l").status == 0)
            #expect(try await client.run("list").output.contains("3 l"))
            #expect(ContinuousClock.now - start < .seconds(10))
            let status = try await client.run("status").output
            #expect(status.contains("sync       running (process \(sync.pid)): "), "\(status)")
            let second = try await client.sync(port)
            #expect(second.status == 69)
            #expect(second.errors.contains("process \(sync.pid)"), "\(second.errors)")

            let server = try await Server(port: port)
            #expect(await sync.end() == 0)
            #expect(sync.errors.text.contains("POST /api/notes/"))
            let fresh = Client(store: folder.path("fresh.db"))
            #expect(try await fresh.sync(port).status == 0)
            #expect(try await fresh.run("list").output.contains("3 l"))
            await server.stop()
        }

        @Test func watchPrintsALineForEachChangeOfOtherProcesses() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Eggs").status == 0)
            let watch = try client.start(["watch"])
            _ = try await watch.output.line(with: "1 pending change, not-syncing")
            let syncing = try Client(store: folder.path("laptop.db")).start([
                "watch", "--json", "--server", "127.0.0.1:\(server.port)", "--user", "ada:secret",
            ])
            _ = try await syncing.output.line(with: #""connectivity":"online""#)
            #expect(try await client.run("new", "Milk", "--text", "2 l").status == 0)
            _ = try await watch.output.line(with: "pending  Milk | 2 l")
            #expect(try await client.sync(server.port).status == 0)
            _ = try await watch.output.line(with: "synced  Milk | 2 l")
            #expect(try await Client(store: folder.path("laptop.db")).run("new", "Bread").status == 0)
            let line = try await syncing.output.line(with: #""title":"Bread""#)
            let members = try #require(JSONText.parse(Array(line.utf8))?.object)
            #expect(
                members["event"] == "note" && members["type"] == "note" && members["time"]?.text?.hasSuffix("Z") == true
            )
            for command in [watch, syncing] {
                command.signal(SIGINT)
                #expect(await command.end() == 0)
            }
            await server.stop()
        }

        @Test func anInterruptedSyncKeepsItsChanges() async throws {
            let folder = try TemporaryFolder()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk").status == 0)
            let sync = try client.start([
                "sync", "--server", "127.0.0.1:\(try TestSocket.unusedPort())", "--user", "ada:secret", "--verbose",
            ])
            _ = try await sync.errors.line(with: "failed: connection refused")
            sync.signal(SIGINT)
            #expect(await sync.end() == 130)
            #expect(sync.errors.text.contains("interrupted; pending changes are kept"))
            #expect(try await client.run("list").output.contains("pending"))
        }

        /// A sync of more than 2 s prints its progress.
        @Test func aLongSyncPrintsItsProgress() async throws {
            let folder = try TemporaryFolder()
            let client = Client(store: folder.path("notes.db"))
            #expect(try await client.run("new", "Milk").status == 0)
            let result = try await client.run(
                "sync", "--server", "127.0.0.1:\(try TestSocket.unusedPort())", "--user", "ada:secret", "--timeout", "4"
            )
            #expect(result.status == 69)
            let lines = result.errors.split(separator: "\n")
            #expect(lines.count == 2, "\(result.errors)")
            #expect(lines.first?.hasPrefix("1 pending change, 0 responses, 2 s: ") == true, "\(result.errors)")
        }

        // MARK: Full disk

        #if os(Linux)
        /// A limit of file sizes (RLIMIT_FSIZE) stands for a full disk.
        @Test func aFullDiskCostsNeitherCPUNorLinesAndTheSyncResumes() async throws {
            let folder = try TemporaryFolder()
            let server = try await Server()
            let (phone, laptop) = (Client(store: folder.path("phone.db")), Client(store: folder.path("laptop.db")))
            let text = String(repeating: "x", count: 100_000)
            for number in 0..<20 {
                #expect(try await laptop.run("new", "note \(number)", "--text", text).status == 0)
            }
            #expect(try await laptop.sync(server.port).status == 0)
            // Half of the notes fit.
            let sync = try phone.start(
                [
                    "sync", "--server", "127.0.0.1:\(server.port)", "--user", "ada:secret", "--timeout", "120",
                    "--quiet",
                ], limit: 2000)
            _ = try await sync.errors.line(with: "error: cannot write ")
            let before = try Self.ticks(sync.pid)
            try await Task.sleep(for: .seconds(5))
            let ticks = try Self.ticks(sync.pid) - before
            #expect(ticks <= 5, "\(ticks) of 500 ticks (10 ms) of CPU time")
            #expect(sync.errors.text.split(separator: "\n").count < 10, "\(sync.errors.text)")

            let lift = try runProgram("prlimit", ["--pid", "\(sync.pid)", "--fsize=unlimited"])
            #expect(lift.status == 0, "\(lift.errors)")
            #expect(await sync.end() == 0)
            let errors = sync.errors.text.split(separator: "\n")
            #expect(errors.count == 2 && errors.last == "the store can be written again", "\(errors)")
            let status = try await phone.run("status").output
            #expect(status.hasPrefix("20 notes, 0 pending changes, 0 in conflict, 0 rejected\n"), "\(status)")
            await server.stop()
        }

        /// Returns the CPU time of a process in ticks of 10 ms (proc(5): utime and stime).
        private static func ticks(_ pid: Int32) throws -> Int {
            let text = try String(contentsOf: URL(filePath: "/proc/\(pid)/stat"), encoding: .utf8)
            let fields = try #require(text.split(separator: ")").last).split(separator: " ")
            return try #require(Int(fields[11])) + #require(Int(fields[12]))
        }
        #endif
    }
}
