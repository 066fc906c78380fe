internal import HTTPHost
internal import HTTPTypes
internal import NIOPosix
public import NotesService
internal import Synchronization

/// A ``NotesService/NotesService`` on a socket.
public final class NotesServer: Sendable {
    private let host: HTTPHost
    private let service: NotesService

    /// The port it listens on.
    public var port: Int { host.port }

    private init(_ host: HTTPHost, _ service: NotesService) {
        self.host = host
        self.service = service
    }

    /// Why a server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// What happened.
        public let description: String
    }

    /// How many connections there may be at once; further ones wait to be accepted.
    public static let connectionsMax = 4096
    /// How many requests may wait for the database; further ones are refused (503).
    public static let waitingMax = 512

    /// Listens and answers until ``stop()``.
    ///
    /// - Parameter onAnswer: Told of each answer: method, path, status, how long it took. Must not block.
    public static func start(
        _ service: NotesService, host: String, port: Int,
        onAnswer: (@Sendable (String, String, Int, Duration) -> Void)? = nil
    ) async throws -> NotesServer {
        var limits = HTTPHost.Limits()
        limits.bodyBytesMax = NotesService.Limits.bodyBytesMax
        limits.connectionsMax = connectionsMax
        let waiting = Waiting()
        let seconds = limits.bodySecondsMax
        do {
            let host = try await HTTPHost.start(
                host: host, port: port, limits: limits, fields: NotesService.everyAnswersFields
            ) { request, read in
                let start = ContinuousClock.now
                let answer: NotesService.Answer
                do throws(HTTPHost.BodyFailure) {
                    answer = await waiting.respond(service, request, try await read())
                } catch {
                    answer = refusal(error, of: request, by: service, seconds)
                }
                let path = request.path?.prefix { $0 != "?" } ?? ""
                onAnswer?(
                    request.method.rawValue, String(path), answer.head.status.code, ContinuousClock.now - start)
                return await deliver(answer)
            }
            return NotesServer(host, service)
        } catch {
            throw StartError(description: "\(host):\(port) cannot be had: \(error)")
        }
    }

    /// Closes everything; answers that are held are lost.
    public func stop() async {
        async let stopped: Void = host.stop()
        service.levers?.clear()
        await stopped
    }

    private static func refusal(
        _ failure: HTTPHost.BodyFailure, of request: HTTPRequest, by service: NotesService, _ seconds: Double
    ) -> NotesService.Answer {
        switch failure {
        case .tooLarge:
            service.refusal(
                .contentTooLarge, "A body has at most \(NotesService.Limits.bodyBytesMax) bytes", of: request)
        case .tooSlow:
            service.refusal(.requestTimeout, "The body did not arrive within \(seconds) seconds", of: request)
        case .tooManyAtOnce: service.refusal(.serviceUnavailable, "Too many bodies at once; try again", of: request)
        case .broken: service.refusal(.badRequest, "The body is not whole", of: request)
        }
    }

    private static func deliver(_ answer: NotesService.Answer) async -> HTTPHost.Answer {
        switch answer.delivery {
        case .atOnce: break
        case .held(let barrier):
            await withCheckedContinuation { continuation in barrier.onRelease { continuation.resume() } }
        case .never: return HTTPHost.Answer(answer.head, .closed)
        }
        switch answer.body {
        case .text(let text): return HTTPHost.Answer(answer.head, .text(text))
        case .length(let length): return HTTPHost.Answer(answer.head, .length(length))
        case .pages(let pages):
            return HTTPHost.Answer(answer.head, .pieces { try await slowly.runIfActive { try pages.next() } })
        }
    }

    /// Makes the pages of long answers, one at a time: who takes them slowly, or many who do, hold up nobody else.
    private static let slowly: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 1)
        pool.start()
        return pool
    }()
}

/// Who waits for the database.
private final class Waiting: Sendable {
    private let count = Atomic(0)

    func respond(_ service: NotesService, _ request: HTTPRequest, _ body: [UInt8]) async -> NotesService.Answer {
        defer { count.subtract(1, ordering: .relaxed) }
        guard count.add(1, ordering: .relaxed).newValue <= NotesServer.waitingMax,
            // SQLite waits for the disk; the event loop must not.
            let answer = try? await NIOThreadPool.singleton.runIfActive({ service.respond(to: request, body: body) })
        else { return service.refusal(.serviceUnavailable, "Too many requests at once; try again", of: request) }
        return answer
    }
}
