public import Determinism
internal import Wire

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

    /// Returns the value of a header; the first if there are several.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.utf8.count == name.utf8.count && $0.name.hasSameBytes(ignoringCase: name) }?.value
    }

    /// Whether the media type is JSON.
    public var isJSON: Bool {
        guard let type = header("Content-Type") else { return false }
        let essence = type.utf8.prefix {
            $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t")
        }
        return String(Substring(essence)).hasSameBytes(ignoringCase: "application/json")
    }

    /// The delay requested by `Retry-After` (RFC 9110, 10.2.3): seconds, or a date relative to the response's `Date`.
    /// `nil` if there is none, or a date without a readable `Date`.
    public var retryAfter: Nanoseconds? {
        guard let text = header("Retry-After") else { return nil }
        if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
            // More digits than Int64 has are more than any limit of the policy.
            return .seconds(min(Int64(text) ?? .max, 1 << 32))
        }
        guard let time = HTTPDate.seconds(text), let date = header("Date").flatMap(HTTPDate.seconds) else { return nil }
        return time > date ? .seconds(min(time - date, 1 << 32)) : .zero
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

    var reason: String {
        switch self {
        case .notSent(let reason), .outcomeUnknown(let reason), .notHTTP(let reason): reason
        }
    }
}

/// A peer that is not the expected server: another server, or a captive portal or proxy on the way.
public struct ForeignServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The status of its response; `nil` if the bytes were not HTTP.
    public let status: Int?
    /// The content type of its response.
    public let contentType: String?
    /// The name of the expected server, such as "notes server".
    public let expected: String

    /// Creates the error.
    public init(status: Int?, contentType: String?, expected: String) {
        self.status = status
        self.contentType = contentType
        self.expected = expected
    }

    public var description: String {
        guard let status else { return "not a \(expected): the response is not HTTP" }
        let type = contentType.map { "content type \($0.prefix(60))" } ?? "no content type"
        return "not a \(expected): the response has status \(status) and \(type)"
    }
}
