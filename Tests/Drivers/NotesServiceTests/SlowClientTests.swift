import Foundation
import HTTPSockets
import HTTPTypes
import Synchronization
import TestSupport
import Testing
import Wire

/// Slow and stalled clients of the HTTP server.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct SlowClientTests {
    private static func withServer(
        _ limits: HTTPServer.Limits,
        _ respond: @escaping @Sendable (HTTPRequest, HTTPServer.Exchange) async -> HTTPServer.Response,
        _ body: @escaping @Sendable (Int) throws -> Void
    ) async throws {
        let server = try await HTTPServer.start(host: "127.0.0.1", port: 0, limits: limits, respond: respond)
        let port = server.port
        do { try await blocking { try body(port) } } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test func aStalledBodyIsRejected() async throws {
        var limits = HTTPServer.Limits()
        limits.bodyWindowSeconds = 0.2
        try await Self.withServer(limits) { _, exchange in
            do throws(HTTPServer.BodyError) {
                _ = try await exchange.readBody()
                return HTTPServer.Response(HTTPResponse(status: .ok), .text(""))
            } catch {
                if case .tooSlow = error {
                    return HTTPServer.Response(HTTPResponse(status: .requestTimeout), .text(""))
                }
                return HTTPServer.Response(HTTPResponse(status: .badRequest), .text(""))
            }
        } _: { port in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf"
            let late = try HTTPPeer(port: port).raw(head).status
            #expect(late == 408)
            let whole = try HTTPPeer(port: port).raw(head + " whole").status
            #expect(whole == 200)
        }
    }

    /// A client that keeps reading gets the whole response, however long it is.
    @Test func aReaderThatStallsIsAborted() async throws {
        let piece = String(repeating: "x", count: 64 << 10)
        let pieces = 400
        var limits = HTTPServer.Limits()
        limits.responseBytesPerSecondMin = 10_000_000
        func withLongResponse(_ body: @escaping @Sendable (Int) throws -> Void) async throws {
            try await Self.withServer(limits) { _, _ in
                let left = Countdown(pieces)
                return HTTPServer.Response(HTTPResponse(status: .ok), .stream { left.next() ? piece : nil })
            } _: { port in
                try body(port)
            }
        }
        limits.responseStallSecondsMax = 30
        try await withLongResponse { port in
            let whole = try HTTPPeer(port: port).ask("GET", "/").body.utf8.count
            #expect(whole == pieces * 64 << 10)
        }
        limits.responseStallSecondsMax = 0.3
        try await withLongResponse { port in
            // After the stall the client gets only what the socket buffers hold. A busy machine needs a longer stall
            // until the server aborts.
            var bytes = Int.max
            for pause in [1.0, 3, 10, 30] where bytes >= pieces * 64 << 10 {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
                Thread.sleep(forTimeInterval: pause)
                bytes = socket.receiveToFailure().bytes
            }
            #expect(bytes < pieces * 64 << 10)
        }
    }
}

/// A countdown for several threads.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}
