import Determinism
import LinkModel
import NIOCore
import TestSupport
import Wire

@testable import Impairment

/// A conversation on one connection, and the bytes of it that precede each fault point of its last exchange.
struct FaultScene {
    struct Message {
        let head: [UInt8]
        let body: [UInt8]
        /// The bytes of the message that have passed at its partial point.
        let part: Int?

        var bytes: [UInt8] { head + body }
    }

    let name: String
    let exchanges: [(request: Message, response: Message)]

    var target: (request: Message, response: Message) { exchanges[exchanges.count - 1] }
    var up: [UInt8] { exchanges.flatMap(\.request.bytes) }
    var down: [UInt8] { exchanges.flatMap(\.response.bytes) }
    /// The bytes before the last exchange.
    var before: PerDirection<Int> {
        PerDirection(up: up.count - target.request.bytes.count, down: down.count - target.response.bytes.count)
    }

    static func head(_ lines: String...) -> [UInt8] {
        Array((lines.filter { !$0.isEmpty } + ["", ""]).joined(separator: "\r\n").utf8)
    }

    static func request(_ method: String, _ path: String, body count: Int) -> Message {
        let head =
            count == 0
            ? head("\(method) \(path) HTTP/1.1", "Host: h")
            : head("\(method) \(path) HTTP/1.1", "Host: h", "Content-Length: \(count)")
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        // Without a body, half of the head.
        return Message(head: head, body: body, part: count == 0 ? head.count / 2 : head.count + count / 2)
    }

    static func response(_ status: Int, body count: Int) -> Message {
        let head = head("HTTP/1.1 \(status) X", "Content-Length: \(count)")
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        return Message(head: head, body: body, part: count == 0 ? nil : head.count + count / 2)
    }

    static func chunked(_ start: String, _ count: Int, chunk: Int) -> Message {
        let head = head(start, start.hasPrefix("HTTP") ? "" : "Host: h", "Transfer-Encoding: chunked")
        var body: [UInt8] = []
        for start in stride(from: 0, to: count, by: chunk) {
            let size = min(chunk, count - start)
            body += Array("\(String(size, radix: 16))\r\n".utf8) + [UInt8](repeating: UInt8(start % 251), count: size)
            body += [13, 10]
        }
        body += Array("0\r\n\r\n".utf8)
        // The first byte of the body follows the line with the size of its chunk.
        let line = "\(String(min(chunk, count), radix: 16))\r\n".utf8.count
        return Message(head: head, body: body, part: head.count + line + 1)
    }

    static let headOnly = FaultScene(
        name: "head only", exchanges: [(request("GET", "/notes/n1", body: 0), response(204, body: 0))])
    static let oneBody = FaultScene(
        name: "one body", exchanges: [(request("PUT", "/notes/n1", body: 120), response(200, body: 200))])
    static let pair = FaultScene(
        name: "pipelined pair",
        exchanges: [
            (request("PUT", "/notes/n0", body: 30), response(201, body: 70)),
            (request("PUT", "/notes/n1", body: 51), response(200, body: 81)),
        ])
    static let smallChunks = FaultScene(
        name: "small chunks",
        exchanges: [
            (chunked("POST /notes/n1 HTTP/1.1", 60, chunk: 7), chunked("HTTP/1.1 200 OK", 250, chunk: 100))
        ])
    static let largeChunks = FaultScene(
        name: "200 kB in chunks",
        exchanges: [
            (chunked("POST /notes/n1 HTTP/1.1", 50_000, chunk: 1000), chunked("HTTP/1.1 200 OK", 200_000, chunk: 4096))
        ])

    // MARK: Points

    /// Returns the bytes of both streams that have been written when a fault fires; `nil` if the exchange does not
    /// reach the point.
    func written(at point: FaultPoint, _ action: FaultAction) -> PerDirection<Int>? {
        switch point {
        case .beforeRequest: before
        case .midRequest: target.request.part.map { PerDirection(up: before.up + $0, down: before.down) }
        case .beforeRequestEnd: PerDirection(up: up.count - (Self.withholdsLastByte(action) ? 1 : 0), down: before.down)
        case .beforeResponse: PerDirection(up: up.count, down: before.down)
        case .afterResponseHead: PerDirection(up: up.count, down: before.down + target.response.head.count)
        case .midResponse: target.response.part.map { PerDirection(up: up.count, down: before.down + $0) }
        case .afterResponse: PerDirection(up: up.count, down: down.count)
        }
    }

    /// Whether the last byte of a request is withheld at `before-request-end`.
    private static func withholdsLastByte(_ action: FaultAction) -> Bool {
        switch action {
        case .reset, .resetStream, .resetConnection, .close, .stall, .delay: true
        case .report(let time): time > .zero
        case .throttle, .respond, .goAway, .limitStreams, .ignorePings, .ping, .blockWindow, .dropTrailers,
            .truncateHeaders:
            false
        }
    }

    /// Returns the offset that the event reports.
    func offset(at point: FaultPoint, _ action: FaultAction) -> Int64? {
        written(at: point, action).map { written in
            switch point {
            case .beforeRequest, .beforeResponse: 0
            case .midRequest, .beforeRequestEnd: Int64(written.up - before.up)
            case .afterResponseHead, .midResponse, .afterResponse: Int64(written.down - before.down)
            }
        }
    }
}

/// A client that sends the requests of a scene, and a server that sends each response when its request is complete.
struct FaultStage {
    enum Pieces: CaseIterable { case whole, random, bytes }

    let scene: FaultScene
    let pieces: Pieces
    /// Whether the client is killed when the fault fires.
    var killsOnFault = false
    /// Whether the kernel of the killed client sends a FIN, not a RST.
    var killsByFIN = false
    var sockets: VirtualSockets
    let id: FlowID
    private var generator: SeededGenerator
    private var responsesSent = 0
    private var isKilled = false

    init(
        _ scene: FaultScene, _ pieces: Pieces, _ conditions: Conditions, _ rules: [FaultRule], isDecided: Bool = false,
        seed: UInt64 = 1, limits: BufferLimits = BufferLimits()
    ) {
        self.scene = scene
        self.pieces = pieces
        generator = SeededGenerator(seed: seed)
        sockets = VirtualSockets(
            conditions, limits: limits,
            exchangeTracking: ExchangeTracking(rules: isDecided ? [] : rules, awaitsDecisions: isDecided))
        if isDecided {
            sockets.decide = { event in
                guard case .requested(_, let head, body: _, subject: _) = event else { return nil }
                return head.target == rules.first?.path ? rules.first : nil
            }
        }
        id = sockets.open()
    }

    private mutating func send(_ bytes: [UInt8], from side: Side) {
        var rest = bytes[...]
        while !rest.isEmpty, !sockets.ended.contains(id), !isGone(side) {
            let size =
                switch pieces {
                case .whole: rest.count
                case .random: Int.random(in: 1...min(rest.count, 9000), using: &generator)
                case .bytes: 1
                }
            sockets.send(Array(rest.prefix(size)), from: side, id)
            rest = rest.dropFirst(size)
            kill()
        }
    }

    private func isGone(_ side: Side) -> Bool {
        let socket = sockets.socket(side, id)
        return socket.gotReset || socket.isClosed || (side == .client && isKilled)
    }

    var fault: (rule: Int, point: FaultPoint, offset: Int64, time: Instant)? {
        for event in sockets.allExchangeEvents {
            if case .faultInjected(_, let rule, let point, let offset) = event.event {
                return (rule, point, offset, event.time)
            }
        }
        return nil
    }

    private mutating func kill() {
        guard killsOnFault, !isKilled, fault != nil else { return }
        isKilled = true
        sockets.report(killsByFIN ? .inputClosed(.client) : .gone(.client), id)
    }

    private mutating func respond() {
        var end = 0
        for (index, exchange) in scene.exchanges.enumerated() {
            end += exchange.request.bytes.count
            guard index >= responsesSent else { continue }
            guard sockets.socket(.server, id).received.count >= end, !isGone(.server) else { return }
            responsesSent += 1
            send(exchange.response.bytes, from: .server)
        }
    }

    /// Sends everything, and runs all deadlines up to a time.
    mutating func run(until time: Instant = .end) {
        if sockets.now == .start { send(scene.up, from: .client) }
        respond()
        while let deadline = sockets.box.link.nextDeadline, deadline <= time {
            sockets.wait(max(deadline, sockets.now) - sockets.now)
            kill()
            respond()
        }
    }

    var client: VirtualSockets.Socket { sockets.socket(.client, id) }
    var server: VirtualSockets.Socket { sockets.socket(.server, id) }
}
