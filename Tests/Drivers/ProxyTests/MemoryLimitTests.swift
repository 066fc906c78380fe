import Determinism
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

/// All connections together stay within the memory limit, also when they move from the fast path to the link at once.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(2))) struct MemoryLimitTests {
    @Test func uploadsThatMoveToTheLinkTogetherKeepToTheLimit() async throws {
        let direction = DirectionConditions(rate: .kilobits(40_000), delay: .milliseconds(1))
        let buffers = BufferLimits(bytesMaxTotal: 8 << 20)
        let count = 40
        try await withProxy(.clear, buffers: buffers) { proxy, listener in
            let pairs = try await blocking {
                try (0..<count).map { _ in (try TestSocket.connect(port: proxy.address.port), try listener.accept()) }
            }
            let uploads = pairs.map { client, _ in
                Task { try? await blocking { try client.send([UInt8](repeating: 1, count: 8_000_000)) } }
            }
            try await eventually("the fast path holds bytes of all connections") {
                await proxy.connections().allSatisfy { $0.bytesHeld.up > 0 }
            }
            await proxy.setConditions(Conditions(up: direction, down: direction))
            var most = 0
            for _ in 0..<200 {
                most = max(most, await proxy.status().link.bytesHeld)
                try await Task.sleep(for: .milliseconds(5))
            }
            // Beyond the limit: the bytes that the fast path had read of each connection, and one read under way.
            let share = buffers.bytesMax(connections: count)
            #expect(most <= buffers.bytesMaxTotal + count * (share + ProxyCore.conditionedReadBytesMax))
            for (client, server) in pairs {
                client.reset()
                server.reset()
            }
            for upload in uploads { _ = await upload.value }
        }
    }
}
