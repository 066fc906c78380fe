import Foundation
import HTTPSockets
import HTTPTypes
import Synchronization
import TestSupport
import Testing
import Wire

/// A connection of the HTTP server: framing, order, deadlines, slots.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct HTTPServerConnectionTests {
    typealias Respond = @Sendable (HTTPRequest, HTTPServer.Exchange) async -> HTTPServer.Response

    private static func withServer(
        limits: HTTPServer.Limits = .init(), _ respond: @escaping Respond,
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

    private static func limits(_ change: (inout HTTPServer.Limits) -> Void) -> HTTPServer.Limits {
        var limits = HTTPServer.Limits()
        change(&limits)
        return limits
    }

    private static func ok(_ body: HTTPServer.Response.Body) -> HTTPServer.Response {
        HTTPServer.Response(HTTPResponse(status: .ok), body)
    }

    private static let long = String(repeating: "l", count: 200_000)

    /// A handler with a body of each kind, by path.
    private static let kinds: Respond = { request, _ in
        switch request.path {
        case "/short": return ok(.text("short"))
        case "/empty": return ok(.text(""))
        case "/long": return ok(.text(long))
        case "/none": return HTTPServer.Response(HTTPResponse(status: .noContent), .text(""))
        case "/unknown-length": return ok(.omitted(length: nil))
        case "/bytes", "/short-bytes", "/long-bytes":
            let left = Countdown(3)
            let length = request.path == "/bytes" ? 15 : request.path == "/short-bytes" ? 16 : 14
            return ok(.bytes(length: length) { left.next() ? Array("bytes".utf8) : nil })
        case "/no-bytes": return ok(.bytes(length: 0) { nil })
        default:
            let left = Countdown(3)
            return ok(.stream { left.next() ? "piece" : nil })
        }
    }

    private static let paths = [
        "/short", "/empty", "/long", "/none", "/unknown-length", "/pieces", "/bytes", "/no-bytes",
    ]

    // MARK: Framing

    /// A body after a HEAD would be parsed as the next response.
    @Test func aResponseToHEADHasNoBody() async throws {
        try await Self.withServer(Self.kinds) { (port: Int) throws -> Void in
            let peer = HTTPPeer(port: port)
            for path in Self.paths {
                let head = try peer.ask("HEAD", path)
                #expect(head.status == (path == "/none" ? 204 : 200))
                let get = try peer.ask("GET", path)
                if path != "/unknown-length" {
                    #expect(head.header("Content-Length") == get.header("Content-Length"), "\(path)")
                }
                #expect(head.header("Connection") == nil && head.header("Date")?.hasSuffix(" GMT") == true)
            }
            #expect(try peer.ask("GET", "/pieces").body == "piecepiecepiece")
            #expect(try peer.ask("GET", "/long").body == Self.long)
            #expect(try peer.ask("GET", "/bytes").body == "bytesbytesbytes")
        }
    }

    /// A client must not take a body for complete whose parts do not have the declared length.
    @Test func bytesOfAnotherLengthAbortTheConnection() async throws {
        try await Self.withServer(Self.kinds) { (port: Int) throws -> Void in
            for (path, length) in [("/short-bytes", 16), ("/long-bytes", 14)] {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
                let (bytes, code) = socket.receiveToFailure()
                #expect(code == ECONNRESET, "\(path)")
                #expect(bytes < 400 + length)
            }
        }
    }

    /// HTTP/1.0 has no chunked coding, and closes unless both sides send keep-alive.
    @Test func http10GetsALengthOrACloseDelimitedBody() async throws {
        try await Self.withServer(Self.kinds) { (port: Int) throws -> Void in
            func ask(_ path: String, _ fields: String = "") throws -> (head: String, body: String) {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET \(path) HTTP/1.0\r\n\(fields)\r\n".utf8))
                // Returns only if the server closes the connection.
                let text = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
                let end = try #require(text.range(of: "\r\n\r\n"))
                return (String(text[..<end.lowerBound]), String(text[end.upperBound...]))
            }
            for (path, body) in [("/short", "short"), ("/empty", ""), ("/long", Self.long), ("/none", "")] {
                let reply = try ask(path)
                #expect(reply.body == body)
                #expect(reply.head.contains("\r\nConnection: close"))
                #expect(reply.head.contains("\r\nContent-Length: \(body.utf8.count)") == (path != "/none"))
            }
            let pieces = try ask("/pieces", "Connection: keep-alive\r\n")
            #expect(pieces.body == "piecepiecepiece")
            #expect(pieces.head.contains("\r\nConnection: close") && !pieces.head.contains("Transfer-Encoding"))
            let peer = HTTPPeer(port: port)
            for _ in 0..<3 {
                let kept = try peer.raw("GET /short HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
                #expect(kept.header("Connection") == "keep-alive" && kept.body == "short")
            }
        }
    }

    /// Other servers could frame these requests differently (RFC 9112, 3.2 and 6).
    @Test func ambiguousHeadsAreRejected() async throws {
        let count = Counter()
        try await Self.withServer { request, _ in
            count.add()
            return Self.ok(.text(request.authority ?? ""))
        } _: { (port: Int) throws -> Void in
            let host = "Host: h\r\n"
            let marks = CombiningMarks.of(bytes: 2000)
            for (line, fields, status) in [
                ("GET / HTTP/1.1", "", 400), ("GET / HTTP/1.1", "\(host)\(host)", 400),
                ("GET / HTTP/1.1", "Host: a b\r\n", 400), ("GET / HTTP/1.0", "\(host)\(host)", 400),
                ("POST / HTTP/1.1", "\(host)Transfer-Encoding: gzip, chunked\r\n", 501),
                ("POST / HTTP/1.1", "\(host)Transfer-Encoding: gzip\r\n", 501),
                ("POST / HTTP/1.1", "\(host)Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400),
                ("POST / HTTP/1.0", "\(host)Transfer-Encoding: chunked\r\n", 400),
                ("POST / HTTP/1.1", "\(host)Content-Length: 3\r\nContent-Length: 4\r\n", 400),
                ("POST / HTTP/1.1", "\(host)Content-Length: -1\r\n", 400),
                ("GET / HTTP/2.0", host, 505), ("GET /\(marks) HTTP/1.1", host, 400),
                ("GET / HTTP/1.1", "\(host)X: \(marks)\r\n", 400),
            ] {
                let reply = try HTTPPeer(port: port).raw("\(line)\r\n\(fields)\r\n")
                #expect(reply.status == status, "\(line.prefix(20)) \(fields.prefix(60))")
                #expect(reply.header("Connection") == "close")
            }
            #expect(count.value == 0)
            #expect(try HTTPPeer(port: port).raw("GET / HTTP/1.0\r\n\r\n").status == 200)
            // The authority of the target takes precedence over Host (RFC 9112, 3.2.2).
            #expect(try HTTPPeer(port: port).raw("GET http://other:1/ HTTP/1.1\r\nHost: h\r\n\r\n").body == "other:1")
        }
    }

    @Test func continueIsSentWhenTheHandlerReadsTheBody() async throws {
        try await Self.withServer { request, exchange in
            if request.path == "/refused" { return HTTPServer.Response(HTTPResponse(status: .forbidden), .text("")) }
            let bytes = try? await exchange.readBody()
            return Self.ok(.text("\(bytes?.count ?? -1)"))
        } _: { (port: Int) throws -> Void in
            let head = "HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            #expect(try HTTPPeer(port: port).raw("POST /refused \(head)").status == 403)
            let peer = HTTPPeer(port: port)
            #expect(try peer.raw("POST / \(head)", isHead: true).status == 100)
            #expect(try peer.raw("ab").body == "2")
        }
    }

    @Test func aBodyIsOmittedFor204And304() async throws {
        try await Self.withServer { request, _ in
            HTTPServer.Response(
                HTTPResponse(status: request.path == "/204" ? .noContent : .notModified), .text(Self.long))
        } _: { (port: Int) throws -> Void in
            let peer = HTTPPeer(port: port)
            for (path, status) in [("/204", 204), ("/304", 304), ("/204", 204)] {
                let reply = try peer.ask("GET", path)
                #expect(reply.status == status && reply.header("Connection") == nil)
            }
        }
    }

    /// HTTP/1.0 has no chunked coding, so a FIN would mark the truncated body as complete.
    @Test func aBodyThatFailsPartWayAbortsTheConnection() async throws {
        struct ReadError: Error {}
        try await Self.withServer { _, _ in
            let left = Countdown(3)
            return Self.ok(
                .stream {
                    guard left.next() else { throw ReadError() }
                    return "piece"
                })
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.0\r\n\r\n".utf8))
            #expect(socket.receiveToFailure().code == ECONNRESET)
        }
    }

    // MARK: Order

    @Test func pipelinedRequestsGetResponsesInOrderAfterAHalfClose() async throws {
        try await Self.withServer { request, _ in
            await Task.yield()
            return Self.ok(.text(request.path ?? ""))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            let requests = (0..<50).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }
            try socket.send(Array(requests.joined().utf8))
            socket.finish()
            let text = String(decoding: try socket.receiveToEnd(), as: UTF8.self)
            let bodies = text.split(separator: "\r\n\r\n").dropFirst().map { $0.prefix { $0 != "H" } }
            #expect(bodies.map(String.init) == (0..<50).map { "/\($0)" })
        }
    }

    /// Otherwise a client that only sends would make the server buffer a response per request.
    @Test func noRequestIsHandledBeforeThePreviousResponseIsWritten() async throws {
        let count = Counter()
        let megabyte = String(repeating: "m", count: 1 << 20)
        try await Self.withServer { _, _ in
            count.add()
            return Self.ok(.text(megabyte))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            socket.shrinkReceiveBuffer()
            try socket.send(Array(String(repeating: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", count: 100).utf8))
            #expect(try HTTPPeer(port: port).ask("GET", "/").status == 200)
            // Time in which a server without this limit handles all requests: nothing happens that the test could await.
            Thread.sleep(forTimeInterval: 1)
            // The socket buffers hold some responses.
            #expect(count.value < 20)
            withExtendedLifetime(socket) {}
        }
    }

    /// A close while the client still sends would reset the connection and destroy the response.
    @Test func aResponseArrivesThoughTheBodyIsNotRead() async throws {
        try await Self.withServer { _, _ in
            HTTPServer.Response(HTTPResponse(status: .forbidden), .text("no"))
        } _: { (port: Int) throws -> Void in
            let body = String(repeating: "x", count: 4_000_000)
            for _ in 0..<5 {
                let reply = try HTTPPeer(port: port).ask("POST", "/", body)
                #expect(reply.status == 403 && reply.body == "no" && reply.header("Connection") == "close")
            }
            // A short body that has arrived already does not end the connection.
            #expect(try HTTPPeer(port: port).ask("POST", "/", "x").header("Connection") == nil)
        }
    }

    @Test func aLengthOverTheLimitIsRejectedBeforeTheBodyArrives() async throws {
        try await Self.withServer { _, exchange in
            do throws(HTTPServer.BodyError) {
                _ = try await exchange.readBody()
            } catch {
                if case .tooLarge = error {
                    return HTTPServer.Response(HTTPResponse(status: .contentTooLarge), .text(""))
                }
            }
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999\r\n\r\n"
            #expect(try HTTPPeer(port: port).raw(head).status == 413)
        }
    }

    /// After a FIN, NIO reads everything that the kernel holds, in spite of back-pressure.
    @Test func bufferedInputIsBoundedAfterAHalfClose() async throws {
        let gate = Gate()
        let limits = Self.limits {
            $0.headerBytesMax = 8 << 10
            $0.readBytesMax = 4 << 10
        }
        try await Self.withServer(limits: limits) { _, _ in
            await gate.wait()
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            defer { gate.open() }
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            try #require(gate.awaitArrival())
            try socket.send([UInt8](repeating: 120, count: 48 << 10))
            socket.finish()
            try #require(socket.isReadable(within: 10_000))
            let end = socket.receiveToFailure()
            #expect(end.bytes == 0 && end.code == ECONNRESET)
        }
    }

    @Test func aBodyUsesTheBudgetUntilItsHandlerEnds() async throws {
        let gate = Gate()
        let gone = Flag()
        try await Self.withServer(limits: Self.limits { $0.bodiesBytesMax = 10 }) { request, exchange in
            guard let bytes = try? await exchange.readBody() else {
                return HTTPServer.Response(HTTPResponse(status: .serviceUnavailable), .text(""))
            }
            if request.path == "/held" {
                await withTaskCancellationHandler {
                    await gate.wait()
                } onCancel: {
                    gone.set()
                }
            }
            return Self.ok(.text("\(bytes.count)"))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n0123456789".utf8))
            try #require(gate.awaitArrival())
            socket.reset()
            try #require(gone.wait())
            for _ in 0..<5 { #expect(try HTTPPeer(port: port).ask("POST", "/", "x").status == 503) }
            gate.open()
            let deadline = ContinuousClock.now + .seconds(60)
            while try HTTPPeer(port: port).ask("POST", "/", "0123456789").status != 200 {
                try #require(ContinuousClock.now < deadline)
            }
        }
    }

    // MARK: Deadlines

    /// The kernel still holds part of the response when the server closes.
    @Test func aSlowReaderGetsTheCompleteLastResponse() async throws {
        let text = String(repeating: "s", count: 50_000)
        let limits = Self.limits {
            $0.lingerSecondsMax = 0.2
            $0.sendBufferBytes = 1 << 20
        }
        try await Self.withServer(limits: limits) { _, _ in
            Self.ok(.text(text))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            socket.shrinkReceiveBuffer()
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8))
            // The client reads nothing for longer than the linger time, which the server measures with the real clock.
            Thread.sleep(forTimeInterval: 0.6)
            #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n" + text))
        }
    }

    @Test func aHeadMustBeCompleteBeforeItsDeadline() async throws {
        try await Self.withServer(limits: Self.limits { $0.headSecondsMax = 0.5 }, Self.kinds) {
            (port: Int) throws -> Void in
            // The server counts from the time at which it accepts the connection.
            let start = ContinuousClock.now
            let socket = try TestSocket.connect(port: port)
            var reply = ""
            try socket.send(Array("GET / HTTP/1.1\r\nX: ".utf8))
            while !socket.isReadable(within: 50) { try? socket.send([120]) }
            reply = String(decoding: (try? socket.receiveToEnd()) ?? [], as: UTF8.self)
            #expect(reply.hasPrefix("HTTP/1.1 408"))
            #expect(ContinuousClock.now - start >= .milliseconds(500))
            // A client that has sent nothing gets no response.
            #expect(try TestSocket.connect(port: port).receiveToEnd().isEmpty)
        }
    }

    @Test func anIdleConnectionIsClosed() async throws {
        try await Self.withServer(limits: Self.limits { $0.idleSecondsMax = 0.3 }, Self.kinds) {
            (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET /none HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            let start = ContinuousClock.now
            #expect(try !socket.receiveToEnd().isEmpty)
            #expect(ContinuousClock.now - start >= .milliseconds(250))
        }
    }

    /// The total time has no limit, because a mobile network may be slow.
    @Test func aSlowBodyArrivesWhileItKeepsTheMinimumRate() async throws {
        let limits = Self.limits {
            $0.bodyWindowSeconds = 1
            $0.bodyBytesPerSecondMin = 10
        }
        try await Self.withServer(
            limits: limits,
            { _, exchange in
                do throws(HTTPServer.BodyError) {
                    return Self.ok(.text("\(try await exchange.readBody().count)"))
                } catch {
                    if case .tooSlow = error {
                        return HTTPServer.Response(HTTPResponse(status: .requestTimeout), .text(""))
                    }
                    return HTTPServer.Response(HTTPResponse(status: .badRequest), .text(""))
                }
            }
        ) { (port: Int) throws -> Void in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 400\r\n\r\n"
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array(head.utf8))
            // The server measures the rate of a body with the real clock.
            for _ in 0..<20 {
                Thread.sleep(forTimeInterval: 0.15)
                try socket.send([UInt8](repeating: 120, count: 20))
            }
            #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n400"))
            let trickle = try TestSocket.connect(port: port)
            try trickle.send(Array(head.utf8))
            while !trickle.isReadable(within: 300) { try? trickle.send([120]) }
            #expect(String(decoding: try trickle.receive(), as: UTF8.self).hasPrefix("HTTP/1.1 408"))
        }
    }

    @Test func theKernelProbesConnections() async throws {
        try await Self.withServer(Self.kinds) { (port: Int) throws -> Void in
            let peer = HTTPPeer(port: port)
            _ = try peer.ask("GET", "/short")
            // The server's end of the connection is a descriptor of this process.
            var found: [CInt] = []
            for descriptor in CInt(3)..<8192 where TestSocket.isAccepted(descriptor, on: port) {
                var value: CInt = 0
                var size = socklen_t(MemoryLayout<CInt>.size)
                getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &value, &size)
                found.append(value)
            }
            #expect(found == [1])
            withExtendedLifetime(peer) {}
        }
    }

    // MARK: Slots

    @Test func aNewConnectionEvictsTheOldestUnauthenticatedOne() async throws {
        try await Self.withServer(limits: Self.limits { $0.connectionsMax = 4 }) { request, exchange in
            if request.path == "/authenticated" { exchange.recordAuthentication() }
            return Self.ok(.text("here"))
        } _: { (port: Int) throws -> Void in
            let authenticated = HTTPPeer(port: port)
            #expect(try authenticated.ask("GET", "/authenticated").body == "here")
            var unauthenticated: [TestSocket] = []
            for _ in 0..<20 {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\n".utf8))
                unauthenticated.append(socket)
                #expect(try HTTPPeer(port: port).ask("GET", "/").body == "here")
            }
            // The first unauthenticated connection was evicted, the authenticated one was not.
            #expect(unauthenticated[0].receiveToFailure().bytes == 0)
            #expect(try authenticated.ask("GET", "/authenticated").body == "here")
        }
    }

    @Test func aNewConnectionGets503WhenAllOthersAreAuthenticatedAndBusy() async throws {
        let gate = Gate()
        try await Self.withServer(limits: Self.limits { $0.connectionsMax = 2 }) { _, exchange in
            exchange.recordAuthentication()
            await gate.wait()
            return Self.ok(.text("held"))
        } _: { (port: Int) throws -> Void in
            let busy = try (0..<2).map { _ in
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8))
                return socket
            }
            for _ in 0..<2 { try #require(gate.awaitArrival()) }
            #expect(try HTTPPeer(port: port).ask("GET", "/").status == 503)
            gate.open()
            for socket in busy {
                #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("held"))
            }
        }
    }

    // MARK: Closing

    @Test func aHandlerIsCancelledWhenItsClientDisconnects() async throws {
        let (begun, cancelled) = (Flag(), Flag())
        try await Self.withServer { _, _ in
            begun.set()
            do { try await Task.sleep(for: .seconds(300)) } catch { cancelled.set() }
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            try #require(begun.wait())
            socket.reset()
            #expect(cancelled.wait())
        }
    }

    @Test func stopDoesNotWaitForHandlers() async throws {
        let gate = Gate()
        let server = try await HTTPServer.start(host: "127.0.0.1", port: 0, limits: .init()) { _, _ in
            await gate.wait()
            return Self.ok(.text(""))
        }
        let port = server.port
        let socket = try await blocking {
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            try #require(gate.awaitArrival())
            return socket
        }
        // The handler ends only after the gate opens.
        await server.stop()
        #expect(socket.receiveToFailure().bytes == 0)
        gate.open()
    }
}

/// A counter for several threads.
private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add() { count.add(1, ordering: .relaxed) }
}

/// A countdown for several threads.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}
