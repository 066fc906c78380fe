internal import NIOCore
internal import NIOPosix
internal import Wire

extension APIClient {
    /// Reads the stream of events until the server ends it or the task is cancelled.
    ///
    /// - Parameters:
    ///   - proxy: The proxy whose events are wanted; `nil` for all.
    ///   - lastID: The last event that was read before; `nil` for a snapshot.
    ///   - onEvent: Called with each event.
    /// - Throws: A ``CallError``.
    public func readEvents(
        proxy: String?, after lastID: String?, onEvent: @escaping (EventStreamParser.Event) -> Void
    ) async throws {
        let query = proxy.map { "?proxy=" + Self.path($0).dropFirst() } ?? ""
        let path = "/slowlane/v1/events" + query
        var fields = [(name: "Accept", value: "text/event-stream")]
        if let lastID { fields.append((name: "Last-Event-ID", value: lastID)) }
        var parser = EventStreamParser()
        var status: Int?
        var errorBody = ByteBuffer()
        try await reporting("GET", path) {
            let request = try request("GET", path, fields)
            try await connected(timesOut: false) { inbound, outbound in
                try await outbound.write(request)
                var responses = HTTPParser(.responses)
                responses.requestSent(method: "GET")
                for try await bytes in inbound {
                    responses.received(bytes)
                    while let part = try responses.takePart() {
                        switch part {
                        case .responseHead(let head, _, isInterim: false): status = head.status
                        case .body(var bytes, _) where status == 200:
                            for event in try parser.receive(bytes.readableBytesView) { onEvent(event) }
                            bytes.clear()
                        case .body(var bytes, _): errorBody.writeBuffer(&bytes)
                        case .end: return
                        default: break
                        }
                    }
                }
            }
        }
        guard let status else { throw CallError.unreadable("the server closed the connection without a response") }
        guard status == 200 else {
            let value = JSONText.parse(Array(errorBody.readableBytesView))
            throw CallError.errorResponse(
                status: status, reason: value?.object?["error"]?.text ?? String(buffer: errorBody))
        }
    }
}
