import HTTPTypes
import NIOCore
import TestSupport

@testable import Wire

/// A parsed message. The reason phrase is left out: NIO replaces those it knows, and may drop those received in pieces.
struct Message: Equatable, CustomStringConvertible {
    var first = ""
    var headers: [String] = []
    var body: [UInt8] = []
    var trailers: [String] = []
    var isWhole = false

    var description: String { "\(first) \(headers) \(body.count) B \(trailers) \(isWhole)" }
}

extension HTTPParser {
    /// Returns all messages so far; interim responses are messages without a body.
    mutating func messages() throws -> [Message] {
        var found: [Message] = []
        while let part = try takePart() {
            switch part {
            case .requestHead(let head, _):
                found.append(
                    Message(
                        first: "\(head.method) \(head.target) \(head.version)",
                        headers: head.fields.map { "\($0.name): \($0.value)" }))
            case .responseHead(let head, _, _):
                found.append(
                    Message(
                        first: "\(head.version) \(head.status)",
                        headers: head.fields.map { "\($0.name): \($0.value)" }))
            case .body(let bytes, _): found[found.count - 1].body += Array(bytes.readableBytesView)
            case .trailers(let trailers, _):
                found[found.count - 1].trailers = trailers.map { "\($0.name): \($0.value)" }
            case .end: found[found.count - 1].isWhole = true
            case .opaque: break
            }
        }
        return found
    }
}

/// A generator of random messages as bytes.
struct ConversationWriter {
    var generator: SeededGenerator

    mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &generator) }

    mutating func word(_ length: ClosedRange<Int>) -> String {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789-_")
        return String((0..<number(length)).map { _ in letters[number(0...letters.count - 1)] })
    }

    mutating func headers() -> String {
        (0..<number(0...4)).map { _ in
            "X-\(word(1...8)):\([" ", "", "  "][number(0...2)])\(word(0...12))\(["", " "][number(0...1)])\r\n"
        }.joined()
    }

    mutating func body(_ size: Int) -> [UInt8] { (0..<size).map { _ in UInt8(number(0...255)) } }

    /// Returns a body with the header fields that delimit it.
    mutating func framedBody() -> (headers: String, bytes: [UInt8]) {
        switch number(0...2) {
        case 0: return ("", [])
        case 1:
            let bytes = body(number(0...300))
            return ("Content-Length: \(bytes.count)\r\n", bytes)
        default:
            var bytes: [UInt8] = []
            for _ in 0..<number(0...4) {
                let chunk = body(number(1...120))
                let size = String(chunk.count, radix: 16, uppercase: number(0...1) == 0)
                bytes += Array("\(size)\(number(0...5) == 0 ? ";x=y" : "")\r\n".utf8) + chunk + [13, 10]
            }
            let trailer = number(0...3) == 0 ? "X-After: \(word(1...5))\r\n" : ""
            return ("Transfer-Encoding: chunked\r\n", bytes + Array("0\r\n\(trailer)\r\n".utf8))
        }
    }

    mutating func request(_ method: String) -> [UInt8] {
        let framed = ["GET", "HEAD", "DELETE"].contains(method) ? ("", []) : framedBody()
        let fields = headers()
        return Array("\(method) /\(word(0...20)) HTTP/1.1\r\nHost: h\r\n\(fields)\(framed.0)\r\n".utf8) + framed.1
    }

    mutating func response(to method: String) -> [UInt8] {
        let fields = headers()
        switch number(0...6) {
        case 0:
            return Array("HTTP/1.1 100 Continue\r\n\r\n".utf8) + Array("HTTP/1.1 204 No Content\r\n\(fields)\r\n".utf8)
        case 1: return Array("HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\(fields)\r\n".utf8)
        default:
            var framed = framedBody()
            // Without a length the response would last until the connection closes.
            if framed.headers.isEmpty { framed.headers = "Content-Length: 0\r\n" }
            let body = method == "HEAD" ? [] : framed.bytes
            let status = ["200 OK", "404 Not Found", "299 Words here", "599 "][number(0...3)]
            return Array("HTTP/1.1 \(status)\r\n\(fields)\(framed.headers)\r\n".utf8) + body
        }
    }

    /// Returns the bytes in random pieces.
    mutating func pieces(_ bytes: [UInt8]) -> [ByteBuffer] {
        var pieces: [ByteBuffer] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = number(1...max(1, [3, 40, 400][number(0...2)]))
            pieces.append(ByteBuffer(bytes: rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return pieces
    }
}
