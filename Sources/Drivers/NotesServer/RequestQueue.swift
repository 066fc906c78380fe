internal import HTTPTypes
internal import NIOPosix
internal import NotesService
internal import Synchronization

/// A bounded queue of requests for the database.
///
/// The database blocks on the disk, so it runs on NIO's thread pool and not on an event loop.
final class RequestQueue: Sendable {
    private let service: NotesService
    private let count = Atomic(0)

    init(_ service: NotesService) { self.service = service }

    /// Returns the admission of a request before its body is read; `nil` if the queue is full.
    func admission(of request: HTTPRequest) async -> NotesService.Admission? {
        defer { count.subtract(1, ordering: .relaxed) }
        guard count.add(1, ordering: .relaxed).newValue <= NotesServer.queuedRequestsMax else { return nil }
        return try? await NIOThreadPool.singleton.runIfActive { [service] in service.admission(of: request) }
    }

    /// Returns the response to a request; 503 if the queue is full.
    func respond(to request: HTTPRequest, _ body: [UInt8]) async -> NotesService.Response {
        defer { count.subtract(1, ordering: .relaxed) }
        let disconnect = DisconnectFlag()
        guard count.add(1, ordering: .relaxed).newValue <= NotesServer.queuedRequestsMax,
            let response = await withTaskCancellationHandler(
                operation: {
                    // The pool drops a queued item when its task is cancelled. This task is unstructured, so it is not
                    // cancelled; it ends when the pool has run the item.
                    await Task { [service] in
                        try? await NIOThreadPool.singleton.runIfActive {
                            // After a disconnect a write is still executed; the result of a read has no receiver.
                            guard !disconnect.isSet || !request.method.isSafe else { throw CancellationError() }
                            return service.respond(to: request, body: body)
                        }
                    }.value
                }, onCancel: { disconnect.set() })
        else {
            return service.errorResponse(.serviceUnavailable, "Too many requests at once; try again", to: request)
        }
        return response
    }
}

/// A flag that records the client's disconnect.
private final class DisconnectFlag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .relaxed) }

    func set() { value.store(true, ordering: .relaxed) }
}

extension HTTPRequest.Method {
    /// Whether the method is safe (RFC 9110, 9.2.1).
    fileprivate var isSafe: Bool { [.get, .head, .options, .trace].contains(self) }
}
