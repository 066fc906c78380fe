internal import HTTPTypes

/// Pages that a program serves beside the dashboard: GET only, with the access control and the header fields of the dashboard.
public struct AdditionalPages: Sendable {
    /// The content of a page.
    public enum Content: Sendable {
        /// A text of a media type.
        case text(String, type: String)
        /// Server-sent events: returns the next ones as text, and `nil` at the end.
        case events(@Sendable () async -> String?)
        /// A request that is not valid, and why.
        case invalid(String)
    }

    /// Returns the content of a path without its slash at the start, and its query; `nil` if there is none.
    let content: @Sendable (_ path: String, _ query: String) async -> Content?

    /// Creates pages.
    public init(_ content: @escaping @Sendable (_ path: String, _ query: String) async -> Content?) {
        self.content = content
    }

    func response(to request: HTTPRequest, _ parts: [String], query: String) async -> API.Response? {
        guard request.method == .get || request.method == .head else { return nil }
        var response: API.Response
        switch await content(parts.joined(separator: "/"), query) {
        case .text(let text, let type): response = API.Response(status: .ok, type: type, body: text)
        case .events(let next):
            response = API.Response(status: .ok, type: "text/event-stream")
            response.stream = next
        case .invalid(let reason): response = .error(APIError(.badRequest, reason))
        case nil: return nil
        }
        response.isRouted = false
        response.headers[.cacheControl] = "no-store"
        Dashboard.secure(&response)
        return response
    }
}
