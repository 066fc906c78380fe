import Determinism
import Foundation
import HTTPSockets
import HTTPTypes
import NIOCore
import TestSupport
import Testing
import Wire

/// Random conversations with the HTTP server over a socket and with the pure machine: the bytes of the responses and
/// the ends of the connections must be equal.
@Suite(.tags(.services), .timeLimit(.minutes(10))) struct HTTPServerDifferentialTests {
    @Test func serverAndMachineGiveEqualResponses() async throws {
        var limits = HTTPServer.Limits()
        limits.bodyBytesMax = TestHandler.bodyBytesMax
        limits.headerBytesMax = 4 << 10
        limits.lingerSecondsMax = 120
        let server = try await HTTPServer.start(
            host: "127.0.0.1", port: 0, limits: limits, defaultHeaders: TestHandler.defaultHeaders,
            respond: TestHandler.respond)
        let (port, connectionLimits) = (server.port, limits.connection)
        let differences = try await blocking {
            var differences: [String] = []
            for seed in randomSeeds(150, soak: 2000) where differences.count < 10 {
                var writer = ConversationGenerator(seed: seed)
                let conversation = writer.conversation()
                var model = ModelConnection(connectionLimits, seed: seed)
                let expected = model.run(conversation)
                if let difference = try Peer(port: port).difference(conversation, expected) {
                    differences.append("seed \(seed): \(difference)")
                }
            }
            return differences
        }
        await server.stop()
        #expect(differences.isEmpty, "\(differences.joined(separator: "\n"))")
    }
}

// MARK: The handler

/// A handler with a response of each kind, by path, for the server and for the machine.
private enum TestHandler {
    static let bodyBytesMax = 100_000
    static let defaultHeaders: HTTPFields = [.server: "test", .cacheControl: "no-store"]
    private static let long = String(repeating: "l", count: 150_000)

    enum Content {
        case text(String)
        case parts([String], isFailing: Bool)
        case omitted(Int?)
        case close
    }

    static func isPath(_ request: HTTPRequest, _ path: String) -> Bool { request.path?.hasPrefix(path) ?? false }

    static func readsBody(_ request: HTTPRequest) -> Bool { !isPath(request, "/unread") }

    static func bytesMax(_ request: HTTPRequest) -> Int? { isPath(request, "/small") ? 10 : nil }

    static func content(
        _ request: HTTPRequest, _ body: Result<[UInt8], HTTPServer.BodyError>?
    ) -> (HTTPResponse, Content) {
        var head = HTTPResponse(status: .ok, headerFields: [.contentType: "text/plain", .contentLength: "1"])
        switch body {
        case .failure(.tooLarge): return (HTTPResponse(status: .contentTooLarge), .text("too large"))
        case .failure(.malformed(let reason)): return (HTTPResponse(status: .badRequest), .text(reason))
        case .failure(let error): return (HTTPResponse(status: .requestTimeout), .text("\(error)"))
        case .success, nil: break
        }
        if isPath(request, "/long") { return (head, .text(long)) }
        if isPath(request, "/pieces") { return (head, .parts(["one", "", "two", long], isFailing: false)) }
        if isPath(request, "/fail") { return (head, .parts(["one", "two"], isFailing: true)) }
        if isPath(request, "/omitted") { return (head, .omitted(7)) }
        if isPath(request, "/unknown") { return (head, .omitted(nil)) }
        if isPath(request, "/close") { return (head, .close) }
        if isPath(request, "/204") { head.status = .noContent }
        if isPath(request, "/304") { head.status = .notModified }
        if isPath(request, "/unread") { head.status = .forbidden }
        let bytes = (try? body?.get()) ?? []
        let sum = bytes.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
        let fields = request.headerFields.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        return (
            head,
            .text(
                "\(request.method) \(request.path ?? "-") \(request.authority ?? "-") \(bytes.count) \(sum) \(fields)")
        )
    }

    @Sendable static func respond(
        to request: HTTPRequest, _ exchange: HTTPServer.Exchange
    ) async -> HTTPServer.Response {
        var body: Result<[UInt8], HTTPServer.BodyError>?
        if readsBody(request) {
            do throws(HTTPServer.BodyError) {
                body = .success(try await exchange.readBody(bytesMax: bytesMax(request)))
            } catch {
                body = .failure(error)
            }
        }
        let (head, content) = content(request, body)
        switch content {
        case .text(let text): return HTTPServer.Response(head, .text(text))
        case .omitted(let length): return HTTPServer.Response(head, .omitted(length: length))
        case .close: return HTTPServer.Response(head, .closeConnection)
        case .parts(let parts, let isFailing):
            let source = PartSource(parts, isFailing: isFailing)
            return HTTPServer.Response(head, .stream { try await source.next() })
        }
    }
}

/// The parts of a body, of which the last may be an error.
private actor PartSource {
    private struct PartError: Error {}
    private var parts: ArraySlice<String>
    private let isFailing: Bool

    init(_ parts: [String], isFailing: Bool) {
        self.parts = parts[...]
        self.isFailing = isFailing
    }

    func next() throws -> String? {
        if let part = parts.popFirst() { return part }
        if isFailing { throw PartError() }
        return nil
    }
}

// MARK: The machine

/// How the server has ended a connection.
private enum ConnectionEnd: Equatable {
    /// It has not.
    case none
    /// FIN after the last response.
    case fin
    /// FIN or RST, without a complete last response.
    case aborted
}

/// The output of a conversation with the machine.
private struct Expectation {
    /// The number of bytes sent by the server after each step.
    var bytesAfterStep: [Int] = []
    var output: [UInt8] = []
    var end = ConnectionEnd.none
    /// The number of bytes after a probe request; `nil` if the server would not read one.
    var bytesAfterProbe: Int?
    /// The same after the client's FIN.
    var outputAfterEnd: [UInt8] = []
    var endAfterEnd = ConnectionEnd.none
}

/// The machine with the test's handler and a peer in memory.
private struct ModelConnection {
    private var machine: HTTPServerMachine
    private var generator: SeededGenerator
    private var output: [UInt8] = []
    private var end = ConnectionEnd.none
    private var inbox = ByteBuffer()
    private var request: HTTPServerRequest?
    private var parts: ArraySlice<String> = []
    private var isFailing = false
    private var now = Instant.start

    init(_ limits: HTTPServerLimits, seed: UInt64) {
        machine = HTTPServerMachine(limits: limits, defaultHeaders: TestHandler.defaultHeaders, at: .start)
        machine.unixTime = 0
        generator = SeededGenerator(seed: seed ^ 0xABCD)
    }

    mutating func run(_ conversation: Conversation) -> Expectation {
        var expectation = Expectation()
        for step in conversation.steps {
            deliver(step.bytes, isWhole: step.isWhole)
            expectation.bytesAfterStep.append(output.count)
        }
        (expectation.output, expectation.end) = (output, end)
        if end == .none && !conversation.isClosedEarly && Conversation.canProbe(machine) {
            deliver(Conversation.probe, isWhole: true)
            expectation.bytesAfterProbe = output.count
        }
        machine.inputEnded(at: now)
        drain()
        (expectation.outputAfterEnd, expectation.endAfterEnd) = (output, end)
        return expectation
    }

    private mutating func deliver(_ bytes: [UInt8], isWhole: Bool) {
        inbox.writeBytes(bytes)
        while machine.wantsInput, inbox.readableBytes > 0 {
            let size = isWhole ? 16 << 10 : Int.random(in: 1...(16 << 10), using: &generator)
            guard let piece = inbox.readSlice(length: min(size, inbox.readableBytes)) else { return }
            machine.received(piece, at: now)
            drain()
        }
    }

    private mutating func drain() {
        while let action = machine.takeAction() {
            now = now + .microseconds(1)
            switch action {
            case .request(let request):
                self.request = request
                if TestHandler.readsBody(request.request) {
                    machine.readBody(bytesMax: TestHandler.bytesMax(request.request), at: now)
                } else {
                    respond(nil)
                }
            case .bodyGrew, .responseWritten: break
            case .body(let result): respond(result)
            case .write(let bytes):
                output += bytes.readableBytesView
                machine.written(bytes.readableBytes, at: now)
            case .producePart:
                if let part = parts.popFirst() {
                    machine.sendPart(part, at: now)
                } else if isFailing {
                    machine.abort(at: now)
                } else {
                    machine.endParts(at: now)
                }
            case .closeOutput: end = .fin
            case .close: if end == .none { end = machineClosed() }
            case .abort: end = .aborted
            }
        }
    }

    /// A close during a request has no response, so the kernel may send a RST.
    private func machineClosed() -> ConnectionEnd { request == nil ? .fin : .aborted }

    private mutating func respond(_ body: Result<[UInt8], HTTPServerBodyError>?) {
        guard let request = request?.request else { return }
        self.request = nil
        let (head, content) = TestHandler.content(request, body)
        switch content {
        case .text(let text): machine.respond(head, .text(text), at: now)
        case .omitted(let length): machine.respond(head, .omitted(length: length), at: now)
        case .close:
            machine.close(at: now)
            end = .aborted
        case .parts(let parts, let isFailing):
            (self.parts, self.isFailing) = (parts[...], isFailing)
            machine.respond(head, .parts, at: now)
        }
    }
}

// MARK: The socket

/// The client of a conversation over a socket.
private struct Peer {
    private let socket: TestSocket

    init(port: Int) throws { socket = try TestSocket.connect(port: port) }

    /// Runs a conversation; returns the difference from what the machine has sent, `nil` if there is none.
    func difference(_ conversation: Conversation, _ expected: Expectation) throws -> String? {
        var received: [UInt8] = []
        for (step, count) in zip(conversation.steps, expected.bytesAfterStep) {
            do { try socket.send(step.bytes) } catch {
                // The server has aborted the connection.
                if expected.end != .aborted { return "cannot send: \(error)" }
            }
            if step.isWaiting, expected.end != .aborted {
                received += try socket.receive(exactly: count - received.count)
            }
        }
        if conversation.isClosedEarly {
            socket.finish()
        } else if expected.end == .none {
            received += try socket.receive(exactly: expected.output.count - received.count)
            if socket.isReadable(within: 0) { return "more than \(expected.output.count) bytes before the end" }
            if let count = expected.bytesAfterProbe {
                try socket.send(Conversation.probe)
                received += try socket.receive(exactly: count - received.count)
            }
            socket.finish()
        }
        var hasFailed = false
        do {
            while true {
                let piece = try socket.receive()
                if piece.isEmpty { break }
                received += piece
            }
        } catch {
            hasFailed = true
        }
        // A client that has closed its side early gets `Connection: close` if the server knows it in time.
        let (actual, wanted) = (
            masked(received, isClosedEarly: conversation.isClosedEarly),
            masked(expected.outputAfterEnd, isClosedEarly: conversation.isClosedEarly)
        )
        let difference = "\(shown(actual, without: wanted)) instead of \(shown(wanted, without: actual))"
        if expected.endAfterEnd == .aborted { return wanted.hasPrefix(actual) ? nil : difference }
        if hasFailed { return "RST instead of FIN" }
        return actual == wanted ? nil : difference
    }

    /// Returns the beginning of a text after the part that it has in common with another.
    private func shown(_ text: String, without other: String) -> String {
        let common = zip(text.utf8, other.utf8).prefix { $0 == $1 }.count
        return String(reflecting: String(decoding: text.utf8.dropFirst(common).prefix(150), as: UTF8.self))
    }

    private func masked(_ bytes: [UInt8], isClosedEarly: Bool) -> String {
        var pieces = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\nDate: ")
        for index in pieces.indices.dropFirst() { pieces[index] = String(pieces[index].dropFirst(29)) }
        if isClosedEarly, let last = pieces.popLast() {
            pieces.append(
                last.replacingOccurrences(of: "\r\nConnection: close\r\n", with: "\r\n")
                    .replacingOccurrences(of: "\r\nConnection: keep-alive\r\n", with: "\r\n"))
        }
        return pieces.joined(separator: "\r\nDate: -")
    }
}
