internal import HTTPTypes
internal import NIOCore
internal import Wire

/// A handle through which handler tasks use their connection.
struct ConnectionHandle: Sendable {
    private let connection: NIOLoopBound<HTTPServerConnection>
    private let loop: any EventLoop
    let slot: ConnectionSlot

    init(_ connection: HTTPServerConnection, _ slot: ConnectionSlot, _ loop: any EventLoop) {
        self.connection = NIOLoopBound(connection, eventLoop: loop)
        self.slot = slot
        self.loop = loop
    }

    func readBody(bytesMax: Int?) async -> Result<[UInt8], HTTPServer.BodyError> {
        await withCheckedContinuation { continuation in
            loop.execute { connection.value.readBody(bytesMax: bytesMax, continuation) }
        }
    }

    /// Sends a response.
    func send(_ response: HTTPServer.Response) async {
        let head = response.head
        switch response.body {
        case .closeConnection: loop.execute { connection.value.close() }
        case .omitted(let length): loop.execute { connection.value.send(head, .omitted(length: length)) }
        case .text(let text): loop.execute { connection.value.send(head, .text(text)) }
        case .stream(let next):
            await send(head, .parts, next) { connection, part, continuation in
                connection.sendPart(part, continuation)
            }
        case .bytes(let length, let next):
            await send(head, .bytes(length: length), next) { connection, part, continuation in
                connection.sendBytes(part, continuation)
            }
        }
    }

    private func send<Part: Sendable>(
        _ head: HTTPResponse, _ body: HTTPServerResponseBody, _ next: @Sendable () async throws -> Part?,
        sendPart: @escaping @Sendable (HTTPServerConnection, Part, CheckedContinuation<Bool, Never>) -> Void
    ) async {
        var isWanted = await withCheckedContinuation { continuation in
            loop.execute { connection.value.beginParts(head, body, continuation) }
        }
        do {
            while isWanted, !Task.isCancelled {
                guard let part = try await next() else {
                    loop.execute { connection.value.endParts() }
                    return
                }
                isWanted = await withCheckedContinuation { continuation in
                    loop.execute { sendPart(connection.value, part, continuation) }
                }
            }
        } catch {
            // A FIN would mark a truncated body as complete.
            loop.execute { connection.value.abort() }
        }
    }
}
