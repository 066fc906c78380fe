import Foundation
import NotesContract
import TestSupport
import Testing

extension NotesCommandTests {
    /// Attachments at the command line, with a client that is killed.
    @Suite(.serialized) struct NotesAttachmentTests {
        private static func run(_ store: String, _ arguments: String...) async throws -> Command.Result {
            let command = try Command(["notes"] + arguments + ["--store", store])
            command.type("", andClose: true)
            let status = await command.end()
            return Command.Result(status: status, output: command.output.text, errors: command.errors.text)
        }

        private static func sync(_ store: String, _ port: String) async throws -> Command.Result {
            try await run(store, "sync", "--server", "127.0.0.1:\(port)", "--user", "ada:secret", "--timeout", "30")
        }

        private static func port(_ command: Command) async throws -> String {
            let line = try await command.output.line(with: "listening on ")
            return try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).map { String($0.1) })
        }

        /// 3 MB over a slow link: the client is killed during the upload, and the next one continues at the offset.
        @Test func anUploadThatIsKilledContinuesAtTheOffset() async throws {
            let folder = try TemporaryFolder()
            let server = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            let port = try await Self.port(server)
            let proxy = try Command([
                "proxy", "--upstream", port, "--profile", "lte", "--quiet", "--listen", "127.0.0.1:0",
            ])
            let slow = try await Self.port(proxy)
            let (phone, laptop) = (folder.path("phone.db"), folder.path("laptop.db"))
            var random = SeededGenerator(seed: 1)
            let bytes = Data((0..<3_000_000).map { _ in UInt8.random(in: 0...255, using: &random) })
            let file = folder.path("photo.jpg")
            try bytes.write(to: URL(filePath: file))
            #expect(try await Self.run(phone, "new", "Trip").status == 0)
            #expect(try await Self.run(phone, "attach", "Trip", file).status == 0)
            try FileManager.default.removeItem(atPath: file)
            #expect(try await Self.run(phone, "attachments", "Trip").output == "upload photo.jpg, 3000000 B: waiting\n")

            let killed = try Command([
                "notes", "sync", "--server", "127.0.0.1:\(slow)", "--user", "ada:secret", "--store", phone, "--verbose",
            ])
            // The first piece has been acknowledged when the second one is sent.
            _ = try await killed.errors.line(with: " PATCH ")
            killed.signal(SIGKILL)
            _ = await killed.end()
            #expect(try await Self.run(phone, "show", "Trip").output.contains("upload photo.jpg, 3000000 B: sending\n"))
            #expect(try await Self.run(phone, "status").output.contains("upload photo.jpg, 3000000 B: sending\n"))

            let second = try await Self.run(
                phone, "sync", "--server", "127.0.0.1:\(slow)", "--user", "ada:secret", "--verbose")
            #expect(second.status == 0)
            #expect(second.errors.contains(" HEAD /api/notes/"))
            #expect(second.errors.contains(" PATCH /api/notes/"))
            #expect(!second.errors.contains(" PUT /api/notes/"))
            #expect(try await Self.run(phone, "attachments", "Trip").output == "upload photo.jpg, 3000000 B: done\n")

            #expect(
                try await Self.run(laptop, "sync", "--server", "127.0.0.1:\(port)", "--user", "ada:secret").status == 0)
            let copy = folder.path("copy.jpg")
            let fetched = try await Self.run(
                laptop, "fetch", "Trip", "photo.jpg", "-o", copy, "--server", "127.0.0.1:\(port)", "--user",
                "ada:secret")
            #expect(fetched.status == 0, "\(fetched.errors)")
            #expect(try Data(contentsOf: URL(filePath: copy)) == bytes)
            let again = try await Self.run(
                laptop, "fetch", "Trip", "photo.jpg", "-o", copy, "--server", "127.0.0.1:\(port)", "--user",
                "ada:secret")
            #expect(again.status == 69)
            #expect(again.errors.contains("exists; give --force"))
            let missing = try await Self.run(
                laptop, "fetch", "Trip", "none", "-o", copy, "--force", "--server", "127.0.0.1:\(port)", "--user",
                "ada:secret")
            #expect(missing.status == 69)
            #expect(missing.errors.contains("the attachment does not exist on the server"))
            proxy.type("quit\n")
            #expect(await proxy.end() == 0)
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        /// The server has 600 KB of the file: more than a client sends in its first request.
        @Test func anUploadThatWasDetachedIsSentAgain() async throws {
            let folder = try TemporaryFolder()
            let server = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            let port = try await Self.port(server)
            let (store, file) = (folder.path("notes.db"), folder.path("photo.jpg"))
            let bytes = (0..<800_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            try Data(bytes).write(to: URL(filePath: file))
            let uuid = try await Self.run(store, "new", "Trip").output.filter { $0 != "\n" }
            #expect(try await Self.sync(store, port).status == 0)
            let number = try #require(Int(port))
            let head = """
                PUT /api/notes/\(uuid)/attachments/photo.jpg HTTP/1.1\r
                Host: 127.0.0.1\r
                Authorization: Basic YWRhOnNlY3JldA==\r
                Connection: close\r
                Upload-Complete: ?0\r
                Upload-Length: 800000\r
                Repr-Digest: \(AttachmentDigest(of: bytes).field)\r
                Content-Length: 600000\r
                \r

                """
            let response = try await blocking {
                let socket = try TestSocket.connect(port: number)
                try socket.send(Array(head.utf8) + bytes[..<600_000])
                return String(decoding: try socket.receiveToEnd(), as: UTF8.self)
            }
            #expect(response.hasPrefix("HTTP/1.1 201 "), "\(response)")

            for _ in 0..<2 {
                #expect(try await Self.run(store, "attach", "Trip", file).status == 0)
                let sync = try await Self.sync(store, port)
                #expect(sync.status == 0, "\(sync.output)\(sync.errors)")
                #expect(
                    try await Self.run(store, "attachments", "Trip").output == "upload photo.jpg, 800000 B: done\n")
                #expect(try await Self.run(store, "detach", "Trip", "photo.jpg").status == 0)
            }
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        /// The deletion is sent before the other content of the name, also if its own response is lost.
        @Test func anUploadThatIsDeletedOnTheServerMakesRoomForAnotherContent() async throws {
            let folder = try TemporaryFolder()
            let server = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            let port = try await Self.port(server)
            let proxy = try Command([
                "proxy", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:\(port)", "--fault",
                "DELETE /api/ before-response reset",
            ])
            let slow = try await Self.port(proxy)
            let (store, file) = (folder.path("notes.db"), folder.path("photo.jpg"))
            #expect(try await Self.run(store, "new", "Trip").status == 0)
            for text in ["first", "second, and longer"] {
                try Data(text.utf8).write(to: URL(filePath: file))
                #expect(try await Self.run(store, "attach", "Trip", file).status == 0)
                let sync = try await Self.sync(store, slow)
                #expect(sync.status == 0, "\(sync.output)\(sync.errors)")
                #expect(
                    try await Self.run(store, "attachments", "Trip").output
                        == "upload photo.jpg, \(text.utf8.count) B: done\n")
                // The deletion and the next upload are requested offline.
                #expect(try await Self.run(store, "detach", "Trip", "photo.jpg", "--on-server").status == 0)
                #expect(try await Self.run(store, "attachments", "Trip").output == "deletion photo.jpg: waiting\n")
            }
            let last = try await Self.sync(store, slow)
            #expect(last.status == 0, "\(last.output)\(last.errors)")
            #expect(try await Self.run(store, "attachments", "Trip").output.isEmpty)
            let copy = folder.path("copy.jpg")
            let fetch = try await Self.run(
                store, "fetch", "Trip", "photo.jpg", "-o", copy, "--server", "127.0.0.1:\(slow)", "--user", "ada:secret"
            )
            #expect(fetch.status == 69 && fetch.errors.contains("does not exist on the server"), "\(fetch.errors)")
            for command in [proxy, server] {
                command.signal(SIGTERM)
                #expect(await command.end() == 0)
            }
        }

        /// The server rejects the second content of a name until the first one is deleted.
        @Test func aStoppedAttachmentFailsTheSyncUntilItIsTransferredAgain() async throws {
            let folder = try TemporaryFolder()
            let server = try Command(["notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet"])
            let port = try await Self.port(server)
            let (phone, laptop) = (folder.path("phone.db"), folder.path("laptop.db"))
            for name in ["1", "2"] { try Data(name.utf8).write(to: URL(filePath: folder.path(name))) }
            let uuid = try await Self.run(phone, "new", "Trip").output.filter { $0 != "\n" }
            #expect(try await Self.run(phone, "attach", "Trip", folder.path("1"), "--name", "a").status == 0)
            #expect(try await Self.sync(phone, port).status == 0)
            #expect(try await Self.sync(laptop, port).status == 0)
            #expect(try await Self.run(laptop, "attach", "Trip", folder.path("2"), "--name", "a").status == 0)
            try FileManager.default.removeItem(atPath: folder.path("2"))
            for _ in 0..<2 {
                let sync = try await Self.sync(laptop, port)
                #expect(sync.status == 69)
                #expect(
                    sync.output.contains(
                        "not transferred: 'Trip': upload a, 1 B: stopped: another attachment has this name; "))
                #expect(sync.output.contains("'slowlane notes retry \(uuid.prefix(8))' transfers it again"))
                #expect(sync.output.hasSuffix("1 note, 0 pending changes, 1 attachment not transferred\n"))
                #expect(try await Self.run(laptop, "retry", "Trip").status == 0)
                #expect(try await Self.run(laptop, "attachments", "Trip").output == "upload a, 1 B: waiting\n")
            }
            let number = try #require(Int(port))
            let deleted = try await blocking {
                try HTTPPeer(port: number).raw(
                    "DELETE /api/notes/\(uuid)/attachments/a HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        + "Authorization: Basic YWRhOnNlY3JldA==\r\nConnection: close\r\n\r\n")
            }
            #expect(deleted.status == 204)
            let sync = try await Self.sync(laptop, port)
            #expect(sync.status == 0, "\(sync.output)")
            #expect(sync.output == "1 note, 0 pending changes\n")
            let nothing = try await Self.run(laptop, "retry", "Trip")
            #expect(nothing.status == 64)
            #expect(nothing.errors.contains("none of its attachments has stopped"))
            server.signal(SIGTERM)
            #expect(await server.end() == 0)
        }

        @Test func wrongAttachmentsAreRefused() async throws {
            let folder = try TemporaryFolder()
            let store = folder.path("notes.db")
            #expect(try await Self.run(store, "new", "Trip").status == 0)
            let missing = try await Self.run(store, "attach", "Trip", folder.path("none"))
            #expect(missing.status == 69)
            #expect(missing.errors.contains("cannot read"))
            let file = folder.path("large")
            #expect(FileManager.default.createFile(atPath: file, contents: nil))
            #expect(truncate(file, (64 << 20) + 1) == 0)
            let large = try await Self.run(store, "attach", "Trip", file)
            #expect(large.status == 69)
            #expect(large.errors.contains("64 MiB"))
            #expect(try await Self.run(store, "attach", "None", file).status == 64)
            try Data([1]).write(to: URL(filePath: folder.path("a")))
            #expect(try await Self.run(store, "attach", "Trip", folder.path("a"), "--name", "x/y").status == 69)
            #expect(try await Self.run(store, "attach", "Trip", folder.path("a")).status == 0)
            #expect(try await Self.run(store, "detach", "Trip", "a").status == 0)
            #expect(try await Self.run(store, "attachments", "Trip").output.isEmpty)
            #expect(try await Self.run(store, "detach", "Trip", "a").status == 64)
        }
    }
}
