internal import Determinism
internal import NotesContract

/// A complete response.
public struct SyncResponse: Sendable {
    /// The status.
    public let status: Int
    /// The headers; names are case-insensitive.
    public let headers: [(name: String, value: String)]
    /// The body.
    public let body: [UInt8]

    /// Creates a response.
    public init(status: Int, headers: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    /// Whether the response comes from a notes server and not from an intermediary.
    var isFromNotesServer: Bool {
        guard header(NotesHTTP.markerName) == NotesHTTP.markerValue else { return false }
        if status == 204 || status == 304 { return true }
        return header("Content-Type")?.lowercased().hasPrefix("application/json") ?? false
    }

    /// The delay requested by `Retry-After`, at most an hour.
    var retryAfter: Nanoseconds {
        guard let text = header("Retry-After"), let seconds = Int64(text), seconds > 0 else { return .zero }
        return .seconds(min(seconds, 3600))
    }
}

/// The reason why an exchange ended without a response.
public enum SyncFailure: Hashable, Sendable {
    /// No byte of the request can have reached the server.
    case notSent(String)
    /// The server may have executed the request.
    case outcomeUnknown(String)
    /// The peer sent bytes that are not HTTP.
    case notHTTP(String)
}

/// A peer that is not a notes server: another server, or a captive portal or proxy on the way.
public struct ForeignServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The status of its response; `nil` if the bytes were not HTTP.
    public let status: Int?
    /// The content type of its response.
    public let contentType: String?

    /// Creates the error.
    public init(status: Int?, contentType: String?) {
        self.status = status
        self.contentType = contentType
    }

    public var description: String {
        guard let status else { return "not a notes server: the response is not HTTP" }
        let type = contentType.map { "content type \($0.prefix(60))" } ?? "no content type"
        return "not a notes server: the response has status \(status) and \(type); expected application/json and the "
            + "header '\(NotesHTTP.markerName): \(NotesHTTP.markerValue)'"
    }
}
