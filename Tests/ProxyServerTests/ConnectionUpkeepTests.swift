import Impairment
import LinkModel
import NIOCore
import NIOPosix
import SystemSockets
import TestSupport
import Testing

@testable import ProxyServer

#if os(Linux)
    import Foundation

    /// Keep-alive, and the files that all proxies share.
    @Suite(.serialized, .timeLimit(.minutes(2))) struct ConnectionUpkeepTests {
        /// The kernel's timers of established connections with a local or remote port: 2 is keep-alive (proc(5)).
        private static func timers(ofPort port: Int) throws -> [Int] {
            // Its size is 0: what asks for that reads nothing, or one page.
            let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/net/tcp"))
            let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
            let suffix = String(port, radix: 16, uppercase: true)
            return text.split(separator: "\n").dropFirst().compactMap { line in
                let fields = line.split(separator: " ")
                // sl, local address, remote address, state (01 is established), queues, timer.
                guard fields.count > 5, fields[3] == "01",
                    fields[1].hasSuffix(":\(suffix)") || fields[2].hasSuffix(":\(suffix)")
                else { return nil }
                return Int(fields[5].prefix(2), radix: 16)
            }
        }

        @Test(arguments: [true, false]) func silentConnectionsAreProbedOnBothSides(_ mayGoStraight: Bool) async throws {
            try await withProxy(.clear, mayGoStraight: mayGoStraight) { proxy, listener in
                let port = proxy.address.port
                let (client, server) = try await blocking {
                    (try TestSocket.connect(port: port), try listener.accept())
                }
                try await blocking {
                    try client.send([1])
                    _ = try server.receive(exactly: 1)
                }
                // Our socket to the client and our socket to the server; their own ends set no timer.
                let upstreamPort = server.localPort
                try await eventually("both are watched") {
                    try Self.timers(ofPort: port).contains(2) && Self.timers(ofPort: upstreamPort).contains(2)
                }
            }
        }

        @Test func theBudgetLeavesFilesToTheRestOfTheProcess() {
            let budget = FileBudget(files: 20_000)
            #expect(2 * budget.connectionsMax + FileBudget.filesReserved + 20_000 / FileBudget.pipeShare <= 20_000)
            #expect(FileBudget(files: 64).connectionsMax >= 1)
            for _ in 0..<budget.connectionsMax { budget.take() }
            #expect(budget.isFull)
            budget.release()
            #expect(!budget.isFull)
        }

        @Test func proxiesShareOneBudget() {
            let budget = FileBudget(files: 40)
            let (one, other) = (ConnectionSlots(max: 100, files: budget), ConnectionSlots(max: 100, files: budget))
            for _ in 0..<budget.connectionsMax { one.acquire() }
            #expect(other.availability == .processLimit && one.availability == .processLimit)
            one.release()
            #expect(!other.isFull)
            let small = ConnectionSlots(max: 1, files: FileBudget(files: 1000))
            small.acquire()
            #expect(small.availability == .proxyLimit, "its own limit is told when it is over")
        }
    }
#endif
