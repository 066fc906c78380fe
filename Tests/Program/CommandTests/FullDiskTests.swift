#if os(Linux)
import Foundation
import TestSupport
import Testing

extension CommandTests {
    /// The notes server with a limit of file sizes (RLIMIT_FSIZE), which stands for a full disk.
    @Suite(.serialized) struct FullDiskTests {
        private static let basic = "Authorization: Basic YWRhOnNlY3JldA=="

        private static func ask(_ port: Int, _ method: String, _ path: String, _ body: String = "") async throws
            -> (
                status: Int, body: String
            )
        {
            let reply = try await blocking { try HTTPPeer(port: port).ask(method, path, body, [basic]) }
            return (reply.status, reply.body)
        }

        @Test func acknowledgedWritesAreKeptAndOthersGet507UntilThereIsSpace() async throws {
            let folder = try TemporaryFolder()
            // 512-byte blocks, or 1 KiB where /bin/sh is bash.
            let command = try Command(
                [
                    "-c", "trap '' XFSZ; ulimit -S -f 1600; exec \"$0\" \"$@\"", Command.binary.path(),
                    "notes-server", "--listen", "127.0.0.1:0", "--user", "ada:secret", "--quiet", "--db",
                    folder.path("notes.db"),
                ], binary: URL(filePath: "/bin/sh"))
            let line = try await command.output.line(with: "listening on ")
            let port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            let text = String(repeating: "x", count: 50_000)
            var statuses: [Int] = []
            for _ in 0..<60 {
                statuses.append(try await Self.ask(port, "POST", "/api/notes/", #"{"text":"\#(text)"}"#).status)
            }
            #expect(Set(statuses) == [201, 507], "\(statuses)")
            #expect(try await Self.ask(port, "GET", "/health").status == 503)
            _ = try await command.errors.line(with: "File too large")
            #expect(command.errors.text.contains(folder.path("notes.db")))

            let lift = try runProgram("prlimit", ["--pid", "\(command.pid)", "--fsize=unlimited"])
            #expect(lift.status == 0, "\(lift.errors)")
            try await Task.sleep(for: .milliseconds(1100))
            #expect(try await Self.ask(port, "GET", "/health").status == 200)
            #expect(try await Self.ask(port, "POST", "/api/notes/", #"{"text":"\#(text)"}"#).status == 201)
            let index = try await Self.ask(port, "GET", "/api/notes-uuids/").body
            #expect(index.split(separator: "{").count - 1 == statuses.count { $0 == 201 } + 1)
            command.signal(SIGTERM)
            #expect(await command.end() == 0)
        }
    }
}
#endif
