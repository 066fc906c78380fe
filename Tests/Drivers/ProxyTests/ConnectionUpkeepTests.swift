import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

#if os(Linux)
import Foundation

/// Keep-alive, and the limit on file descriptors that all proxies share.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(2))) struct ConnectionUpkeepTests {
    /// The kernel's timers of established connections with a local or remote port: 2 is keep-alive (proc(5)).
    private static func timers(ofPort port: Int) throws -> [Int] {
        // The file's size is reported as 0, so it is read to its end.
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

    @Test(arguments: [true, false]) func idleConnectionsAreProbedOnBothSides(_ allowsFastPath: Bool) async throws {
        try await withProxy(.clear, allowsFastPath: allowsFastPath) { proxy, listener in
            let port = proxy.address.port
            let (client, server) = try await blocking {
                (try TestSocket.connect(port: port), try listener.accept())
            }
            try await blocking {
                try client.send([1])
                _ = try server.receive(exactly: 1)
            }
            // The proxy's sockets have a timer; the test's own sockets have none.
            let upstreamPort = server.localPort
            try await eventually("both have a keep-alive timer") {
                try Self.timers(ofPort: port).contains(2) && Self.timers(ofPort: upstreamPort).contains(2)
            }
        }
    }

    @Test func theBudgetLeavesDescriptorsToTheRestOfTheProcess() {
        let budget = FileBudget(files: 20_000)
        #expect(2 * budget.connectionsMax + FileBudget.filesReserved + 20_000 / FileBudget.pipeShare <= 20_000)
        #expect(FileBudget(files: 64).connectionsMax >= 1)
        for processors in [1, 2, 8, 64] {
            let least = FileBudget.filesMin(processors: processors)
            #expect(FileBudget.connectionsMax(files: least, processors: processors) == 1)
            #expect(FileBudget.connectionsMax(files: least - 1, processors: processors) == 0)
            var before = 0
            for files in 0..<5000 {
                let count = FileBudget.connectionsMax(files: files, processors: processors)
                #expect(count >= before - 1, "a higher limit allows as many, up to rounding")
                let others = FileBudget.filesAtStart(processors: processors) + FileBudget.pipeFiles(of: files)
                #expect(count == 0 || 2 * count + others <= files)
                before = count
            }
        }
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
        #expect(small.availability == .proxyLimit, "the proxy's own limit is reached first")
    }
}
#endif
