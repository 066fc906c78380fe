#if os(Linux)
import Foundation
import Wire
import TestSupport
import Testing

/// The container image without a container engine: the program in a root folder that contains nothing else.
@Suite(.tags(.tools), .timeLimit(.minutes(10)), .enabled(if: geteuid() == 0, "chroot and mount need root"))
struct ContainerImageTests {
    /// The image's root folder.
    private let root: TemporaryFolder

    init() throws {
        root = try TemporaryFolder()
        let script = Repository.root.appending(path: "scripts/lib/image-root")
        let made = try runProgram(script.path(), [Command.binary.path(), root.url.path()])
        try #require(made.status == 0, "\(made.output)\(made.errors)")
    }

    /// Starts a program of the image, with `/proc` as in every container.
    private func start(_ words: [String]) throws -> Command {
        let script = "mount --rbind /proc \"$0/proc\" && exec chroot \"$0\" \"$@\""
        return try Command(
            ["--mount", "sh", "-c", script, root.url.path()] + words, binary: URL(filePath: "/usr/bin/unshare"))
    }

    /// Runs `body` with the server of the entry point.
    private func withServer(
        _ arguments: [String] = ["-host=0.0.0.0"], _ body: (Int) async throws -> Void
    ) async throws {
        let port = try TestSocket.unusedPort()
        let server = try start(["/toxiproxy"] + arguments + ["-port=\(port)"])
        do {
            // The log line that wait strategies look for.
            _ = try await server.output.line(with: "Starting Toxiproxy HTTP server")
            try await body(port)
        } catch {
            server.signal(SIGKILL)
            throw error
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }

    private func call(
        _ port: Int, _ method: String, _ path: String, _ body: String = "", _ fields: [String] = []
    ) async throws -> HTTPReply {
        try await blocking { try HTTPPeer(port: port).ask(method, path, body, fields + ["Connection: close"]) }
    }

    @Test func theHealthCheckDetectsARunningServer() async throws {
        func check(_ port: Int) async throws -> Int32 {
            try await start(["/toxiproxy-cli", "-h", "http://127.0.0.1:\(port)", "list"]).end()
        }
        try await withServer { port in
            let status = try await check(port)
            #expect(status == 0)
        }
        let status = try await check(try TestSocket.unusedPort())
        #expect(status == 1)
    }

    @Test func theImageContainsTheProgramUnderEveryName() async throws {
        for (words, begin) in [
            (["/toxiproxy", "-version"], "toxiproxy-server version 2.12.0\n"),
            (["/toxiproxy-server", "-version"], "toxiproxy-server version 2.12.0\n"),
            (["/toxiproxy-cli", "--version"], "toxiproxy-cli version 2.12.0\n"),
            (["/slowlane", "--version"], ""),
        ] {
            let command = try start(words)
            #expect(await command.end() == 0 && command.output.text.hasPrefix(begin), "\(words)")
        }
    }

    /// The way in which the Go module creates proxies.
    @Test func aConfigurationIsRead() async throws {
        let listen = try TestSocket.unusedPort()
        let file = root.url.appending(path: "tmp/tc-toxiproxy.json")
        let json = """
            [
                {
                    "name": "redis",
                    "listen": "0.0.0.0:\(listen)",
                    "upstream": "127.0.0.1:1"
                }
            ]
            """
        try Data(json.utf8).write(to: file)
        try await withServer(["-host=0.0.0.0", "-config=/tmp/tc-toxiproxy.json"]) { port in
            let proxy = try await call(port, "GET", "/proxies/redis")
            #expect(proxy.status == 200 && proxy.body.contains("\"enabled\":true"))
        }
    }

    /// The requests of a client library: header fields and spelling of names.
    struct Library: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let fields: [String]
        /// Whether field names start with capitals.
        var hasCapitals = false
        /// The method of updates.
        var update = "POST"
        /// Returns the body that enables or disables, from the listening port and the state.
        let toggle: @Sendable (Int, Bool) -> String
    }

    private static let libraries = [
        Library(
            testDescription: "Java",
            fields: [
                "User-Agent: Java/17.0.9", "Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
                "Content-type: application/x-www-form-urlencoded",
            ], toggle: { _, isEnabled in #"{"enabled":\#(isEnabled)}"# }),
        Library(
            testDescription: "Go",
            fields: [
                "User-Agent: toxiproxy-cli", "Content-Type: application/json", "Accept-Encoding: gzip",
                "Host: localhost:32768",
            ],
            update: "PATCH",
            toggle: { listen, isEnabled in
                #"{"name":"redis","listen":"0.0.0.0:\#(listen)","upstream":"{upstream}","enabled":\#(isEnabled),"toxics":null}"#
            }),
        Library(
            testDescription: "Node",
            fields: [
                "User-Agent: node", "Accept: */*", "Accept-Language: *", "Sec-Fetch-Mode: cors",
                "Content-Type: application/json", "Host: docker-host.example:32768",
            ],
            toggle: { listen, isEnabled in
                #"{"enabled":\#(isEnabled),"listen":"0.0.0.0:\#(listen)","upstream":"{upstream}"}"#
            }),
        Library(
            testDescription: ".NET",
            fields: ["Content-Type: application/json; charset=utf-8", "Host: 172.17.0.1:49153"],
            hasCapitals: true,
            toggle: { listen, isEnabled in
                #"{"Name":"redis","Listen":"0.0.0.0:\#(listen)","Upstream":"{upstream}","Enabled":\#(isEnabled)}"#
            }),
    ]

    @Test(arguments: libraries) func theRequestsOfTheModulesClientsWork(_ library: Library) async throws {
        let (socket, upstreamPort) = try TestSocket.listen()
        let upstream = "127.0.0.1:\(upstreamPort)"
        let listen = try TestSocket.unusedPort()
        try await withServer { port in
            func ask(_ method: String, _ path: String, _ body: String = "") async throws -> HTTPReply {
                let text = body.replacing("{upstream}", with: upstream)
                return try await call(port, method, path, text, library.fields)
            }
            // The request of the wait strategy.
            #expect(try await ask("GET", "/version").body == "{\"version\": \"2.12.0\"}\n")
            #expect(try await ask("GET", "/proxies").body == "{}")

            let created = try await ask(
                "POST", "/proxies",
                library.hasCapitals
                    ? #"{"Name":"redis","Listen":"0.0.0.0:\#(listen)","Upstream":"{upstream}","Enabled":true}"#
                    : #"{"name":"redis","listen":"0.0.0.0:\#(listen)","upstream":"{upstream}","enabled":true}"#)
            #expect(created.status == 201, "\(created.body)")
            #expect(try #require(json(created)["listen"]?.text).hasSuffix(":\(listen)"))
            try await exchange(listen, socket, takesAtLeast: .zero)

            let added = try await ask(
                "POST", "/proxies/redis/toxics",
                library.hasCapitals
                    ? #"{"Name":"late","Stream":"DownStream","Type":"latency","Toxicity":1.0,"Attributes":{"Latency":10}}"#
                    : #"{"name":"late","stream":"downstream","type":"latency","toxicity":1.0,"attributes":{"latency":10}}"#
            )
            #expect(added.status == 200, "\(added.body)")
            let updated = try await ask(
                library.update, "/proxies/redis/toxics/late", #"{"attributes":{"latency":300,"jitter":0}}"#)
            #expect(updated.status == 200 && updated.body.contains("\"latency\":300"), "\(updated.body)")
            try await exchange(listen, socket, takesAtLeast: .milliseconds(300))
            #expect(try await ask("GET", "/proxies/redis/toxics").body.contains("\"late\""))
            #expect(try await ask("DELETE", "/proxies/redis/toxics/late").status == 204)
            try await exchange(listen, socket, takesAtLeast: .zero)

            // The toxic with which the clients cut a connection.
            let cut = #"{"name":"CUT","stream":"upstream","type":"bandwidth","attributes":{"rate":0}}"#
            #expect(try await ask("POST", "/proxies/redis/toxics", cut).status == 200)
            #expect(try await ask("DELETE", "/proxies/redis/toxics/CUT").status == 204)

            for isEnabled in [false, true] {
                let response = try await ask(
                    library.update, "/proxies/redis", library.toggle(listen, isEnabled))
                #expect(response.status == 200 && json(response)["enabled"] == .bool(isEnabled), "\(response.body)")
                if !isEnabled {
                    #expect(throws: TestSocket.Failure.self) { () throws -> Void in
                        _ = try TestSocket.connect(port: listen)
                    }
                }
            }
            try await exchange(listen, socket, takesAtLeast: .zero)
            #expect(try await ask("POST", "/reset").status == 204)
            #expect(try await ask("DELETE", "/proxies/redis").status == 204)
            #expect(try await ask("GET", "/proxies/redis").status == 404)
        }
    }

    private func json(_ reply: HTTPReply) -> JSONObject {
        JSONText.parse(Array(reply.body.utf8))?.object ?? [:]
    }

    /// Sends a byte through the proxy, and one back.
    private func exchange(_ port: Int, _ upstream: TestSocket, takesAtLeast least: Duration) async throws {
        try await blocking {
            let client = try TestSocket.connect(port: port)
            let server = try upstream.accept()
            let begin = ContinuousClock.now
            try client.send([1])
            #expect(try server.receive(exactly: 1) == [1])
            try server.send([2])
            #expect(try client.receive(exactly: 1) == [2])
            #expect(ContinuousClock.now - begin >= least)
        }
    }
}
#endif
