//  NotesServer: NotesService over HTTP.
//
//  Owns: starting and stopping, the limit on queued requests, the delivery of responses.
//
//  Does not own: the content of responses (NotesService), connections (HTTPSockets/Server).

internal import HTTPSockets
package import HTTPTypes
internal import NIOPosix
public import NotesService
internal import Synchronization
package import Wire

/// An HTTP server in front of a ``NotesService/NotesService``.
public final class NotesServer: Sendable {
    private let server: HTTPServer
    private let service: NotesService

    /// The bound port.
    public var port: Int { server.port }

    private init(_ server: HTTPServer, _ service: NotesService) {
        self.server = server
        self.service = service
    }

    /// The error of a server that cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// The failure, its cause and the remedy.
        public let description: String
    }

    /// The maximum number of open connections; a further one evicts an idle one.
    public static let connectionsMax = 4096
    /// The maximum number of requests queued for the database; further requests get 503.
    public static let queuedRequestsMax = 512

    /// The limits of one connection.
    package static let connectionLimits: HTTPServerLimits = {
        var limits = HTTPServerLimits()
        limits.bodyBytesMax = NotesService.Limits.bodyBytesMax
        return limits
    }()

    /// Binds an address and serves requests until ``stop()``.
    ///
    /// - Parameter onResponse: Receives method, path, status and duration of each exchange; must not block.
    public static func start(
        _ service: NotesService, host: String, port: Int,
        onResponse: (@Sendable (String, String, Int, Duration) -> Void)? = nil
    ) async throws -> NotesServer {
        var limits = HTTPServer.Limits()
        limits.connection = connectionLimits
        limits.connectionsMax = connectionsMax
        let queue = RequestQueue(service)
        do {
            let server = try await HTTPServer.start(
                host: host, port: port, limits: limits, defaultHeaders: NotesService.commonHeaderFields
            ) { request, exchange in
                let start = ContinuousClock.now
                let response: NotesService.Response
                do throws(HTTPServer.BodyError) {
                    let body = try await readBody(of: request, exchange, queue)
                    response = await queue.respond(to: request, body)
                } catch {
                    response = errorResponse(error, to: request, by: service)
                }
                if response.isAuthenticated { exchange.recordAuthentication() }
                let path = request.path?.prefix { $0 != "?" } ?? ""
                onResponse?(
                    request.method.rawValue, String(path), response.head.status.code, ContinuousClock.now - start)
                return await deliver(response)
            }
            return NotesServer(server, service)
        } catch {
            throw StartError(description: error.description)
        }
    }

    /// Closes the listener and all connections; held responses are dropped.
    public func stop() async {
        async let stopped: Void = server.stop()
        service.testHooks?.reset()
        await stopped
    }

    /// Reads the body of a request. The body of an unauthenticated request is limited, or not read at all.
    private static func readBody(
        of request: HTTPRequest, _ exchange: HTTPServer.Exchange, _ queue: RequestQueue
    ) async throws(HTTPServer.BodyError) -> [UInt8] {
        let unauthenticatedBytesMax = NotesService.Limits.unauthenticatedBodyBytesMax
        if let bytes = exchange.declaredBodyBytes, bytes <= unauthenticatedBytesMax {
            return try await exchange.readBody()
        }
        switch await queue.admission(of: request) {
        case .authenticated:
            // Recorded before the body is read, so that new connections do not evict a long upload.
            exchange.recordAuthentication()
            return try await exchange.readBody()
        case .publicResource: return try await exchange.readBody(bytesMax: unauthenticatedBytesMax)
        case .unauthenticated: return []
        case nil: throw .budgetExceeded
        }
    }

    /// Returns the response to a request whose body cannot be read.
    package static func errorResponse(
        _ error: HTTPServerBodyError, to request: HTTPRequest, by service: NotesService
    ) -> NotesService.Response {
        let limits = connectionLimits
        let bodyRate = "\(limits.bodyBytesPerSecondMin) bytes per second, measured over \(limits.bodyWindowSeconds) s"
        return switch error {
        case .tooLarge:
            service.errorResponse(
                .contentTooLarge, "A body has at most \(NotesService.Limits.bodyBytesMax) bytes", to: request)
        case .tooSlow:
            service.errorResponse(.requestTimeout, "The body arrived at less than \(bodyRate)", to: request)
        case .budgetExceeded:
            service.errorResponse(.serviceUnavailable, "Too many bodies at once; try again", to: request)
        case .malformed: service.errorResponse(.badRequest, "The body is incomplete or malformed", to: request)
        }
    }

    // MARK: Delivery

    private static func deliver(_ response: NotesService.Response) async -> HTTPServer.Response {
        switch response.delivery {
        case .immediate: break
        case .held(let barrier): await waitForRelease(of: barrier)
        case .dropped: return HTTPServer.Response(response.head, .closeConnection)
        }
        switch response.body {
        case .text(let text): return HTTPServer.Response(response.head, .text(text))
        case .omitted(let length): return HTTPServer.Response(response.head, .omitted(length: length))
        case .pages(let pages):
            return HTTPServer.Response(
                response.head, .stream { try await pageThread.runIfActive { try pages.next() } })
        case .bytes(let bytes):
            return HTTPServer.Response(
                response.head,
                .bytes(length: bytes.length) { try await pageThread.runIfActive { try bytes.next() } })
        }
    }

    /// Waits until a barrier is released or the client disconnects.
    private static func waitForRelease(of barrier: ResponseBarrier) async {
        let signal = Signal()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                signal.wait(continuation)
                barrier.onRelease { signal.send() }
            }
        } onCancel: {
            signal.send()
        }
    }

    /// The thread that generates the pages of long bodies, so that long lists delay only each other.
    private static let pageThread: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 1)
        pool.start()
        return pool
    }()
}

/// A signal for one waiting task. It may be sent before the wait, and more than once.
private final class Signal: Sendable {
    private let state = Mutex<(isSent: Bool, continuation: CheckedContinuation<Void, Never>?)>((false, nil))

    func wait(_ continuation: CheckedContinuation<Void, Never>) {
        let isSent = state.withLock { state in
            if !state.isSent { state.continuation = continuation }
            return state.isSent
        }
        if isSent { continuation.resume() }
    }

    func send() {
        let continuation = state.withLock { state in
            state.isSent = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}
