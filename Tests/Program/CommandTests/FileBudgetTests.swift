#if os(Linux)
import Foundation
import TestSupport
import Testing

/// A server with a low limit of open files: the API stays reachable, and waiting clients cost no processor time.
@Suite(.tags(.tools), .timeLimit(.minutes(5))) struct FileBudgetTests {
    private static let filesMax = 256

    private func cpuTicks(_ pid: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
        let fields = text[text.lastIndex(of: ")")!...].split(separator: " ")
        return Int(fields[12])! + Int(fields[13])!
    }

    @Test func theAPIStaysReachableWhenConnectionsExceedTheFileLimit() async throws {
        let (upstream, upstreamPort) = try TestSocket.listen()
        let script = "ulimit -n \(Self.filesMax); exec \"$0\" server --port 0"
        let server = try Command(
            ["-c", script, Command.binary.path()], binary: URL(filePath: "/bin/bash"))
        let line = try await server.output.line(with: "listening on ")
        let apiPort = try #require(
            line.split(whereSeparator: { ":/ ()".contains($0) }).compactMap { Int($0) }.first)
        var ports: [Int] = []
        for name in ["a", "b", "c"] {
            let made = try await blocking {
                try HTTPPeer(port: apiPort).ask(
                    "POST", "/proxies",
                    #"{"name":"\#(name)","listen":"127.0.0.1:0","upstream":"127.0.0.1:\#(upstreamPort)"}"#)
            }
            #expect(made.status == 201)
            let listen = try #require(made.body.firstMatch(of: /127\.0\.0\.1:(\d+)","upstream/))
            ports.append(try #require(Int(listen.1)))
        }
        var clients: [TestSocket] = []
        for _ in 0..<100 {
            for port in ports {
                let client = try await blocking { try TestSocket.connect(port: port) }
                clients.append(client)
            }
        }
        let before = try cpuTicks(server.pid)
        try await Task.sleep(for: .seconds(1))
        #expect(try cpuTicks(server.pid) - before < 50, "half a core is a busy loop")
        let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.pid)/fd").count
        #expect(files < Self.filesMax)
        let list = try await blocking { try HTTPPeer(port: apiPort).ask("GET", "/proxies") }
        #expect(list.status == 200)
        clients = []
        let port = ports[0]
        try await blocking {
            // The waiting clients have left; a new one is served again.
            let client = try TestSocket.connect(port: port)
            try client.send([7])
            while true {
                let connection = try upstream.accept()
                if let bytes = try? connection.receive(), bytes == [7] { break }
            }
        }
        server.signal(SIGTERM)
        #expect(await server.end() == 0)
    }
}
#endif
