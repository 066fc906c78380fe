internal import HTTPServing
internal import HTTPTypes
internal import NIOPosix
public import NotesService
internal import Synchronization

/// A ``NotesService/NotesService`` on a socket.
public final class NotesServer: Sendable {
    private let host: HTTPServer
    private let service: NotesService

    /// The port it listens on.
    public var port: Int { host.port }

    private init(_ host: HTTPServer, _ service: NotesService) {
        self.host = host
        self.service = service
    }

    /// Why a server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// What happened.
        public let description: String
    }

    /// How many connections there may be at once; a further one takes the slot of the idlest.
    public static let connectionsMax = 4096
    /// How many requests may wait for the database; further ones are refused (503).
    public static let waitingMax = 512

    /// Listens and answers until ``stop()``.
    ///
    /// - Parameter onAnswer: Told of each answer: method, path, status, how long it took. Must not block.
    public static func start(
        _ service: NotesService, host: String, port: Int,
        onResponse: (@Sendable (String, String, Int, Duration) -> Void)? = nil
    ) async throws -> NotesServer {
        var limits = HTTPServer.Limits()
        limits.bodyBytesMax = NotesService.Limits.bodyBytesMax
        limits.connectionsMax = connectionsMax
        let waiting = Waiting()
        let rate = "\(limits.bodyBytesPerSecondMin) bytes per second, taken over \(limits.bodyWindowSeconds) s"
        do {
            let host = try await HTTPServer.start(
                host: host, port: port, limits: limits, fields: NotesService.commonHeaderFields
            ) { request, exchange in
                let start = ContinuousClock.now
                let response: NotesService.Response
                do throws(HTTPServer.BodyError) {
                    let body = try await body(of: request, exchange, for: service, waiting)
                    response = await waiting.respond(service, request, body)
                } catch {
                    response = problem(error, of: request, by: service, rate)
                }
                if response.isAuthenticated { exchange.recordAuthentication() }
                let path = request.path?.prefix { $0 != "?" } ?? ""
                onResponse?(
                    request.method.rawValue, String(path), response.head.status.code, ContinuousClock.now - start)
                return await deliver(response)
            }
            return NotesServer(host, service)
        } catch {
            throw StartError(description: "\(host):\(port) cannot be had: \(error)")
        }
    }

    /// Closes everything; answers that are held are lost.
    public func stop() async {
        async let stopped: Void = host.stop()
        service.testHooks?.clear()
        await stopped
    }

    /// Reads the body. That of somebody who has not authenticated is short, or not looked at.
    private static func body(
        of request: HTTPRequest, _ exchange: HTTPServer.Exchange, for service: NotesService, _ waiting: Waiting
    ) async throws(HTTPServer.BodyError) -> [UInt8] {
        let openBytesMax = NotesService.Limits.unauthenticatedBodyBytesMax
        if let bytes = exchange.declaredBodyBytes, bytes <= openBytesMax { return try await exchange() }
        switch await waiting.admission(of: request, to: service) {
        case .admitted:
            // Before the body is read: new connections must not evict a long upload of a user.
            exchange.recordAuthentication()
            return try await exchange()
        case .open: return try await exchange(bytesMax: openBytesMax)
        case .refused: return []
        case nil: throw .tooManyAtOnce
        }
    }

    /// Waits for a barrier to be released, or for the client to go.
    private static func release(of barrier: ResponseBarrier) async {
        let end = WaitEnd()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                end.wait(continuation)
                barrier.onRelease { end.finish() }
            }
        } onCancel: {
            end.finish()
        }
    }

    private static func problem(
        _ failure: HTTPServer.BodyError, of request: HTTPRequest, by service: NotesService, _ rate: String
    ) -> NotesService.Response {
        switch failure {
        case .tooLarge:
            service.problem(
                .contentTooLarge, "A body has at most \(NotesService.Limits.bodyBytesMax) bytes", of: request)
        case .tooSlow:
            service.problem(.requestTimeout, "The body arrived at less than \(rate)", of: request)
        case .tooManyAtOnce: service.problem(.serviceUnavailable, "Too many bodies at once; try again", of: request)
        case .broken: service.problem(.badRequest, "The body is not whole", of: request)
        }
    }

    private static func deliver(_ response: NotesService.Response) async -> HTTPServer.Response {
        switch response.delivery {
        case .immediate: break
        case .held(let barrier):
            await release(of: barrier)
        case .never: return HTTPServer.Response(response.head, .closed)
        }
        switch response.body {
        case .text(let text): return HTTPServer.Response(response.head, .text(text))
        case .length(let length): return HTTPServer.Response(response.head, .length(length))
        case .pages(let pages):
            return HTTPServer.Response(response.head, .pieces { try await slowly.runIfActive { try pages.next() } })
        }
    }

    /// Makes the pages of long answers, one at a time: who takes them slowly, or many who do, hold up nobody else.
    private static let slowly: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 1)
        pool.start()
        return pool
    }()
}

/// The end of a wait, which may come before it begins, and more than once.
private final class WaitEnd: Sendable {
    private let state = Mutex<(isOver: Bool, continuation: CheckedContinuation<Void, Never>?)>((false, nil))

    func wait(_ continuation: CheckedContinuation<Void, Never>) {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        if isOver { continuation.resume() }
    }

    func finish() {
        let continuation = state.withLock { state in
            state.isOver = true
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }
}

/// Who waits for the database.
private final class Waiting: Sendable {
    private let count = Atomic(0)

    /// What is known of a request without its body; `nil` if too many wait.
    func admission(of request: HTTPRequest, to service: NotesService) async -> NotesService.Admission? {
        defer { count.subtract(1, ordering: .relaxed) }
        guard count.add(1, ordering: .relaxed).newValue <= NotesServer.waitingMax else { return nil }
        return try? await NIOThreadPool.singleton.runIfActive { service.admission(of: request) }
    }

    func respond(_ service: NotesService, _ request: HTTPRequest, _ body: [UInt8]) async -> NotesService.Response {
        defer { count.subtract(1, ordering: .relaxed) }
        let clientIsGone = Gone()
        guard count.add(1, ordering: .relaxed).newValue <= NotesServer.waitingMax,
            let response = await withTaskCancellationHandler(
                operation: {
                    // SQLite waits for the disk; the event loop must not.
                    // Unstructured, since the pool drops a queued item whose task is cancelled. The task ends when the pool has
                    // run the item, and is awaited here.
                    await Task {
                        try? await NIOThreadPool.singleton.runIfActive {
                            // A write is done whether its client is still there or not, a read is for nobody then.
                            guard !clientIsGone.isSet || !request.method.isSafe else { throw CancellationError() }
                            return service.respond(to: request, body: body)
                        }
                    }.value
                }, onCancel: { clientIsGone.set() })
        else { return service.problem(.serviceUnavailable, "Too many requests at once; try again", of: request) }
        return response
    }
}

/// Set once the client has gone.
private final class Gone: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }

    func set() { value.store(true, ordering: .relaxed) }
}

extension HTTPRequest.Method {
    /// Whether it changes nothing (RFC 9110, 9.2.1).
    fileprivate var isSafe: Bool { [.get, .head, .options, .trace].contains(self) }
}
