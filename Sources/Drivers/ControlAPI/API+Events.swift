internal import HTTPTypes
internal import Proxy
internal import Wire

/// The stream of events.
extension API {
    func events(_ request: HTTPRequest, query: String) throws(APIError) -> Response {
        // A reader holds a slot, and takes the proxies off the fast path.
        if let rejection = RequestGuard.rejectionOfForeignPage(request) { throw rejection }
        var filter: ByteKey?
        var position = request.headerFields[Self.lastEventID]
        for part in query.split(separator: "&") {
            let sides = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard sides.count == 2, let value = Self.percentDecoded(sides[1]) else {
                throw APIError(.badRequest, "expected ?proxy=NAME or ?last_event_id=NUMBER")
            }
            switch sides[0] {
            case "proxy": filter = ByteKey(value)
            case "last_event_id": position = value
            default:
                let name = RequestWarnings.printable(sides[0])
                throw APIError(.badRequest, "unknown query parameter '\(name)'; expected proxy or last_event_id")
            }
        }
        let registry = registry
        // A position that is not a number is one of another process.
        let after = position.map { Int64($0) ?? 0 }
        guard let reader = registry.feed.connect(filter: filter, after: after, load: { await registry.reportAll() })
        else {
            throw APIError(
                .serviceUnavailable,
                "\(limits.eventReadersMax) readers of events are connected (the limit); close one and try again")
        }
        var response = Response(status: .ok, type: "text/event-stream")
        response.headers[.cacheControl] = "no-store"
        response.stream = { await reader.next() }
        return response
    }

    /// Starts or ends the recording, or returns it.
    func respondToRecording(_ method: HTTPRequest.Method, _ body: [UInt8]) async throws(APIError) -> Response {
        if method == .post {
            switch try await decoded(body, { (fields) throws(APIError) in try fields.text("state") }) {
            case "on": try await registry.startRecording()
            case "off": try await registry.endRecording()
            case nil: throw .missingField("state")
            default: throw .badBody("state must be on or off")
            }
        }
        guard let recording = await registry.recording else { throw ProxyRegistry.noRecording }
        return try await .json(
            work.run(bytes: recording.yamlBytes) {
                LinkRecording.shape.json((recording, ProcessClock.now))
            })
    }

    private static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
