import Impairment
import LinkModel
import TestSupport
import Testing

@testable import ProxyServer

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// How a connection is carried.
enum CarriedBy: CaseIterable {
    case fastPath, swiftNIO, toxics, link

    fileprivate func apply(_ configuration: inout ProxyConfiguration) {
        switch self {
        case .fastPath: break
        case .swiftNIO: configuration.mayGoStraight = false
        case .toxics:
            configuration.toxics = [
                Toxic(name: "up", stream: .up, effect: .latency(latency: 1, jitter: 0)),
                Toxic(name: "down", stream: .down, effect: .latency(latency: 1, jitter: 0)),
            ]
        case .link:
            let way = DirectionConditions(rate: .kilobits(40_000), delay: .milliseconds(1))
            configuration.conditions = Conditions(up: way, down: way)
        }
    }
}

/// A socket that fails has often been told something before; its peer gets all of it, and then the failure.
@Suite(.serialized, .timeLimit(.minutes(5))) struct EarlyResponseTests {
    /// Reads what a server says before it closes with a RST, because it has not read the whole request.
    @Test(arguments: CarriedBy.allCases) func anEarlyResponseArrivesWholeWhileTheUploadGoesOn(_ carrier: CarriedBy)
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
            try await eventually("all connections are over") { await proxy.status().connectionsOpen == 0 }
        }
    }

    @Test(arguments: CarriedBy.allCases) func whatAClientSentBeforeItsResetArrivesBeforeIt(_ carrier: CarriedBy)
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
            try await eventually("all connections are over") { await proxy.status().connectionsOpen == 0 }
        }
    }

    /// The RST waits for the bytes before it, and for no receiver that does not read.
    @Test func aReceiverThatDoesNotReadIsNotWaitedForForLong() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await blocking {
                (try TestSocket.connect(port: proxy.address.port), try listener.accept())
            }
            server.shrinkReceiveBuffer()
            let sending = Task { try? await blocking { try client.send([UInt8](repeating: 1, count: 20_000_000)) } }
            try await eventually("the relay holds something") { await proxy.status().link.bytesHeld > 0 }
            client.reset()
            _ = await sending.value
            try await eventually("the connection is over") { await proxy.status().connectionsOpen == 0 }
            _ = server
        }
    }
}
