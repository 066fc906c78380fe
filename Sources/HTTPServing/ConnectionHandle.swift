internal import HTTPTypes
internal import NIOCore

/// A handle through which handler tasks use their connection.
struct ConnectionHandle: Sendable {
    private let connection: NIOLoopBound<HTTPServerConnection>
    private let loop: any EventLoop
    let slot: ConnectionSlot

    /// The maximum size of one write of a complete body. Each write has its own deadline.
    private static let writeBytes = 64 << 10

    init(_ connection: HTTPServerConnection, _ slot: ConnectionSlot, _ loop: any EventLoop) {
        self.connection = NIOLoopBound(connection, eventLoop: loop)
        self.slot = slot
        self.loop = loop
    }

    func readBody(bytesMax: Int) async -> Result<[UInt8], HTTPServer.BodyError> {
        await withCheckedContinuation { continuation in
            loop.execute { connection.value.readBody(bytesMax: bytesMax, continuation) }
        }
    }

    /// Sends a response.
    func send(_ response: HTTPServer.Response, to request: ValidatedRequest) async {
        let isHead = request.request.method == .head
        switch response.body {
        case .closeConnection: loop.execute { connection.value.close() }
        case .omitted(let length):
            _ = await begin(response.head, length: isHead ? length : 0, to: request, isLast: true)
        case .text(let text):
            let length = text.utf8.count
            if isHead || length <= Self.writeBytes {
                _ = await begin(response.head, length: length, to: request, text: text, isLast: true)
            } else if case .length? = await begin(response.head, length: length, to: request, isLast: false) {
                await send(text)
            }
        case .stream(let next):
            guard let framing = await begin(response.head, length: nil, to: request, isLast: false) else { return }
            if case .none = framing { return }
            await send(next, framing)
        case .bytes(let length, let next):
            guard let framing = await begin(response.head, length: length, to: request, isLast: false) else { return }
            if case .none = framing { return }
            await send(next, length: length)
        }
    }

    private func send(_ next: @Sendable () async throws -> [UInt8]?, length: Int) async {
        var rest = length
        do {
            while rest > 0 && !Task.isCancelled {
                guard let part = try await next(), part.count <= rest else { break }
                rest -= part.count
                guard await write(ByteBuffer(bytes: part), isLast: false) else { return }
            }
        } catch {}
        if rest > 0 {
            loop.execute { connection.value.abort() }
        } else {
            _ = await write(ByteBuffer(), isLast: true)
        }
    }

    private func send(_ text: String) async {
        var rest = text.utf8[...]
        while !rest.isEmpty {
            let bytes = ByteBuffer(bytes: rest.prefix(Self.writeBytes))
            rest = rest.dropFirst(Self.writeBytes)
            guard await write(bytes, isLast: rest.isEmpty) else { return }
        }
    }

    private func send(_ next: @Sendable () async throws -> String?, _ framing: ResponseFraming) async {
        do {
            while !Task.isCancelled {
                var buffer = ByteBuffer()
                guard let part = try await next() else {
                    ResponseEncoder.writeEnd(framing, into: &buffer)
                    _ = await write(buffer, isLast: true)
                    return
                }
                ResponseEncoder.write(part, framing, into: &buffer)
                guard await write(buffer, isLast: false) else { return }
            }
        } catch {
            // A FIN would mark a close-delimited body as complete.
            loop.execute { connection.value.abort() }
        }
    }

    /// Writes a response head and, if the response has a body, `text`. The response is then complete if `isLast` is
    /// true or it has no body (HEAD, 204, 304).
    ///
    /// - Returns: The framing of the body; `nil` if the connection is closed.
    private func begin(
        _ response: HTTPResponse, length: Int?, to request: ValidatedRequest, text: String = "", isLast: Bool
    ) async -> ResponseFraming? {
        await withCheckedContinuation { continuation in
            loop.execute {
                var response = response
                let connection = connection.value
                guard let (framing, option) = connection.prepare(&response, length: length, for: request) else {
                    return continuation.resume(returning: nil)
                }
                var buffer = ByteBuffer()
                ResponseEncoder.write(response, framing, connection: option, into: &buffer)
                if case .length = framing { buffer.writeString(text) }
                let hasNoBody = if case .none = framing { true } else { false }
                connection.write(buffer, isLast: isLast || hasNoBody, nil)
                continuation.resume(returning: framing)
            }
        }
    }

    private func write(_ bytes: ByteBuffer, isLast: Bool) async -> Bool {
        await withCheckedContinuation { continuation in
            loop.execute { connection.value.write(bytes, isLast: isLast, continuation) }
        }
    }
}
