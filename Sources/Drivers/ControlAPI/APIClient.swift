internal import Foundation
internal import HTTPTypes
internal import NIOCore
internal import NIOPosix
public import Wire

/// A client of the control API: Slowlane's and Toxiproxy's calls, each on a connection of its own.
public struct APIClient: Sendable {
    private let host: String
    private let port: Int
    private let token: String?
    private let userAgent: String
    /// Called with each warning of a response (the header `Warning`).
    public var onWarning: (@Sendable (String) -> Void)?

    /// The reason why a call failed.
    public enum CallError: Error, CustomStringConvertible {
        /// A failed connection: the call, the address that was tried first and the system's reason.
        case noConnection(method: String, url: String, address: String?, reason: String)
        /// A response with an error status and the server's message.
        case errorResponse(status: Int, reason: String)
        /// A response that does not come from a Slowlane or Toxiproxy server.
        case unreadable(String)

        public var description: String {
            switch self {
            case .noConnection(_, let url, _, let reason):
                "cannot reach a server at http://\(APIClient.authority(of: url)): \(reason); start one with "
                    + "'slowlane server', or give its URL with --host or SLOWLANE_URL"
            case .errorResponse(let status, let reason): "HTTP \(status): \(reason)"
            case .unreadable(let reason): reason
            }
        }
    }

    /// Returns host and port of a URL.
    private static func authority(of url: String) -> Substring {
        url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
    }

    private static let portDefault = 8474
    private static let timeoutSeconds: Int64 = 30

    /// Creates a client; `nil` if the URL is not one of a server.
    ///
    /// - Parameters:
    ///   - url: `http://HOST:PORT`, or `HOST:PORT`.
    ///   - token: The server's token, if it has one.
    public init?(url: String, token: String?, userAgent: String) {
        let text = url.contains("://") ? url : "http://\(url)"
        guard let parts = URLComponents(string: text), parts.scheme == "http", let host = parts.host, !host.isEmpty,
            ["", "/"].contains(parts.path)
        else { return nil }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = parts.port ?? Self.portDefault
        self.token = token
        self.userAgent = userAgent
    }

    /// Returns a path of percent-encoded parts.
    public static func path(_ parts: String...) -> String {
        var allowed = CharacterSet.alphanumerics
        allowed.formIntersection(CharacterSet(charactersIn: "\u{0}"..."\u{7F}"))
        allowed.insert(charactersIn: "-._~")
        return "/" + parts.map { $0.addingPercentEncoding(withAllowedCharacters: allowed) ?? $0 }.joined(separator: "/")
    }

    /// Makes a call and returns the response's body.
    ///
    /// - Throws: A ``CallError``.
    public func call(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
        let text = body?.json ?? ""
        var request = try request(method, path, [(name: "Content-Length", value: "\(text.utf8.count)")])
        request.writeString(text)
        let bytes = request
        let (status, responseBody, warnings) = try await reporting(method, path) { try await exchange(bytes, method) }
        if let onWarning { for warning in warnings { onWarning(warning) } }
        let value = JSONText.parse(Array(responseBody.readableBytesView))
        guard (200..<300).contains(status) else {
            let reason = value?.object?["error"]?.text ?? String(buffer: responseBody).trimmingCharacters(in: .newlines)
            throw CallError.errorResponse(status: status, reason: reason)
        }
        if responseBody.readableBytes == 0 { return .null }
        guard let value else {
            throw CallError.unreadable("http://\(authority) does not respond as a Slowlane or Toxiproxy server")
        }
        return value
    }

    /// The server's host and port.
    private var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Returns the head of a request.
    func request(_ method: String, _ path: String, _ further: [(name: String, value: String)]) throws -> ByteBuffer {
        var fields = [
            (name: "Host", value: authority), (name: "Connection", value: "close"),
            (name: "User-Agent", value: userAgent),
        ]
        if let token { fields.append((name: "Authorization", value: "Bearer \(token)")) }
        var request = ByteBuffer()
        try HTTPRequestHead(method: method, target: path, fields: fields + further).write(into: &request)
        return request
    }

    /// Runs a call; its errors become those of the connection.
    func reporting<Result>(_ method: String, _ path: String, _ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as CallError {
            throw error
        } catch {
            throw CallError.noConnection(
                method: method, url: "http://\(authority)\(path)", address: Self.address(error),
                reason: Self.reason(error))
        }
    }

    /// Returns the address that was tried first.
    private static func address(_ error: any Error) -> String? {
        guard let target = (error as? NIOConnectionError)?.connectionErrors.first?.target, let port = target.port,
            let host = target.ipAddress
        else { return nil }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// Returns the system's reason in words.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { reason($0.error) } ?? "no address"
        case let error as IOError: String(cString: strerror(error.errnoCode))
        default: "\(error)"
        }
    }

    /// Opens a connection for a call, and closes it afterwards.
    func connected<Result: Sendable>(
        timesOut: Bool,
        _ body: (NIOAsyncChannelInboundStream<ByteBuffer>, NIOAsyncChannelOutboundWriter<ByteBuffer>) async throws ->
            Result
    ) async throws -> Result {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(Self.timeoutSeconds))
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let timeout = channel.channel.eventLoop.scheduleTask(in: .seconds(Self.timeoutSeconds)) {
            if timesOut { channel.channel.close(promise: nil) }
        }
        defer { timeout.cancel() }
        return try await channel.executeThenClose(body)
    }

    private func exchange(_ request: ByteBuffer, _ method: String) async throws -> (Int, ByteBuffer, [String]) {
        try await connected(timesOut: true) { inbound, outbound in
            try await outbound.write(request)
            var parser = HTTPParser(.responses)
            parser.requestSent(method: method)
            var status: Int?
            var warnings: [String] = []
            var body = ByteBuffer()
            func parse() throws -> Bool {
                while let part = try parser.takePart() {
                    switch part {
                    case .responseHead(let head, _, isInterim: false):
                        status = head.status
                        warnings = head.fields[values: RequestWarnings.headerName].flatMap(RequestWarnings.texts)
                    case .body(var bytes, _): body.writeBuffer(&bytes)
                    case .end: return true
                    default: break
                    }
                }
                return false
            }
            for try await bytes in inbound {
                parser.received(bytes)
                if try parse(), let status { return (status, body, warnings) }
            }
            parser.streamEnded()
            if try parse(), let status { return (status, body, warnings) }
            throw CallError.unreadable("the server closed the connection without a response")
        }
    }
}
