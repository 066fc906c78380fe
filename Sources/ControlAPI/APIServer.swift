internal import HTTPTypes
internal import Hummingbird
internal import HummingbirdCore
public import Logging
internal import NIOCore
internal import NIOHTTPTypes
internal import NIOPosix
internal import ProxyServer

/// An ``API`` on a socket.
public final class APIServer: Sendable {
    /// The port it listens on.
    public let port: Int
    private let running: Task<Void, any Error>

    private init(port: Int, running: Task<Void, any Error>) {
        self.port = port
        self.running = running
    }

    /// Answers run on a loop of their own, so that proxies never hold them up.
    private static let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Why a server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// What happened.
        public let description: String
    }

    /// Listens and answers until ``stop()``.
    public static func start(
        _ api: API, host: String, port: Int, gatekeeper: Gatekeeper,
        logger: Logger = Logger(label: "slowlane.server") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> APIServer {
        let limits = api.limits
        let responder = CallbackResponder { (request: Request, _: BasicRequestContext) in
            let answer = await answer(request, api, gatekeeper)
            logger.debug("\(request.method) \(request.uri.path.prefix(200)) \(answer.status.code)")
            return response(answer)
        }
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: responder,
            server: .http1(
                configuration: HTTP1Channel.Configuration(
                    additionalChannelHandlers: [RequestDeadline(.seconds(Int64(limits.bodySecondsMax) + 5))],
                    idleTimeout: .seconds(60),
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: limits.headerBytesMax, maxHeaderListSize: limits.headerBytesMax,
                        maxHeaderFieldCount: 100))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port), serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(limits.callersMax)),
            onServerRunning: { channel in
                found.yield(channel.localAddress?.port ?? port)
                found.finish()
            },
            eventLoopGroupProvider: .shared(loop),
            // What it says of connections that are cut is nobody's business.
            logger: Logger(label: "slowlane.http") { _ in SwiftLogNoOpLogHandler() })
        let running = Task {
            defer { found.finish() }
            try await application.run()
        }
        for await port in ports { return APIServer(port: port, running: running) }
        do {
            try await running.value
        } catch {
            throw StartError(description: "\(host):\(port) cannot be had: \(SystemReason.of(error))")
        }
        throw StartError(description: "\(host):\(port) cannot be had")
    }

    /// Closes everything.
    public func stop() async {
        running.cancel()
        _ = try? await running.value
    }

    private static func answer(_ request: Request, _ api: API, _ gatekeeper: Gatekeeper) async -> API.Answer {
        if let refusal = gatekeeper.refusal(of: request.head) { return .failure(refusal) }
        do {
            let body = try await body(of: request, api.limits)
            return await api.respond(to: request.head, body: body)
        } catch is NIOTooManyBytesError {
            return tooLarge(api.limits)
        } catch let error as HTTPError where error.status == .contentTooLarge {
            return tooLarge(api.limits)
        } catch is SlowBody {
            return .failure(
                APIFailure(.requestTimeout, "the body did not arrive within \(api.limits.bodySecondsMax) seconds"))
        } catch {
            return .failure(.badBody("\(error)"))
        }
    }

    private static func tooLarge(_ limits: ServerLimits) -> API.Answer {
        .failure(APIFailure(.contentTooLarge, "the body is larger than \(limits.bodyBytesMax) bytes (--max-body)"))
    }

    private struct SlowBody: Error {}

    private static func body(of request: Request, _ limits: ServerLimits) async throws -> [UInt8] {
        // Who is too slow is told so; `RequestDeadline` closes the connection of whoever goes on regardless.
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            group.addTask {
                Array(try await request.body.collect(upTo: limits.bodyBytesMax).readableBytesView)
            }
            group.addTask {
                try await Task.sleep(for: .seconds(limits.bodySecondsMax))
                throw SlowBody()
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }

    private static func response(_ answer: API.Answer) -> Response {
        var headers = HTTPFields()
        if let type = answer.type { headers[.contentType] = type }
        if let location = answer.location { headers[.location] = location }
        if answer.isRouted { headers[requestID] = newRequestID() }
        if answer.status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
        headers[.xContentTypeOptions] = "nosniff"
        return Response(
            status: answer.status, headers: headers,
            body: answer.body.isEmpty ? .init() : .init(byteBuffer: ByteBuffer(string: answer.body)))
    }

    private static let requestID = HTTPField.Name("X-Toxiproxy-Request-Id")!

    /// Twenty characters that are different each time.
    private static func newRequestID() -> String {
        let letters = Array("0123456789abcdefghijklmnopqrstuv")
        return String((0..<20).map { _ in letters[Int.random(in: 0..<letters.count)] })
    }
}

/// Closes a connection on which a request takes too long to arrive, whoever has answered it meanwhile.
private final class RequestDeadline: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    private let limit: TimeAmount
    private var deadline: Scheduled<Void>?

    init(_ limit: TimeAmount) { self.limit = limit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            let channel = context.channel
            deadline = context.eventLoop.scheduleTask(in: limit) { channel.close(promise: nil) }
        case .body: break
        case .end:
            deadline?.cancel()
            deadline = nil
        }
        context.fireChannelRead(data)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }
}
