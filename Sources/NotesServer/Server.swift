internal import HTTPTypes
internal import Hummingbird
public import Logging
internal import NIOCore
internal import NIOPosix
public import NotesService

/// A ``NotesService/NotesService`` on a socket.
public final class NotesServer: Sendable {
    /// The port it listens on.
    public let port: Int
    private let running: Task<Void, any Error>

    private init(port: Int, running: Task<Void, any Error>) {
        self.port = port
        self.running = running
    }

    /// Why a server cannot start.
    public struct StartError: Error, CustomStringConvertible {
        /// What happened.
        public let description: String
    }

    /// Listens and answers until ``stop()``.
    ///
    /// - Parameter onAnswer: Told of each answer: method, path, status, how long it took. Must not block.
    public static func start(
        _ service: NotesService, host: String, port: Int,
        logger: Logger = Logger(label: "slowlane.notes-server") { _ in SwiftLogNoOpLogHandler() },
        onAnswer: (@Sendable (String, String, Int, Duration) -> Void)? = nil
    ) async throws -> NotesServer {
        let responder = CallbackResponder { (request: Request, _: BasicRequestContext) in
            let start = ContinuousClock.now
            let answer: NotesService.Answer
            do {
                let body = try await request.body.collect(upTo: NotesService.bodyBytesMax)
                let head = request.head
                // SQLite waits for the disk; the event loop must not.
                answer = try await NIOThreadPool.singleton.runIfActive {
                    service.respond(to: head, body: Array(body.readableBytesView))
                }
            } catch is NIOTooManyBytesError {
                answer = NotesService.tooLarge
            } catch let error as HTTPError where error.status == .contentTooLarge {
                answer = NotesService.tooLarge
            }
            onAnswer?(
                request.method.rawValue, request.uri.path, answer.head.status.code, ContinuousClock.now - start)
            return Response(
                status: answer.head.status, headers: answer.head.headerFields,
                body: answer.body.isEmpty ? .init() : .init(byteBuffer: ByteBuffer(string: answer.body)))
        }
        let (ports, found) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: responder,
            configuration: ApplicationConfiguration(address: .hostname(host, port: port), serverName: nil),
            onServerRunning: { channel in
                found.yield(channel.localAddress?.port ?? port)
                found.finish()
            }, logger: logger)
        let running = Task {
            defer { found.finish() }
            try await application.run()
        }
        for await port in ports { return NotesServer(port: port, running: running) }
        do {
            try await running.value
        } catch {
            throw StartError(description: "\(host):\(port) cannot be had: \(error)")
        }
        throw StartError(description: "\(host):\(port) cannot be had")
    }

    /// Closes everything.
    public func stop() async {
        running.cancel()
        _ = try? await running.value
    }
}
