internal import HTTPTypes
internal import Wire

/// An error that ends a request with a response.
struct HTTPProblem: Error {
    let response: NotesService.Response

    init(_ response: NotesService.Response) { self.response = response }

    init(_ status: HTTPResponse.Status, _ message: String, key: String = "error") {
        response = .error(status, message, key: key)
    }

    /// 404, for a resource that does not exist or belongs to another user.
    static var notFound: HTTPProblem { HTTPProblem(.notFound, "Not found", key: "detail") }

    /// 422, for a request whose `Idempotency-Key` belongs to another request (RFC 9457).
    static var keyReused: HTTPProblem {
        HTTPProblem(
            .json(
                .unprocessableContent,
                JSONText.object([
                    ("type", JSONText.string("urn:slowlane:idempotency-key-reused")),
                    ("detail", JSONText.string("This Idempotency-Key was used for another request")),
                ])))
    }

    /// 400 with a message for each invalid field.
    init(fields: [String: String]) {
        let members = fields.sorted { $0.key < $1.key }.map { ($0.key, JSONText.array([JSONText.string($0.value)])) }
        response = .json(.badRequest, JSONText.object(members))
    }
}
