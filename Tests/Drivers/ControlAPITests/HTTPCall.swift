import ControlAPI
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix
import TestSupport
import Testing
import Wire

extension HTTPReply {
    var json: JSONValue? { JSONText.parse(Array(body.utf8)) }

    /// The text of an error whose body has the status of the response.
    var error: String? {
        guard let object = json?.object, object["status"] == .integer(Int64(status)) else { return nil }
        return object["error"]?.text
    }
}

/// Calls of an API over plain sockets.
struct HTTPCall {
    typealias Response = HTTPReply

    let port: Int

    /// Sends a request on a connection of its own and reads the response.
    func callAsFunction(
        _ method: String, _ path: String, _ body: String? = nil, headers: [String] = []
    ) async throws -> Response {
        var lines = ["\(method) \(path) HTTP/1.1", "Connection: close"]
        if !headers.contains(where: { $0.hasPrefix("Host:") }) { lines.append("Host: 127.0.0.1:\(port)") }
        if let body, !headers.contains(where: { $0.hasPrefix("Transfer-Encoding") }) {
            lines.append("Content-Length: \(body.utf8.count)")
        }
        return try await raw((lines + headers).joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
    }

    func raw(_ text: String) async throws -> Response {
        let port = port
        return try await blocking { try HTTPPeer(port: port).raw(text) }
    }

    /// Creates a proxy and returns its port.
    func proxy(_ name: String = "p", to upstream: Int, listen: Int = 0, _ more: String = "") async throws -> Int {
        let response = try await self(
            "POST", "/proxies",
            #"{"name":"\#(name)","listen":"127.0.0.1:\#(listen)","upstream":"127.0.0.1:\#(upstream)"\#(more)}"#)
        #expect(response.status == 201, "\(response.body)")
        let listen = try #require(response.json?.object?["listen"]?.text)
        return try #require(listen.split(separator: ":").last.flatMap { Int($0) })
    }
}

/// Runs `body` with a server.
func withServer(
    seed: UInt64 = 1, limits: ServerLimits = ServerLimits(), metrics: API.MetricsSelection? = nil, token: String? = nil,
    allowedHosts: [String] = [], on group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    _ body: (HTTPCall, API) async throws -> Void
) async throws {
    let api = API(
        seed: seed, limits: limits, metrics: metrics, version: "test", on: group)
    let server = try await APIServer.start(
        api, host: "127.0.0.1", port: 0,
        requestGuard: RequestGuard(boundTo: "127.0.0.1", token: token, allowedHosts: allowedHosts))
    do {
        try await body(HTTPCall(port: server.port), api)
    } catch {
        await server.stop()
        await api.close()
        throw error
    }
    await server.stop()
    await api.close()
}

/// An upstream that serves each connection on a thread of its own.
final class Upstream: Sendable {
    let port: Int
    private let listener: TestSocket

    init(_ serve: @escaping @Sendable (TestSocket) throws -> Void) throws {
        let (listener, port) = try TestSocket.listen()
        self.listener = listener
        self.port = port
        Thread.detachNewThread { [weak listener] in
            // An accept times out after a minute.
            while let current = listener {
                guard let socket = try? current.accept() else { continue }
                Thread.detachNewThread { try? serve(socket) }
            }
        }
    }

    /// Sends everything back.
    static func echo() throws -> Upstream {
        try Upstream { socket in
            while true {
                do {
                    let bytes = try socket.receive()
                    if bytes.isEmpty { return }
                    try socket.send(bytes)
                } catch let failure as TestSocket.Failure where failure.code == EAGAIN {
                    // A read times out too, and the client may only be slow.
                }
            }
        }
    }
}
