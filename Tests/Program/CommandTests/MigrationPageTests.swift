import Foundation
import TestSupport
import Testing

/// The tables of docs/how-to/toxiproxy.md. `PageTests` runs its blocks.
@Suite(.tags(.tools), .timeLimit(.minutes(1))) struct MigrationPageTests {
    /// A server with a port for the proxy that the page has on 9000.
    private final class Server: Sendable {
        private let command: Command
        private let port: Int
        private let listen: String
        private let folder: TemporaryFolder

        init() async throws {
            command = try Command(["server", "--port", "0"])
            let line = try await command.output.line(with: "listening on ")
            port = try #require(line.firstMatch(of: /:([0-9]+)[ ]/).flatMap { Int($0.1) })
            listen = String(try TestSocket.unusedPort())
            folder = try TemporaryFolder()
            for name in ["slowlane", "toxiproxy-cli"] {
                try FileManager.default.createSymbolicLink(
                    at: folder.url.appending(path: name), withDestinationURL: Command.binary)
            }
        }

        deinit { command.signal(SIGTERM) }

        func call(_ method: String, _ path: String, _ body: String = "") async throws -> HTTPReply {
            let port = port
            return try await blocking { try HTTPPeer(port: port).ask(method, path, body) }
        }

        /// The proxies with their toxics, as JSON with the port of the page.
        var proxies: String {
            get async throws { try await call("GET", "/proxies").body.replacing(listen, with: "9000") }
        }

        /// Runs a command line of the page.
        func run(_ line: String) async throws {
            let words = line.replacing("9000", with: listen).split(separator: " ").map(String.init)
            let address = "http://127.0.0.1:\(port)"
            let command = try Command(
                ["SLOWLANE_URL=\(address)", "TOXIPROXY_URL=\(address)", folder.path(words[0])] + words.dropFirst(),
                binary: URL(filePath: "/usr/bin/env"))
            #expect(await command.end() == 0, "\(line): \(command.output.text)\(command.errors.text)")
        }
    }

    private static let rows = Result { try Page("docs/how-to/toxiproxy.md").tableCells }

    /// Each row of the table of command lines has the same effect in both columns.
    @Test func theCommandLinesOfBothProgramsAreEquivalent() async throws {
        let rows = try Self.rows.get().filter { $0.first?.first?.hasPrefix("toxiproxy-cli ") == true }
        #expect(rows.count >= 6)
        let (old, new) = (try await Server(), try await Server())
        var states: Set<String> = []
        for row in rows {
            try await old.run(row[0][0])
            try await new.run(row[1][0])
            let state = try await old.proxies
            #expect(try await new.proxies == state, "\(row[0][0])")
            states.insert(state)
        }
        // Created, with a toxic, disabled.
        #expect(states.count >= 4)
    }

    @Test func theLinksAndFaultsInPlaceOfToxicsExist() async throws {
        let spans = try Self.rows.get().compactMap { $0.dropFirst().first }.joined()
        let server = try await Server()
        try await server.run("slowlane create orders --listen 127.0.0.1:9000 --upstream 127.0.0.1:8000")
        var count = 0
        for span in spans {
            if span.hasPrefix("slowlane link ") {
                try await server.run(span)
            } else if span.hasPrefix("GET ") || span.hasPrefix("POST /orders ") {
                let reply = try await server.call(
                    "POST", "/slowlane/v1/proxies/orders/faults", "{\"rule\": \"\(span)\"}")
                #expect(reply.status < 300, "\(span): \(reply.body)")
            } else {
                continue
            }
            count += 1
        }
        #expect(count >= 9)
    }
}
