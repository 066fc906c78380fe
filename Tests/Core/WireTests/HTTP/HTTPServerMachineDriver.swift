import Determinism
import HTTPTypes
import NIOCore

@testable import Wire

/// A driver that records the machine's actions as text. It accepts all writes at once, unless it is stalled.
final class HTTPServerMachineDriver {
    var machine: HTTPServerMachine
    var now = Instant.start
    var log: [String] = []
    var output = ""
    var isStalled = false
    var bytesHeld = 0
    /// The number of body bytes after which the driver fails a body.
    var budget = Int.max

    init(
        defaultHeaders: HTTPFields = [:], unixTime: Int64? = nil,
        _ change: (inout HTTPServerLimits) -> Void = { _ in }
    ) {
        var limits = HTTPServerLimits()
        change(&limits)
        machine = HTTPServerMachine(limits: limits, defaultHeaders: defaultHeaders, at: .start)
        machine.unixTime = unixTime
    }

    func feed(_ body: (inout HTTPServerMachine) -> Void) {
        body(&machine)
        drain()
    }

    private func drain() {
        while let action = machine.takeAction() {
            switch action {
            case .request(let request):
                log.append("\(request.request.method) \(request.request.path ?? "")")
            case .bodyGrew(let count):
                budget -= count
                if budget < 0 { machine.failBody(.budgetExceeded, at: now) }
            case .body(.success(let bytes)): log.append("body \(String(decoding: bytes, as: UTF8.self))")
            case .body(.failure(let error)): log.append("no body: \(error)")
            case .write(let bytes):
                output += String(buffer: bytes)
                if isStalled {
                    bytesHeld += bytes.readableBytes
                } else {
                    machine.written(bytes.readableBytes, at: now)
                }
            case .producePart: log.append("part")
            case .responseWritten: log.append("done")
            case .closeOutput: log.append("FIN")
            case .close: log.append("close")
            case .abort: log.append("RST")
            }
        }
    }

    func receive(_ text: String) { feed { $0.received(ByteBuffer(string: text), at: now) } }

    func respond(_ status: HTTPResponse.Status = .ok, _ content: HTTPServerResponseBody = .text("")) {
        feed { $0.respond(HTTPResponse(status: status), content, at: now) }
    }

    func accept() {
        feed {
            $0.written(bytesHeld, at: now)
            bytesHeld = 0
        }
    }

    /// Advances to each deadline up to a time.
    func pass(_ span: Nanoseconds) {
        let end = now + span
        while let next = machine.nextDeadline, next <= end {
            now = max(now, next)
            feed { $0.advance(to: now) }
        }
        now = end
    }

    func pass(seconds: Int64) { pass(.seconds(seconds)) }

    /// Returns the actions since the last call.
    func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    /// Returns the bytes written since the last call.
    func takeOutput() -> String {
        defer { output = "" }
        return output
    }

    // MARK: Messages

    /// A request without a body.
    static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    /// Returns the head of a request with a body.
    static func post(_ length: Int, _ fields: String = "") -> String {
        "POST / HTTP/1.1\r\nHost: h\r\n\(fields)Content-Length: \(length)\r\n\r\n"
    }

    /// Returns a response without a body.
    static func empty(_ status: String, _ connection: String = "close") -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\(connection.isEmpty ? "" : "Connection: \(connection)\r\n")\r\n"
    }
}
