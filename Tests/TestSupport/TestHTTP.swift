import Synchronization

/// An HTTP response.
public struct HTTPReply: Sendable {
    public let status: Int
    /// The status line and the header fields.
    public let head: String
    public let body: String

    /// Returns the first header field of a name.
    public func header(_ name: String) -> String? {
        let prefix = "\(name.lowercased()): "
        return head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(prefix) }
            .map { String($0.dropFirst(prefix.count)) }
    }

    /// Returns all header fields of a name.
    public func headers(_ name: String) -> [String] {
        let prefix = "\(name.lowercased()): "
        return head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix(prefix) }
            .map { String($0.dropFirst(prefix.count)) }
    }

    fileprivate init?(head: String, body: String) {
        guard let status = head.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return nil }
        self.status = status
        self.head = head
        self.body = body
    }
}

/// An invalid response.
public struct HTTPReplyError: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) { self.description = description }
}

/// A blocking HTTP client with one connection and one request at a time.
public final class HTTPPeer: Sendable {
    private let port: Int
    private let connection = Mutex(Connection())

    private struct Connection {
        var socket: TestSocket?
        var received: [UInt8] = []
    }

    /// Creates a client that connects with its first request.
    public init(port: Int) { self.port = port }

    /// Sends a request and returns the response.
    public func ask(
        _ method: String, _ path: String, _ body: String = "", _ fields: [String] = []
    ) throws -> HTTPReply {
        var lines = ["\(method) \(path) HTTP/1.1"]
        if !fields.contains(where: { $0.hasPrefix("Host:") }) { lines.append("Host: 127.0.0.1:\(port)") }
        if !body.isEmpty { lines.append("Content-Length: \(body.utf8.count)") }
        let text = (lines + fields).joined(separator: "\r\n") + "\r\n\r\n" + body
        return try raw(text, isHead: method == "HEAD")
    }

    /// Sends bytes and returns the response.
    public func raw(_ text: String, isHead: Bool = false) throws -> HTTPReply {
        try connection.withLock { connection in
            let socket = try connection.socket ?? TestSocket.connect(port: port)
            connection.socket = socket
            do {
                try socket.send(Array(text.utf8))
                let reply = try Self.read(socket, &connection.received, isHead: isHead)
                if reply.header("Connection") == "close" { connection = Connection() }
                return reply
            } catch {
                connection = Connection()
                throw error
            }
        }
    }

    private static func read(_ socket: TestSocket, _ received: inout [UInt8], isHead: Bool) throws -> HTTPReply {
        func receive() throws {
            let piece = try socket.receive()
            if piece.isEmpty { throw HTTPReplyError(description: "the response ends after \(received.count) bytes") }
            received += piece
        }
        func take(_ count: Int) throws -> [UInt8] {
            while received.count < count { try receive() }
            defer { received.removeFirst(count) }
            return Array(received.prefix(count))
        }
        func takeLine(endingIn end: [UInt8]) throws -> String {
            var searched = 0
            while true {
                if received.count >= end.count {
                    for index in searched...(received.count - end.count)
                    where Array(received[index..<index + end.count]) == end {
                        return String(decoding: try take(index + end.count).dropLast(end.count), as: UTF8.self)
                    }
                    searched = received.count - end.count + 1
                }
                try receive()
            }
        }
        let head = try takeLine(endingIn: Array("\r\n\r\n".utf8))
        guard let bare = HTTPReply(head: head, body: "") else {
            throw HTTPReplyError(description: "invalid response: \(head.prefix(100))")
        }
        var body: [UInt8] = []
        if isHead || bare.status == 204 || bare.status == 304 {
        } else if bare.header("Transfer-Encoding") == "chunked" {
            while let size = Int(try takeLine(endingIn: [13, 10]), radix: 16) {
                body += try take(size)
                _ = try take(2)
                if size == 0 { break }
            }
        } else {
            body = try take(bare.header("Content-Length").flatMap { Int($0) } ?? 0)
        }
        return HTTPReply(head: head, body: String(decoding: body, as: UTF8.self)) ?? bare
    }
}
