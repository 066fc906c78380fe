internal import HTTPTypes

/// Pages that a program serves beside the dashboard, with the access control and the header fields of the dashboard.
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
    /// Performs a POST to a path, and returns its content; `nil` if there is none.
    let action: @Sendable (_ path: String, _ query: String, _ body: [UInt8]) async -> Content?

    /// Creates pages.
    ///
    /// - Parameter action: Performs a POST. Browsers must send the header field of the dashboard's own requests, which
    ///   pages of other origins cannot send.
    public init(
        action: @escaping @Sendable (_ path: String, _ query: String, _ body: [UInt8]) async -> Content? = { _, _, _ in
            nil
        },
        _ content: @escaping @Sendable (_ path: String, _ query: String) async -> Content?
    ) {
        self.content = content
        self.action = action
    }

    func response(
        to request: HTTPRequest, _ parts: [String], query: String, body: [UInt8]
    ) async -> API.Response? {
        let path = parts.joined(separator: "/")
        let found: Content?
        switch request.method {
        case .get, .head:
            found = await content(path, query)
            // A reader of events holds a connection.
            if case .events? = found, let rejection = RequestGuard.rejectionOfForeignPage(request) {
                return .error(rejection)
            }
        case .post where request.headerFields[Dashboard.marker] != nil: found = await action(path, query, body)
        default: return nil
        }
        var response: API.Response
        switch found {
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
