import Determinism
import NIOCore
import Testing

@testable import Wire

/// A driver of an ``HTTPClientMachine`` in virtual time that records the machine's actions as text.
final class HTTPClientDriver {
    var machine: HTTPClientMachine
    var now = Instant.start
    var log: [String] = []
    var written: [Int: ByteBuffer] = [:]
    /// The sizes of the writes of each connection.
    var pieces: [Int: [Int]] = [:]
    /// The number of bytes that the kernel has accepted on each connection.
    var accepted: [Int: Int] = [:]
    var responses: [Int: HTTPClientResponse] = [:]
    var errors: [Int: HTTPClientError] = [:]
    /// Whether the kernel accepts each write at once.
    var acceptsAll = true

    init(connectionsMax: Int = 1, waitingMax: Int = 1_000, bodyMax: Int = 16 << 20) {
        machine = HTTPClientMachine(
            host: "h", connectionsMax: connectionsMax, waitingMax: waitingMax, bodyMax: bodyMax)
    }

    @discardableResult
    func start(
        _ method: String = "GET", _ target: String = "/", body: [UInt8] = [], pool: Int = 0,
        fields: [(name: String, value: String)] = [], isStreamed: Bool = false
    ) -> HTTPExchangeID {
        let id = machine.start(
            HTTPClientRequest(method: method, target: target, fields: fields, body: body, isStreamed: isStreamed),
            pool: pool, at: now)
        drain()
        return id
    }

    func drain() {
        while let action = machine.takeAction() {
            switch action {
            case .connect(let id): log.append("connect \(id.number)")
            case .write(let id, let bytes):
                log.append("write \(id.number)")
                written[id.number, default: ByteBuffer()].writeImmutableBuffer(bytes)
                pieces[id.number, default: []].append(bytes.readableBytes)
                guard acceptsAll else { continue }
                accepted[id.number, default: 0] += bytes.readableBytes
                machine.written(bytes.readableBytes, on: id, at: now)
            case .close(let id, let isAbortive): log.append("close \(id.number)\(isAbortive ? "!" : "")")
            case .piece(let id, let head, let bytes):
                log.append("\(id.number): \(head.status) piece \(String(buffer: bytes))")
            case .finished(let id, .success(let response)):
                responses[id.number] = response
                log.append("\(id.number): \(response.head.status) \(String(decoding: response.body, as: UTF8.self))")
            case .finished(let id, .failure(let error)):
                errors[id.number] = error
                log.append("\(id.number): \(error), \(error.phase)\(error.wasReused ? ", reused" : "")")
            }
        }
    }

    func up(_ number: Int) { feed { $0.connected(HTTPConnectionID(number: number), at: now) } }

    func refused(_ number: Int) {
        feed { $0.connectFailed(HTTPConnectionID(number: number), reason: .refused, at: now) }
    }

    /// The bytes written on a connection that the kernel has not accepted.
    func outstanding(_ number: Int) -> Int { (written[number]?.readableBytes ?? 0) - (accepted[number] ?? 0) }

    func accept(_ number: Int, _ count: Int) {
        accepted[number, default: 0] += count
        feed { $0.written(count, on: HTTPConnectionID(number: number), at: now) }
    }

    /// Accepts all bytes of the request.
    func acceptAll(_ number: Int) { while outstanding(number) > 0 { accept(number, outstanding(number)) } }

    func bytes(_ number: Int, _ text: String) {
        feed { $0.received(ByteBuffer(string: text), on: HTTPConnectionID(number: number), at: now) }
    }

    func bytes(_ number: Int, count: Int) { bytes(number, String(repeating: "x", count: count)) }

    func closed(_ number: Int, _ how: HTTPCloseReason = .fin) {
        feed { $0.closed(HTTPConnectionID(number: number), how: how, at: now) }
    }

    func feed(_ body: (inout HTTPClientMachine) -> Void) {
        body(&machine)
        drain()
    }

    /// Advances the time, with a stop at each deadline, as a driver's timer does.
    func pass(_ time: Nanoseconds) {
        let end = now + time
        var stops = 0
        while let deadline = machine.nextDeadline, deadline <= end {
            now = max(now, deadline)
            feed { $0.advance(to: now) }
            stops += 1
            guard stops < 100_000 else {
                Issue.record("the deadline does not move")
                return
            }
        }
        now = end
    }

    func pass(_ seconds: Int64) { pass(.seconds(seconds)) }
}
