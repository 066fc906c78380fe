import Foundation
import GRDB
import HTTPServing
import HTTPTypes
import NotesContract
import Synchronization
import TestSupport
import Testing

@testable import NotesService

/// What our HTTP servers do to who is slow, and what a full disk does to a write.
@Suite(.timeLimit(.minutes(10))) struct SlowClientTests {
    private static func withHost(
        _ limits: HTTPServer.Limits,
        _ respond: @escaping @Sendable (HTTPRequest, HTTPServer.Exchange) async -> HTTPServer.Response,
        _ body: @escaping @Sendable (Int) throws -> Void
    ) async throws {
        let host = try await HTTPServer.start(host: "127.0.0.1", port: 0, limits: limits, respond: respond)
        let port = host.port
        do { try await blocking { try body(port) } } catch {
            await host.stop()
            throw error
        }
        await host.stop()
    }

    @Test func aBodyThatDoesNotArriveIsToldSo() async throws {
        var limits = HTTPServer.Limits()
        limits.bodyWindowSeconds = 0.2
        try await Self.withHost(limits) { _, read in
            do throws(HTTPServer.BodyError) {
                _ = try await read()
                return HTTPServer.Response(HTTPResponse(status: .ok), .text(""))
            } catch {
                if case .tooSlow = error { return HTTPServer.Response(HTTPResponse(status: .requestTimeout), .text("")) }
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

    /// Who takes what there is gets all of it, however long; who stops is cut off.
    @Test func aReaderThatStopsIsCutOff() async throws {
        let piece = String(repeating: "x", count: 64 << 10)
        let pieces = 400
        var limits = HTTPServer.Limits()
        limits.responseBytesPerSecondMin = 10_000_000
        func withPieces(_ body: @escaping @Sendable (Int) throws -> Void) async throws {
            try await Self.withHost(limits) { _, _ in
                let left = Countdown(pieces)
                return HTTPServer.Response(HTTPResponse(status: .ok), .pieces { left.next() ? piece : nil })
            } _: { port in
                try body(port)
            }
        }
        limits.responseStallSecondsMax = 30
        try await withPieces { port in
            let whole = try HTTPPeer(port: port).ask("GET", "/").body.utf8.count
            #expect(whole == pieces * 64 << 10)
        }
        limits.responseStallSecondsMax = 0.3
        try await withPieces { port in
            // Nothing is read until long after; then there is what the kernels hold, and an end. On a machine that is busy the
            // server needs longer to notice.
            var bytes = Int.max
            for pause in [3.0, 10, 30] where bytes >= pieces * 64 << 10 {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
                Thread.sleep(forTimeInterval: pause)
                bytes = socket.receiveToFailure().bytes
            }
            #expect(bytes < pieces * 64 << 10)
        }
    }

    /// A write that finds no room is refused, nothing of it is there, and what is there can be read.
    @Test func aFullDiskIsSaidAndLosesNothing() throws {
        let folder = try TemporaryFolder()
        let fixture = try Fixture(store: NotesStore(path: folder.path("notes.db")))
        let revision = fixture.create()
        try fixture.store.queue.writeWithoutTransaction { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            try database.execute(sql: "PRAGMA max_page_count = \(pages)")
        }
        let text = String(repeating: "x", count: 100_000)
        let refused = fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n2)","text":"\#(text)"}"#)
        #expect(refused.status == 507)
        #expect(refused.body.contains("disk is full"))
        #expect(
            fixture.send("PATCH", "/api/notes/\(Fixture.n1)/", #"{"revision":"\#(revision)","text":"\#(text)"}"#).status == 507
        )
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n1)/").revision == revision)
        #expect(fixture.send("GET", "/api/notes/\(Fixture.n2)/").status == 404)
        try fixture.store.queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        #expect(fixture.send("POST", "/api/notes/", #"{"uuid":"\#(Fixture.n2)","text":"\#(text)"}"#).status == 201)
    }
}

/// Says yes so many times.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}
