import Determinism
import Foundation
import HTTPServing
import HTTPTypes
import HTTPWire
import NIOCore
import TestSupport
import Testing

/// Random conversations with the HTTP server over a socket and with the pure machine: the bytes of the responses and
/// the ends of the connections must be equal.
@Suite(.timeLimit(.minutes(10))) struct HTTPServerDifferentialTests {
    /// The number of conversations.
    private static let rounds: UInt64 = 2000

    @Test func serverAndMachineGiveEqualResponses() async throws {
        var limits = HTTPServer.Limits()
        limits.bodyBytesMax = TestHandler.bodyBytesMax
        limits.headerBytesMax = 4 << 10
        limits.lingerSecondsMax = 120
        var machineLimits = HTTPServerLimits()
        machineLimits.bodyBytesMax = limits.bodyBytesMax
        machineLimits.headerBytesMax = limits.headerBytesMax
        machineLimits.lingerSecondsMax = limits.lingerSecondsMax
        let server = try await HTTPServer.start(
            host: "127.0.0.1", port: 0, limits: limits, defaultHeaders: TestHandler.defaultHeaders,
            respond: TestHandler.respond)
        let (port, sharedLimits) = (server.port, machineLimits)
        let differences = try await blocking {
            var differences: [String] = []
            for seed in 0..<Self.rounds where differences.count < 1000 {
                var writer = ConversationGenerator(seed: seed)
                let conversation = writer.conversation()
                var model = ModelConnection(sharedLimits, seed: seed)
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
        let (head, content) = TestHandler.content(request, body.map { $0.mapError(HTTPServer.BodyError.init) })
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

extension HTTPServer.BodyError {
    fileprivate init(_ error: HTTPServerBodyError) {
        switch error {
        case .tooLarge: self = .tooLarge
        case .tooSlow: self = .tooSlow
        case .budgetExceeded: self = .budgetExceeded
        case .malformed(let reason): self = .malformed(reason)
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

// MARK: Conversations

/// What a client sends on one connection.
private struct Conversation {
    struct Step {
        var bytes: [UInt8]
        /// Whether the server reads all of it at once.
        var isWhole = false
        /// Whether the client waits for the responses before it goes on.
        var isWaiting = false
    }

    var steps: [Step] = []
    /// Whether the client sends FIN without waiting for responses.
    var isClosedEarly = false

    static let probe = Array("GET /probe HTTP/1.1\r\nHost: probe\r\n\r\n".utf8)

    /// Returns whether a server is between two requests.
    static func canProbe(_ machine: HTTPServerMachine) -> Bool {
        !machine.isHandling && !machine.isClosed && !machine.hasBufferedInput
    }
}

/// A generator of random conversations.
private struct ConversationGenerator {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }
    private mutating func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(0...elements.count - 1)] }

    private mutating func word(_ length: ClosedRange<Int>) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789-_")
        return String((0..<number(length)).map { _ in pick(letters) })
    }

    mutating func conversation() -> Conversation {
        var conversation = Conversation()
        conversation.isClosedEarly = chance(20)
        var pending: [UInt8] = []
        for _ in 0..<number(1...6) {
            switch number(1...100) {
            case ...60: pending += valid(allowsExpect: !conversation.isClosedEarly)
            case ...72: pending += mutated(valid(allowsExpect: !conversation.isClosedEarly))
            case ...84: pending += odd()
            case ...88: pending += (0..<number(1...80)).map { _ in UInt8(number(0...255)) }
            default:
                if conversation.isClosedEarly { continue }
                flush(&pending, into: &conversation, isLastWaiting: true)
                conversation.steps += unread()
            }
        }
        // Sometimes the last message is incomplete.
        if chance(15), !pending.isEmpty { pending.removeLast(number(1...pending.count)) }
        flush(&pending, into: &conversation, isLastWaiting: false)
        return conversation
    }

    /// Appends bytes as steps, cut at random places.
    private mutating func flush(_ bytes: inout [UInt8], into conversation: inout Conversation, isLastWaiting: Bool) {
        var rest = bytes[...]
        bytes = []
        let cuts = number(0...5)
        for _ in 0..<cuts where rest.count > 1 {
            let count = chance(50) ? number(1...min(rest.count - 1, 40)) : number(1...rest.count - 1)
            let isWaiting = !conversation.isClosedEarly && chance(30)
            conversation.steps.append(.init(bytes: Array(rest.prefix(count)), isWaiting: isWaiting))
            rest = rest.dropFirst(count)
        }
        conversation.steps.append(.init(bytes: Array(rest), isWaiting: isLastWaiting))
    }

    // MARK: Messages

    private mutating func headers() -> String {
        (0..<number(0...3)).map { _ in
            "X-\(word(1...8)):\(pick([" ", "", "  ", "\t"]))\(pick([word(0...12), "a b", "é", "\u{1F600}x"]))\(pick(["", " "]))\r\n"
        }.joined()
    }

    private mutating func path() -> String {
        let path = pick([
            "/", "/echo", "/echo?q=1", "/204", "/304", "/pieces", "/omitted", "/unknown", "/é%20", "http://other:1/x",
            "http://other?x", "*", "/echo", "/echo",
        ])
        if chance(4) { return pick(["/long", "/fail", "/close"]) }
        return path
    }

    /// A request with a body that the handler reads.
    private mutating func valid(allowsExpect: Bool) -> [UInt8] {
        let method = pick(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "x-y"])
        let isOld = chance(12)
        var fields = headers()
        if !isOld || chance(50) {
            fields += "\(pick(["Host", "host", "HOST"])): \(pick(["h", "h:80", "", "[::1]:80"]))\r\n"
        }
        if chance(12) {
            fields += "Connection: \(pick(["close", "Close", "keep-alive", "x, close", "Keep-Alive, x"]))\r\n"
        }
        var body: [UInt8] = []
        if ["POST", "PUT", "x-y"].contains(method) || chance(5) {
            if chance(50) || isOld {
                body = (0..<number(0...pick([5, 300, 6000]))).map { _ in UInt8(number(0...255)) }
                fields += "Content-Length: \(body.count)\r\n"
            } else {
                fields += "Transfer-Encoding: \(pick(["chunked", "Chunked"]))\r\n"
                body = chunks(number(0...4), size: pick([5, 300, 3000]))
            }
            if allowsExpect, chance(15) { fields += "Expect: 100-Continue\r\n" }
        }
        let line = "\(method) \(path()) HTTP/1.\(isOld ? 0 : 1)\r\n"
        return (chance(5) ? [13, 10] : []) + Array((line + fields + "\r\n").utf8) + body
    }

    private mutating func chunks(_ count: Int, size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<count {
            let chunk = (0..<number(1...size)).map { _ in UInt8(number(0...255)) }
            let digits = String(chunk.count, radix: 16, uppercase: chance(50))
            bytes +=
                Array("\(pick(["", "", "00"]))\(digits)\(pick(["", "", ";x=y", " ;z"]))\r\n".utf8) + chunk + [13, 10]
        }
        return bytes + Array("0\r\n\(chance(20) ? "X-After: \(word(1...5))\r\n" : "")\r\n".utf8)
    }

    /// A request whose body the handler does not read, or not to its end. Whether such a body has arrived when the
    /// response begins decides about the connection, so it arrives at once, or never completely.
    private mutating func unread() -> [Conversation.Step] {
        let expect = chance(30) ? "Expect: 100-continue\r\n" : ""
        func head(_ path: String, _ framing: String) -> [UInt8] {
            Array("POST \(path) HTTP/1.1\r\nHost: h\r\n\(expect)\(framing)\r\n\r\n".utf8)
        }
        let size = number(1...200)
        let body = [UInt8](repeating: 120, count: size)
        switch number(0...6) {
        case 0, 1:
            let path = size <= 10 ? "/unread" : pick(["/unread", "/small"])
            return [.init(bytes: head(path, "Content-Length: \(size)") + body, isWhole: true, isWaiting: true)]
        case 2:
            let arrived = body.prefix(number(0...size - 1))
            return [
                .init(bytes: head("/unread", "Content-Length: \(size)") + arrived, isWhole: true, isWaiting: true),
                .init(bytes: Array(body.dropFirst(arrived.count))),
            ]
        case 3:
            let bytes = head(pick(["/unread", "/echo", "/small"]), "Content-Length: 300000")
            return [.init(bytes: bytes + [UInt8](repeating: 120, count: 300_000))]
        case 4:
            let path = chance(50) ? "/small" : "/unread"
            let bytes = head(path, "Transfer-Encoding: chunked") + Array("b\r\n0123456789a\r\n0\r\n\r\n".utf8)
            return [.init(bytes: bytes, isWhole: true, isWaiting: true)]
        case 5:
            let bytes = head("/echo", "Transfer-Encoding: chunked") + chunks(60, size: 6000)
            return [.init(bytes: bytes)]
        default:
            let bytes = head("/small", "Transfer-Encoding: chunked") + Array("5\r\n01234\r\n0\r\n\r\n".utf8)
            return [.init(bytes: bytes, isWhole: true, isWaiting: true)]
        }
    }

    private mutating func mutated(_ message: [UInt8]) -> [UInt8] {
        var bytes = message
        for _ in 0..<number(1...3) where bytes.count > 1 {
            // Most errors are in the head.
            let index = number(0...min(bytes.count, chance(70) ? 60 : bytes.count) - 1)
            let byte = pick([UInt8(number(0...255)), 13, 10, 32, 9, 0, 58, 44, 48, 57, 127, 128])
            switch number(0...2) {
            case 0: bytes[index] = byte
            case 1: bytes.insert(byte, at: index)
            default: bytes.remove(at: index)
            }
        }
        return bytes
    }

    private mutating func odd() -> [UInt8] {
        let host = "Host: h\r\n"
        let long = String(repeating: "x", count: number(1900...2100))
        let accented = String(repeating: "é", count: number(500...524))
        let texts = [
            "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\(host)\(host)\r\n", "GET / HTTP/1.0\r\n\(host)\(host)\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: é\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\n\(host)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            "POST / HTTP/1.1\r\n\(host)Content-Length: \(pick(["-1", "+1", "0x1", "1, 1", "", "9999999999999999999"]))\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Content-Length: 999999999999999999\r\n\r\nabc",
            "GET / HTTP/2.0\r\n\(host)\r\n", "GET / HTTP/1.2\r\n\(host)\r\n", "GET /\r\n\r\n", "get / http/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1 \r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host) folded\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)X: a\u{0}b\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)no colon\r\n\r\n", "GET / HTTP/1.1\r\n\(host): empty\r\n\r\n",
            "GET /\(long) HTTP/1.1\r\n\(host)\r\n", "GET / HTTP/1.1\r\n\(host)X: \(long)\(long)\r\n\r\n",
            "GET / HTTP/1.1\r\n\(host)X: \(accented)\r\n\r\n", "GET /\(accented) HTTP/1.1\r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)" + String(repeating: "X: y\r\n", count: number(97...101)) + "\r\n",
            String(repeating: "\r\n", count: number(3...6)) + "GET / HTTP/1.1\r\n\(host)\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n\(pick(["g", "-1", "", "1 x", "fffffffffffffffff"]))\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n1;\(long)\r\n",
            "CONNECT h:443 HTTP/1.1\r\n\(host)\r\n",
            "GET / HTTP/1.1\r\n\(host)Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}",
            "POST / HTTP/1.1\r\n\(host)Expect: other\r\nContent-Length: 2\r\n\r\nab",
        ]
        return Array(pick(texts).utf8)
    }
}
