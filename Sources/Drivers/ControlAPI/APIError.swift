internal import HTTPTypes
internal import Proxy
internal import Wire

/// An error response: a status and the text in `error`. Toxiproxy's errors have Toxiproxy's texts.
struct APIError: Error, Hashable {
    let status: HTTPResponse.Status
    let text: String

    init(_ status: HTTPResponse.Status, _ text: String) {
        self.status = status
        self.text = text
    }

    static let shape = JSONShape<APIError>(
        "Error", [.required("error", \.text, .text), .required("status", \.status.code, .count)])

    static func badBody(_ reason: String) -> APIError { APIError(.badRequest, "bad request body: \(reason)") }
    static func missingField(_ name: String) -> APIError { APIError(.badRequest, "missing required field: \(name)") }
    static let invalidStream = APIError(.badRequest, "stream was invalid, can be either upstream or downstream")
    static let invalidToxicType = APIError(.badRequest, "invalid toxic type")
    static let proxyNotFound = APIError(.notFound, "proxy not found")
    static let toxicNotFound = APIError(.notFound, "toxic not found")
    static let proxyExists = APIError(.conflict, "proxy already exists")
    static let toxicExists = APIError(.conflict, "toxic already exists")

    /// A failed `listen()` in the words of Go's `net` package.
    static func cannotBind(_ error: ProxyError) -> APIError {
        APIError(.internalServerError, "listen tcp \(error.endpoint): bind: \(error.reason)")
    }

    /// Returns the error with the number of the entry, from 1, in the body of `POST /populate`.
    func atProxy(_ number: Int) -> APIError { APIError(status, "\(text) at proxy \(number)") }

    /// Returns the error with the part of a definition in which it is.
    func of(_ part: String) -> APIError {
        let prefix = "bad request body: "
        let reason = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
        return APIError(status, "\(prefix)\(part): \(reason)")
    }
}
