internal import ArgumentParser
internal import Foundation
internal import HTTPWire
internal import JSON
internal import NIOCore
internal import NIOPosix

/// Which server commands talk to.
struct ServerOptions: ParsableArguments {
    @Option(help: "The server's URL. (default: SLOWLANE_URL, TOXIPROXY_URL, or http://localhost:8474)")
    var host: String?

    @Option(help: "The token it was started with. (default: SLOWLANE_TOKEN)")
    var token: String?

    @Flag(help: "Print the server's JSON as it is.")
    var json = false

    private static let hostDefault = "http://localhost:8474"

    func client() throws -> APIClient {
        let environment = ProcessInfo.processInfo.environment
        let text = host ?? environment["SLOWLANE_URL"] ?? environment["TOXIPROXY_URL"] ?? Self.hostDefault
        guard let client = APIClient(url: text, token: token ?? environment["SLOWLANE_TOKEN"]) else {
            throw ValidationError("'\(text)' is not a server's URL (as \(Self.hostDefault))")
        }
        return client
    }
}

/// Calls of a server's API, each on a connection of its own.
struct APIClient: Sendable {
    private let host: String
    private let port: Int
    private let token: String?

    /// Why a call failed.
    enum Failure: Error, CustomStringConvertible {
        /// Nobody answered: what was called, the address that was tried and what the system said.
        case noConnection(method: String, url: String, address: String?, reason: String)
        /// The server's words.
        case refused(status: Int, reason: String)
        /// What answered is no server of ours.
        case unreadable(String)

        /// In a line.
        var description: String {
            switch self {
            case .noConnection(_, let url, _, let reason):
                "no server at http://\(APIClient.authority(of: url)) (\(reason)); start one with 'slowlane server', "
                    + "or say where it is with --host or SLOWLANE_URL"
            case .refused(let status, let reason): "HTTP \(status): \(reason)"
            case .unreadable(let reason): reason
            }
        }
    }

    /// Host and port of a URL.
    private static func authority(of url: String) -> Substring {
        url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
    }

    private static let portDefault = 8474
    private static let secondsMax: Int64 = 30

    /// - Parameter url: `http://HOST:PORT`, or `HOST:PORT`.
    init?(url: String, token: String?) {
        let text = url.contains("://") ? url : "http://\(url)"
        guard let parts = URLComponents(string: text), parts.scheme == "http", let host = parts.host, !host.isEmpty,
            ["", "/"].contains(parts.path)
        else { return nil }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = parts.port ?? Self.portDefault
        self.token = token
    }

    /// A path of whole parts.
    static func path(_ parts: String...) -> String {
        var allowed = CharacterSet.alphanumerics
        allowed.formIntersection(CharacterSet(charactersIn: "\u{0}"..."\u{7F}"))
        allowed.insert(charactersIn: "-._~")
        return "/" + parts.map { $0.addingPercentEncoding(withAllowedCharacters: allowed) ?? $0 }.joined(separator: "/")
    }

    /// Makes a call; gives the answer's body, or fails with what the server says.
    func call(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
        let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        var fields = [
            (name: "Host", value: address), (name: "Connection", value: "close"),
            (name: "User-Agent", value: "slowlane/\(SlowlaneVersion.current)"),
        ]
        if let token { fields.append((name: "Authorization", value: "Bearer \(token)")) }
        let text = body?.json ?? ""
        fields.append((name: "Content-Length", value: "\(text.utf8.count)"))
        var request = ByteBuffer()
        try HTTPRequestHead(method: method, target: path, fields: fields).write(into: &request)
        request.writeString(text)
        let (status, answer): (Int, ByteBuffer)
        do {
            (status, answer) = try await exchange(request, method)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure.noConnection(
                method: method, url: "http://\(address)\(path)", address: Self.address(error),
                reason: Self.words(error))
        }
        let value = JSONText.parse(Array(answer.readableBytesView))
        guard (200..<300).contains(status) else {
            let reason = value?.object?["error"]?.text ?? String(buffer: answer).trimmingCharacters(in: .newlines)
            throw Failure.refused(status: status, reason: reason)
        }
        if answer.readableBytes == 0 { return .null }
        guard let value else {
            throw Failure.unreadable("http://\(address) answers, but not as a Slowlane or Toxiproxy")
        }
        return value
    }

    /// The address that was tried first.
    private static func address(_ error: any Error) -> String? {
        guard let target = (error as? NIOConnectionError)?.connectionErrors.first?.target, let port = target.port,
            let host = target.ipAddress
        else { return nil }
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            error.connectionErrors.first.map { words($0.error) } ?? "no address"
        case let error as IOError: String(cString: strerror(error.errnoCode))
        default: "\(error)"
        }
    }

    private func exchange(_ request: ByteBuffer, _ method: String) async throws -> (Int, ByteBuffer) {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(.seconds(Self.secondsMax))
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let timeout = channel.channel.eventLoop.scheduleTask(in: .seconds(Self.secondsMax)) {
            channel.channel.close(promise: nil)
        }
        defer { timeout.cancel() }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(request)
            var parser = HTTPParser(.responses)
            parser.requestSent(method: method)
            var status: Int?
            var body = ByteBuffer()
            func take() throws -> Bool {
                while let part = try parser.takePart() {
                    switch part {
                    case .responseHead(let head, _, isInterim: false): status = head.status
                    case .body(var bytes, _): body.writeBuffer(&bytes)
                    case .end: return true
                    default: break
                    }
                }
                return false
            }
            for try await bytes in inbound {
                parser.received(bytes)
                if try take(), let status { return (status, body) }
            }
            parser.streamEnded()
            if try take(), let status { return (status, body) }
            throw Failure.unreadable("the server closed the connection without an answer")
        }
    }
}
