import Foundation
import TestSupport
import Testing

/// The server and the commands that call it.
@Suite(.tags(.servers), .timeLimit(.minutes(10))) struct ServerTests {
    /// Runs `body` with a server and returns the server's exit status after SIGTERM.
    private func withServer(
        _ arguments: [String] = [], _ body: (_ url: String, Command) async throws -> Void
    ) async throws -> Int32 {
        let server = try Command(["server", "--port", "0"] + arguments)
        let line = try await server.output.line(with: "listening on ")
        let url = String(try #require(line.split(separator: " ").first { $0.hasPrefix("http://") }))
        do {
            try await body(url, server)
        } catch {
            server.signal(SIGKILL)
            throw error
        }
        server.signal(SIGTERM)
        return await server.end()
    }

    @Test func aForwardProxyIsCreatedFromTheCommandLine() async throws {
        let status = try await withServer { url, _ in
            func create(_ words: String) async throws -> (status: Int32, errors: String) {
                let command = try Command(["create"] + words.split(separator: " ").map(String.init) + ["--host", url])
                command.type("", andClose: true)
                return (await command.end(), command.errors.text)
            }
            let created = try await create(
                "phone --forward --to *.cdn.test=wifi --map api.test=127.0.0.1:1 --allow 10.0.0.0/8")
            #expect(created.status == 0, "\(created.errors)")
            let inspected = try Command(["inspect", "phone", "--json", "--host", url])
            #expect(await inspected.end() == 0)
            #expect(inspected.output.text.contains(#""upstream":"any server""#), "\(inspected.output.text)")
            let open = try await create("open --forward --listen 0.0.0.0:0")
            #expect(open.status == 1 && open.errors.contains("every machine of the network"))
            for wrong in ["a --upstream 127.0.0.1:1 --to *=3g", "a --upstream 127.0.0.1:1 --forward", "a"] {
                #expect(try await create(wrong).status == 64, "\(wrong)")
            }
        }
        #expect(status == 0)
    }

    @Test func proxiesAreControlledFromTheCommandLine() async throws {
        let (upstream, port) = try TestSocket.listen()
        let status = try await withServer { url, _ in
            func slowlane(_ words: String) async throws -> String {
                let arguments = words.split(separator: " ").map(String.init) + ["--host", url]
                let command = try Command(arguments)
                command.type("", andClose: true)
                let status = await command.end()
                return "\(status) \(command.output.text)\(command.errors.text)"
            }
            #expect(
                try await slowlane("list")
                    == "0 no proxies; create one with 'slowlane create NAME --upstream HOST:PORT'\n")
            let created = try await slowlane("create web --upstream 127.0.0.1:\(port)")
            #expect(created.hasPrefix("0 Created new proxy web\nlistening on 127.0.0.1:"))
            let listen = String(try #require(created.split(whereSeparator: \.isWhitespace).last))
            #expect(
                try await slowlane("toxic add -t latency -a latency=200 -a jitter=10 --toxicity 0.5 web")
                    == "0 Added downstream latency toxic 'latency_downstream' on proxy 'web'\n")
            #expect(
                try await slowlane("toxic add -t packet_loss -n loss -u -a loss_rate=0.25 web")
                    == "0 Added upstream packet_loss toxic 'loss' on proxy 'web'\n")
            #expect(try await slowlane("list") == "0 web\t\(listen)\t127.0.0.1:\(port)\tenabled\t2\n")
            #expect(
                try await slowlane("inspect web")
                    == "0 loss\ttype=packet_loss\tstream=upstream\ttoxicity=1.00\tattributes=[\tcorrelation=0\tloss_rate=0.25\t]\n"
                    + "latency_downstream\ttype=latency\tstream=downstream\ttoxicity=0.50\tattributes=[\tjitter=10\tlatency=200\t]\n"
            )
            #expect(
                try await slowlane("toxic update -n latency_downstream -a latency=1 web")
                    == "0 Updated toxic 'latency_downstream' on proxy 'web'\n")
            #expect(
                try await slowlane("inspect web").contains("toxicity=0.50\tattributes=[\tjitter=10\tlatency=1\t]"))
            #expect(try await slowlane("toxic remove -n loss web") == "0 Removed toxic 'loss' on proxy 'web'\n")
            #expect(
                try await slowlane("link web edge")
                    == "0 web: edge, down 240 kbit/s 400 ms, up 200 kbit/s 440 ms\n")
            #expect(try await slowlane("link web --clear") == "0 web: down no rate limit 0 ms, up no rate limit 0 ms\n")
            #expect(try await slowlane("toggle web") == "0 Proxy web is now disabled\n")
            #expect(try await slowlane("toggle web") == "0 Proxy web is now enabled\n")
            #expect(
                try await slowlane("reset")
                    == "0 Every proxy is enabled, without toxics and faults, and has its first link\n")
            #expect(
                try await slowlane("list --json")
                    == #"0 {"web":{"enabled":true,"listen":"\#(listen)","name":"web","toxics":[],"upstream":"127.0.0.1:\#(port)"}}"#
                    + "\n")
            #expect(try await slowlane("delete web") == "0 Deleted proxy web\n")
            #expect(
                try await slowlane("delete web") == "1 error: cannot delete proxy 'web': HTTP 404: proxy not found\n")
            #expect(
                try await slowlane("toxic add -t nonsense web")
                    == "1 error: cannot add toxic: HTTP 404: proxy not found\n")
            #expect(try await slowlane("toxic add -t latency -a latency web").hasPrefix("64 "))
        }
        #expect(status == 0)
        _ = upstream
    }

    @Test func withoutAServerCommandsPrintARemedy() async throws {
        let free = try TestSocket.unusedPort()
        let words = [
            "list", "inspect web", "create web --upstream 9", "toggle web", "delete web", "reset", "link web edge",
            "link web", "toxic add -t noop web", "toxic update -n n web", "toxic remove -n n web", "events",
        ]
        for command in words {
            let result = try await Command.run(
                command.split(separator: " ").map(String.init) + ["--host", "http://127.0.0.1:\(free)"])
            #expect(result.status == 69, "\(command): \(result.errors)")
            #expect(result.errors.hasPrefix("error: cannot "), "\(command): \(result.errors)")
            #expect(result.errors.contains("start one with 'slowlane server'") && result.errors.contains("refused"))
        }
        #expect(try await Command.run("list", "--host", "ftp://x").status == 64)
    }

    @Test func aTakenPortIsStatus69() async throws {
        _ = try await withServer { url, _ in
            let port = String(try #require(url.split(separator: ":").last))
            let second = try await Command.run("server", "--port", port)
            #expect(second.status == 69)
            #expect(second.errors.contains("address already in use") && second.errors.contains("--port"))
        }
    }

    @Test func otherAddressesThanLoopbackRequireAToken() async throws {
        let refused = try await Command.run("server", "--host", "0.0.0.0", "--port", "0")
        #expect(refused.status == 64 && refused.errors.contains("--token") && refused.errors.contains("--no-token"))
        let status = try await withServer(["--host", "0.0.0.0", "--token", "secret"]) { url, _ in
            let local = url.replacing("0.0.0.0", with: "127.0.0.1")
            let without = try await Command.run("list", "--host", local)
            #expect(without.status == 1 && without.errors.contains("401"))
            #expect(try await Command.run("list", "--host", local, "--token", "secret").status == 0)
        }
        #expect(status == 0)
    }

    @Test func aConfigurationIsLoadedWithItsToxics() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appending(path: "proxies.json")
        try Data(
            #"[{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","toxics":[{"type":"latency"}]}]"#.utf8
        ).write(to: file)
        let status = try await withServer(["--config", file.path()]) { url, _ in
            let list = try await Command.run("list", "--host", url)
            #expect(list.output.hasPrefix("a\t127.0.0.1:") && list.output.hasSuffix("enabled\t1\n"))
        }
        #expect(status == 0)
        try Data("[{".utf8).write(to: file)
        let broken = try await Command.run("server", "--port", "0", "--config", file.path())
        #expect(broken.status == 65 && broken.errors.contains("proxies.json"))
    }

    @Test func aConfigurationIsLoadedWithItsFaults() async throws {
        let folder = try TemporaryFolder()
        let (listener, upstream) = try TestSocket.listen()
        let file = folder.url.appending(path: "proxies.json")
        func write(_ faults: String) throws {
            let text = #"[{"name":"a","listen":"127.0.0.1:0","upstream":"127.0.0.1:\#(upstream)","faults":\#(faults)}]"#
            try Data(text.utf8).write(to: file)
        }
        try write(
            #"["GET times 2 before-request respond 503 body busy", {"name": "late", "rule": "PUT before-response delay 1s"}]"#
        )
        let status = try await withServer(["--config", file.path()]) { url, server in
            let list = try await Command.run("list", "--host", url)
            let port = try #require(list.output.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            let reply = try await blocking { try HTTPPeer(port: port).ask("GET", "/") }
            #expect(reply.status == 503 && reply.body == "busy")
            #expect(!server.errors.text.contains("unknown field"), "\(server.errors.text)")
        }
        #expect(status == 0)
        for (faults, problem) in [
            (
                #"["GET before-request stall", "GET befor-response reset"]"#,
                "fault 2 of proxy 'a': rule: column 5: unknown word 'befor-response'"
            ),
            (#"[7]"#, "fault 1 of proxy 'a': a fault is a rule on one line"),
            (#""GET before-request stall""#, "faults is not an array"),
            (#"[{"name": "x"}]"#, "fault 1 of proxy 'a': missing required field: rule"),
        ] {
            try write(faults)
            let broken = try await Command.run("server", "--port", "0", "--config", file.path())
            #expect(broken.status == 65 && broken.errors.contains(problem), "\(broken.errors)")
            #expect(broken.errors.hasPrefix("error: --config \(file.path()): "))
        }
        try write("[\(Array(repeating: #""GET before-request stall""#, count: 3).joined(separator: ","))]")
        let many = try await Command.run("server", "--port", "0", "--max-faults", "2", "--config", file.path())
        withExtendedLifetime(listener) {}
        #expect(many.status == 65 && many.errors.contains("a proxy has at most 2 faults (--max-faults)"))
    }

    /// SIGHUP, or the change itself, applies a changed file: what is the same stays open, and a file that cannot be read
    /// changes nothing.
    @Test(arguments: [false, true]) func aConfigurationIsAppliedAgain(_ isWatched: Bool) async throws {
        let folder = try TemporaryFolder()
        let (listener, upstream) = try TestSocket.listen()
        let (file, ready) = (folder.url.appending(path: "p.json"), folder.url.appending(path: "ready.json"))
        func write(_ entries: [String: String]) throws {
            let proxies = entries.sorted { $0.key < $1.key }.map { name, more in
                #"{"name":"\#(name)","listen":"127.0.0.1:0","upstream":"127.0.0.1:\#(upstream)"\#(more)}"#
            }
            try Data("[\(proxies.joined(separator: ","))]".utf8).write(to: file)
        }
        func ports() throws -> [String: Int] {
            let json = try JSONSerialization.jsonObject(with: Data(contentsOf: ready)) as? [String: Any]
            let rows = try #require(json?["proxies"] as? [[String: Any]])
            return Dictionary(
                uniqueKeysWithValues: rows.map {
                    ($0["name"] as? String ?? "", Int(($0["listen"] as? String ?? "").split(separator: ":")[1]) ?? 0)
                })
        }
        try write(["a": #","toxics":[{"type":"latency"}]"#, "old": ""])
        let options = ["--config", file.path(), "--ready-file", ready.path()] + (isWatched ? ["--watch-config"] : [])
        let status = try await withServer(options) { url, server in
            func reload(_ word: String) async throws {
                if !isWatched { server.signal(SIGHUP) }
                _ = try await server.errors.line(with: word)
            }
            let before = try ports()
            let port = try #require(before["a"])
            let open = try await blocking { (try TestSocket.connect(port: port), try listener.accept()) }
            let faults = #","link":{"profile":"wifi"},"faults":["GET times 2 before-request respond 503 body busy"]"#
            try write(["a": faults, "new": ""])
            try await reload("applied again: proxies a, new")
            #expect(try ports()["a"] == port && ports().keys.sorted() == ["a", "new"])
            let list = try await Command.run("list", "--host", url)
            #expect(!list.output.contains("old") && list.output.contains("enabled\t0\n"), "\(list.output)")
            let reply = try await blocking { try HTTPPeer(port: port).ask("GET", "/") }
            #expect(reply.status == 503 && reply.body == "busy")
            try await blocking {
                try open.1.send(Array("still open".utf8))
                #expect(try open.0.receive(exactly: 10) == Array("still open".utf8))
            }
            try Data("[{".utf8).write(to: file)
            try await reload("p.json: ")
            #expect(try ports().keys.sorted() == ["a", "new"])
            #expect(try await blocking { try HTTPPeer(port: port).ask("GET", "/") }.status == 503)
        }
        #expect(status == 0)
        #expect(!FileManager.default.fileExists(atPath: ready.path()))
    }

    @Test func transfersEndInTheirTimeOfGrace() async throws {
        let folder = try TemporaryFolder()
        let (listener, upstream) = try TestSocket.listen()
        let file = folder.url.appending(path: "p.json")
        let addresses = #""listen":"127.0.0.1:0","upstream":"127.0.0.1:\#(upstream)""#
        try Data(#"[{"name":"a",\#(addresses),"link":{"profile":"edge"}}]"#.utf8).write(to: file)
        var client: TestSocket?
        let status = try await withServer(["--config", file.path(), "--grace", "20"]) { url, _ in
            let list = try await Command.run("list", "--host", url)
            let port = try #require(list.output.firstMatch(of: /127\.0\.0\.1:(\d+)/).flatMap { Int($0.1) })
            client = try await blocking {
                let client = try TestSocket.connect(port: port)
                let server = try listener.accept()
                try server.send(Array("under way".utf8))
                server.finish()
                return client
            }
        }
        #expect(status == 0)
        let received = try await blocking { [client] in try client?.receiveToEnd() }
        #expect(received == Array("under way".utf8))
    }

    @Test func theEndOfTheParentStopsTheServer() async throws {
        // The shell starts the server in the background and ends when its input ends.
        let shell = try Command(
            [
                "-c", #""$0" server --port 0 --exit-with-parent </dev/null & read line"#, Command.binary.path(),
            ], binary: URL(filePath: "/bin/sh"))
        _ = try await shell.output.line(with: "listening on ")
        shell.type("end\n", andClose: true)
        _ = await shell.end()
        #expect(shell.errors.text.hasSuffix("stopped\n"), "\(shell.errors.text)")
    }

    /// The limit is loose because this machine may be busy; the script measures call times on a quiet one.
    @Test func callsDoNotWaitForConnections() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
        let python = Repository.root.appending(path: ".build/python/bin/python")
        try #require(FileManager.default.isExecutableFile(atPath: python.path()), "run scripts/setup --tests")
        _ = try await withServer { url, _ in
            let port = String(try #require(url.split(separator: ":").last))
            let script = try Command(
                [root.appending(path: "Python/never_blocks.py").path(), port, "2000", "5"], binary: python)
            let status = await script.end()
            #expect(status == 0, "\(script.output.text)\(script.errors.text)")
        }
    }
}
