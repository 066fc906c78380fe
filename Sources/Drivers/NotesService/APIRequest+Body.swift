internal import HTTPTypes
internal import NotesContract
internal import Wire

/// The note fields of a request body, in JSON or one of the two form encodings.
extension APIRequest {
    /// Returns the fields of the body.
    ///
    /// - Parameter allowsMergePatch: Whether PATCH accepts `application/merge-patch+json` (RFC 7396).
    func fields(allowsMergePatch: Bool) throws -> NoteFields {
        if body.isEmpty { return NoteFields(form: [:]) }
        switch mediaType {
        case nil, "application/json": return try jsonFields()
        case "application/merge-patch+json"? where allowsMergePatch && method == .patch: return try jsonFields()
        case "application/x-www-form-urlencoded"?:
            guard let form = FormURLEncoded.fields(body) else {
                throw HTTPProblem(.badRequest, "Form parse error - not UTF-8, or truncated after a '%'", key: "detail")
            }
            return NoteFields(form: form)
        case "multipart/form-data"?:
            guard let form = MultipartForm.fields(body, contentType: http.headerFields[.contentType] ?? "") else {
                throw HTTPProblem(.badRequest, "Multipart form parse error - truncated, or not UTF-8", key: "detail")
            }
            return NoteFields(form: form)
        case let name?:
            throw HTTPProblem(
                .unsupportedMediaType, "Unsupported media type '\(name.prefix(60))' in request.", key: "detail")
        }
    }

    private func jsonFields() throws -> NoteFields {
        guard let value = JSONText.parse(body) else {
            throw HTTPProblem(.badRequest, "JSON parse error - not JSON in UTF-8", key: "detail")
        }
        guard let fields = NoteFields(value) else {
            throw HTTPProblem(fields: ["non_field_errors": "Expected an object with the note's fields."])
        }
        return fields
    }
}
