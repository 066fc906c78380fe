import Determinism
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The path of a connection's bytes.
enum CarriedBy: CaseIterable {
    case fastPath, swiftNIO, toxics, link

    fileprivate func apply(_ configuration: inout ProxyConfiguration) {
        switch self {
        case .fastPath: break
        case .swiftNIO: configuration.allowsFastPath = false
        case .toxics:
            configuration.toxics = [
                Toxic(name: "up", stream: .up, effect: .latency(latency: 1, jitter: 0)),
                Toxic(name: "down", stream: .down, effect: .latency(latency: 1, jitter: 0)),
            ]
        case .link:
            let direction = DirectionConditions(rate: .kilobits(40_000), delay: .milliseconds(1))
            configuration.conditions = Conditions(up: direction, down: direction)
        }
    }
}

/// A socket that fails may have received data first. Its peer gets all of that data, and then the RST.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(5))) struct EarlyResponseTests {
    /// The server responds and closes without reading the whole request, so its kernel sends a RST.
    @Test(arguments: CarriedBy.allCases) func anEarlyResponseArrivesCompleteDuringAnUpload(_ carrier: CarriedBy)
        async throws
    {
        let response =
            [UInt8]("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2000\r\n\r\n".utf8)
            + [UInt8](repeating: 120, count: 2000)
        try await withProxy(.clear, carrier.apply) { proxy, listener in
            for _ in 0..<40 {
                let (client, server) = try await blocking {
                    (try TestSocket.connect(port: proxy.address.port), try listener.accept())
                }
                let upload = Task { try? await blocking { try client.send([UInt8](repeating: 1, count: 20_000_000)) } }
                try await blocking {
                    _ = try server.receive(exactly: 1000)
                    try server.send(response)
                    server.reset()
                    var received: [UInt8] = []
                    while received.count < response.count, let piece = try? client.receive(), !piece.isEmpty {
                        received += piece
                    }
                    #expect(received == response)
                    client.reset()
                }
                _ = await upload.value
            }
            try await eventually("all connections have ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    @Test(arguments: CarriedBy.allCases) func bytesSentBeforeAResetArriveBeforeIt(_ carrier: CarriedBy)
        async throws
    {
        let size = 100_000
        try await withProxy(.clear, carrier.apply) { proxy, listener in
            for _ in 0..<10 {
                let (client, server) = try await blocking {
                    (try TestSocket.connect(port: proxy.address.port), try listener.accept())
                }
                let (bytes, code) = try await blocking {
                    try client.send([UInt8](repeating: 1, count: size))
                    client.reset()
                    return server.receiveToFailure()
                }
                #expect(bytes == size)
                #expect(code == ECONNRESET)
            }
            try await eventually("all connections have ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    /// A server that sends to a client learns that the client is gone, also after the client's FIN.
    @Test(arguments: CarriedBy.allCases) func theResetOfAClientFollowsItsFIN(_ carrier: CarriedBy) async throws {
        try await withProxy(.clear, carrier.apply) { proxy, listener in
            for _ in 0..<5 {
                let (client, server) = try await blocking {
                    (try TestSocket.connect(port: proxy.address.port), try listener.accept())
                }
                let sending = Task { try await blocking { try server.send([UInt8](repeating: 1, count: 100_000_000)) } }
                try await blocking {
                    try client.send([1])
                    _ = try client.receive(exactly: 1000)
                    client.finish()
                    _ = try server.receiveToEnd()
                    client.reset()
                }
                await #expect(throws: (any Error).self) { try await sending.value }
            }
            try await eventually("all connections have ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    /// The RST waits for the bytes before it, but not for a receiver that does not read.
    @Test func aReceiverThatDoesNotReadDelaysTheResetForALimitedTime() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await blocking {
                (try TestSocket.connect(port: proxy.address.port), try listener.accept())
            }
            server.shrinkReceiveBuffer()
            let sending = Task { try? await blocking { try client.send([UInt8](repeating: 1, count: 20_000_000)) } }
            try await eventually("the fast path holds bytes") { await proxy.status().link.bytesHeld > 0 }
            client.reset()
            _ = await sending.value
            try await eventually("the connection has ended") { await proxy.status().connectionsOpen == 0 }
            _ = server
        }
    }
}
