import Foundation
import HTTPServing
import HTTPTypes
import Synchronization
import TestSupport
import Testing

/// One connection to our HTTP servers: framing, order, deadlines, slots.
@Suite(.timeLimit(.minutes(10))) struct HostConnectionTests {
    typealias Respond = @Sendable (HTTPRequest, HTTPServer.Exchange) async -> HTTPServer.Answer

    private static func withHost(
        limits: HTTPServer.Limits = .init(), _ respond: @escaping Respond,
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

    private static func limits(_ change: (inout HTTPServer.Limits) -> Void) -> HTTPServer.Limits {
        var limits = HTTPServer.Limits()
        change(&limits)
        return limits
    }

    private static func ok(_ body: HTTPServer.Answer.Body) -> HTTPServer.Answer {
        HTTPServer.Answer(HTTPResponse(status: .ok), body)
    }

    private static let long = String(repeating: "l", count: 200_000)

    /// Bodies of every kind, by path.
    private static let kinds: Respond = { request, _ in
        switch request.path {
        case "/short": return ok(.text("short"))
        case "/empty": return ok(.text(""))
        case "/long": return ok(.text(long))
        case "/none": return HTTPServer.Answer(HTTPResponse(status: .noContent), .text(""))
        case "/unknown-length": return ok(.length(nil))
        default:
            let left = Countdown(3)
            return ok(.pieces { left.next() ? "piece" : nil })
        }
    }

    private static let paths = ["/short", "/empty", "/long", "/none", "/unknown-length", "/pieces"]

    // MARK: Framing

    /// A body after a HEAD would be the beginning of the next response.
    @Test func aResponseToHEADHasNoBodyAndTheNextOneIsRead() async throws {
        try await Self.withHost(Self.kinds) { (port: Int) throws -> Void in
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
        }
    }

    /// HTTP/1.0 knows no chunks, and closes unless both sides have said otherwise.
    @Test func http10GetsALengthOrTheEndOfTheConnection() async throws {
        try await Self.withHost(Self.kinds) { (port: Int) throws -> Void in
            func ask(_ path: String, _ fields: String = "") throws -> (head: String, body: String) {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET \(path) HTTP/1.0\r\n\(fields)\r\n".utf8))
                // Ends only if the server closes.
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

    /// What others read otherwise is not read at all (RFC 9112, 3.2 and 6).
    @Test func ambiguousHeadsAreRefused() async throws {
        let count = Counter()
        try await Self.withHost { request, _ in
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
            // The target's authority goes before the Host (RFC 9112, 3.2.2).
            #expect(try HTTPPeer(port: port).raw("GET http://other:1/ HTTP/1.1\r\nHost: h\r\n\r\n").body == "other:1")
        }
    }

    @Test func whoWaitsToBeToldToGoOnIsToldOnceTheBodyIsWanted() async throws {
        try await Self.withHost { request, body in
            if request.path == "/refused" { return HTTPServer.Answer(HTTPResponse(status: .forbidden), .text("")) }
            let bytes = try? await body()
            return Self.ok(.text("\(bytes?.count ?? -1)"))
        } _: { (port: Int) throws -> Void in
            let head = "HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            #expect(try HTTPPeer(port: port).raw("POST /refused \(head)").status == 403)
            let peer = HTTPPeer(port: port)
            #expect(try peer.raw("POST / \(head)", isHead: true).status == 100)
            #expect(try peer.raw("ab").body == "2")
        }
    }

    @Test func aLongTextWithAStatusThatHasNoBodyLeavesTheConnectionUsable() async throws {
        try await Self.withHost { request, _ in
            HTTPServer.Answer(
                HTTPResponse(status: request.path == "/204" ? .noContent : .notModified), .text(Self.long))
        } _: { (port: Int) throws -> Void in
            let peer = HTTPPeer(port: port)
            for (path, status) in [("/204", 204), ("/304", 304), ("/204", 204)] {
                let reply = try peer.ask("GET", path)
                #expect(reply.status == status && reply.header("Connection") == nil)
            }
        }
    }

    /// HTTP/1.0 has no chunks: a FIN would end the body as if it were whole.
    @Test func aBodyThatFailsPartWayIsReset() async throws {
        struct ReadError: Error {}
        try await Self.withHost { _, _ in
            let left = Countdown(3)
            return Self.ok(
                .pieces {
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

    @Test func pipelinedRequestsAreAnsweredInOrderThoughTheirClientHasClosedItsSide() async throws {
        try await Self.withHost { request, _ in
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

    /// Or else whoever only sends holds as many responses here as they have sent requests.
    @Test func noRequestIsHandledBeforeThePreviousResponseIsTaken() async throws {
        let count = Counter()
        let megabyte = String(repeating: "m", count: 1 << 20)
        try await Self.withHost { _, _ in
            count.add()
            return Self.ok(.text(megabyte))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            socket.shrinkReceiveBuffer()
            try socket.send(Array(String(repeating: "GET / HTTP/1.1\r\nHost: h\r\n\r\n", count: 100).utf8))
            #expect(try HTTPPeer(port: port).ask("GET", "/").status == 200)
            Thread.sleep(forTimeInterval: 1)
            // The kernel's buffers take some.
            #expect(count.value < 20)
            withExtendedLifetime(socket) {}
        }
    }

    /// A response must reach who still sends what nobody reads.
    @Test func aBodyThatIsNotReadDoesNotCostTheResponse() async throws {
        try await Self.withHost { _, _ in
            HTTPServer.Answer(HTTPResponse(status: .forbidden), .text("no"))
        } _: { (port: Int) throws -> Void in
            let body = String(repeating: "x", count: 4_000_000)
            for _ in 0..<5 {
                let reply = try HTTPPeer(port: port).ask("POST", "/", body)
                #expect(reply.status == 403 && reply.body == "no" && reply.header("Connection") == "close")
            }
            // A short one that is there already costs no connection.
            #expect(try HTTPPeer(port: port).ask("POST", "/", "x").header("Connection") == nil)
        }
    }

    @Test func aLengthOverTheLimitIsRefusedBeforeTheBodyComes() async throws {
        try await Self.withHost { _, body in
            do throws(HTTPServer.BodyFailure) {
                _ = try await body()
            } catch {
                if case .tooLarge = error {
                    return HTTPServer.Answer(HTTPResponse(status: .contentTooLarge), .text(""))
                }
            }
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999\r\n\r\n"
            #expect(try HTTPPeer(port: port).raw(head).status == 413)
        }
    }

    /// After a FIN everything that the kernel has is read, whatever back-pressure there is.
    @Test func bytesBehindARequestAreBoundedThoughTheirClientHasClosedItsSide() async throws {
        let gate = Gate()
        let limits = Self.limits {
            $0.headerBytesMax = 8 << 10
            $0.readBytesMax = 4 << 10
        }
        try await Self.withHost(limits: limits) { _, _ in
            await gate.wait()
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            defer { gate.open() }
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            while gate.count < 1 { Thread.sleep(forTimeInterval: 0.01) }
            try socket.send([UInt8](repeating: 120, count: 48 << 10))
            socket.finish()
            try #require(socket.isReadable(within: 10_000))
            let end = socket.receiveToFailure()
            #expect(end.bytes == 0 && end.code == ECONNRESET)
        }
    }

    @Test func aBodyCountsUntilItsHandlerEndsThoughItsClientHasGone() async throws {
        let gate = Gate()
        let gone = Flag()
        try await Self.withHost(limits: Self.limits { $0.bodiesBytesMax = 10 }) { request, body in
            guard let bytes = try? await body() else {
                return HTTPServer.Answer(HTTPResponse(status: .serviceUnavailable), .text(""))
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
            while gate.count < 1 { Thread.sleep(forTimeInterval: 0.01) }
            socket.reset()
            while !gone.isSet { Thread.sleep(forTimeInterval: 0.01) }
            for _ in 0..<5 { #expect(try HTTPPeer(port: port).ask("POST", "/", "x").status == 503) }
            gate.open()
            let deadline = ContinuousClock.now + .seconds(60)
            while try HTTPPeer(port: port).ask("POST", "/", "0123456789").status != 200 {
                try #require(ContinuousClock.now < deadline)
            }
        }
    }

    // MARK: Deadlines

    /// The kernel still holds the response when the connection is closed.
    @Test func aSlowReaderGetsTheWholeLastResponse() async throws {
        let text = String(repeating: "s", count: 150_000)
        let limits = Self.limits {
            $0.lingerSecondsMax = 0.2
            $0.sendBufferBytes = 1 << 20
        }
        try await Self.withHost(limits: limits) { _, _ in
            Self.ok(.text(text))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            socket.shrinkReceiveBuffer()
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8))
            // Longer than the server lingers.
            Thread.sleep(forTimeInterval: 1)
            #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n" + text))
        }
    }

    @Test func aHeadMustBeWholeInTimeHoweverItTrickles() async throws {
        try await Self.withHost(limits: Self.limits { $0.headSecondsMax = 0.5 }, Self.kinds) {
            (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            let start = ContinuousClock.now
            var reply = ""
            try socket.send(Array("GET / HTTP/1.1\r\nX: ".utf8))
            while !socket.isReadable(within: 50) { try? socket.send([120]) }
            reply = String(decoding: (try? socket.receiveToEnd()) ?? [], as: UTF8.self)
            #expect(reply.hasPrefix("HTTP/1.1 408"))
            #expect(ContinuousClock.now - start >= .milliseconds(500))
            // Who has sent nothing is not told anything.
            #expect(try TestSocket.connect(port: port).receiveToEnd().isEmpty)
        }
    }

    @Test func anIdleConnectionIsClosed() async throws {
        try await Self.withHost(limits: Self.limits { $0.idleSecondsMax = 0.3 }, Self.kinds) {
            (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET /none HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            let start = ContinuousClock.now
            #expect(try !socket.receiveToEnd().isEmpty)
            #expect(ContinuousClock.now - start >= .milliseconds(250))
        }
    }

    /// However long it takes: a phone's upload takes as long as its network makes it.
    @Test func aSlowBodyArrivesAsLongAsItGetsOn() async throws {
        let limits = Self.limits {
            $0.bodyWindowSeconds = 1
            $0.bodyBytesPerSecondMin = 10
        }
        try await Self.withHost(
            limits: limits,
            { _, body in
                do throws(HTTPServer.BodyFailure) { return Self.ok(.text("\(try await body().count)")) } catch {
                    if case .tooSlow = error {
                        return HTTPServer.Answer(HTTPResponse(status: .requestTimeout), .text(""))
                    }
                    return HTTPServer.Answer(HTTPResponse(status: .badRequest), .text(""))
                }
            }
        ) { (port: Int) throws -> Void in
            let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 400\r\n\r\n"
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array(head.utf8))
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
        try await Self.withHost(Self.kinds) { (port: Int) throws -> Void in
            let peer = HTTPPeer(port: port)
            _ = try peer.ask("GET", "/short")
            // The host's end of the connection is among this process's descriptors.
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

    @Test func aNewcomerTakesTheSlotOfTheIdlestThatHasNotAuthenticated() async throws {
        try await Self.withHost(limits: Self.limits { $0.connectionsMax = 4 }) { request, exchange in
            if request.path == "/known" { exchange.recordAuthentication() }
            return Self.ok(.text("here"))
        } _: { (port: Int) throws -> Void in
            let known = HTTPPeer(port: port)
            #expect(try known.ask("GET", "/known").body == "here")
            var strangers: [TestSocket] = []
            for _ in 0..<20 {
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\n".utf8))
                strangers.append(socket)
                #expect(try HTTPPeer(port: port).ask("GET", "/").body == "here")
            }
            // The first of them had to go, the one that is known did not.
            #expect(strangers[0].receiveToFailure().bytes == 0)
            #expect(try known.ask("GET", "/known").body == "here")
        }
    }

    @Test func aNewcomerIsRefusedWhenAllOthersAreKnownAndBusy() async throws {
        let gate = Gate()
        try await Self.withHost(limits: Self.limits { $0.connectionsMax = 2 }) { _, exchange in
            exchange.recordAuthentication()
            await gate.wait()
            return Self.ok(.text("held"))
        } _: { (port: Int) throws -> Void in
            let busy = try (0..<2).map { _ in
                let socket = try TestSocket.connect(port: port)
                try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".utf8))
                return socket
            }
            while gate.count < 2 { Thread.sleep(forTimeInterval: 0.01) }
            #expect(try HTTPPeer(port: port).ask("GET", "/").status == 503)
            gate.open()
            for socket in busy {
                #expect(String(decoding: try socket.receiveToEnd(), as: UTF8.self).hasSuffix("held"))
            }
        }
    }

    // MARK: Ends

    @Test func aHandlerIsCancelledWhenItsClientHasGone() async throws {
        let (begun, cancelled) = (Flag(), Flag())
        try await Self.withHost { _, _ in
            begun.set()
            do { try await Task.sleep(for: .seconds(300)) } catch { cancelled.set() }
            return Self.ok(.text(""))
        } _: { (port: Int) throws -> Void in
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            while !begun.isSet { Thread.sleep(forTimeInterval: 0.01) }
            socket.reset()
            let deadline = ContinuousClock.now + .seconds(60)
            while !cancelled.isSet && ContinuousClock.now < deadline { Thread.sleep(forTimeInterval: 0.01) }
            #expect(cancelled.isSet)
        }
    }

    @Test func stoppingWaitsForNoHandler() async throws {
        let gate = Gate()
        let host = try await HTTPServer.start(host: "127.0.0.1", port: 0, limits: .init()) { _, _ in
            await gate.wait()
            return Self.ok(.text(""))
        }
        let port = host.port
        let socket = try await blocking {
            let socket = try TestSocket.connect(port: port)
            try socket.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            while gate.count < 1 { Thread.sleep(forTimeInterval: 0.01) }
            return socket
        }
        // Would never be over.
        await host.stop()
        #expect(socket.receiveToFailure().bytes == 0)
        gate.open()
    }
}

/// Counts from several threads.
private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .relaxed) }

    func add() { count.add(1, ordering: .relaxed) }
}

/// Says yes so many times.
private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    func next() -> Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }
}

/// Holds whoever comes, cancelled or not, until it is opened.
private final class Gate: Sendable {
    private let state = Mutex<(waiting: [CheckedContinuation<Void, Never>], isOpen: Bool)>(([], false))

    var count: Int { state.withLock { $0.waiting.count } }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
