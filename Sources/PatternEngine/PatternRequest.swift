internal import HTTPTypes
internal import HTTPWire
public import JSON

/// A request of the engine.
public struct PatternRequest: Sendable {
    /// The purpose of a request.
    public enum Activity: Hashable, Sendable {
        /// The write with this sequence number.
        case write(Int)
        /// The updates of the server since the last one.
        case updates
        /// The question whether the server can be reached.
        case probe
        /// The submission of a form with an operation id.
        case submit(form: String, operation: String)
        /// The question whether the server has executed the submission of a form.
        case status(form: String, operation: String)
        /// The content of a page.
        case page(String)
    }

    /// The number of earlier requests.
    public let number: Int
    /// The purpose.
    public let activity: Activity
    /// The method.
    public let method: String
    /// The request target.
    public let target: String
    /// The operation id.
    public let operation: String?
    /// The body; `nil` for none.
    public let body: JSONValue?

    /// The connection pool: forms do not wait for the write queue.
    var pool: Int {
        switch activity {
        case .submit, .status: 1
        case .write, .updates, .probe, .page: 0
        }
    }

    /// Returns the request with the header fields.
    func encoded(authorization: String?) -> HTTPClientRequest {
        var fields: [(name: String, value: String)] = []
        if let authorization { fields.append((name: "Authorization", value: authorization)) }
        fields.append((name: "Accept", value: "application/json"))
        if let operation { fields.append((name: "Idempotency-Key", value: "\"\(operation)\"")) }
        var bytes: [UInt8] = []
        if let body {
            fields.append((name: "Content-Type", value: "application/json"))
            bytes = Array(body.json.utf8)
        }
        return HTTPClientRequest(method: method, target: target, fields: fields, body: bytes)
    }
}

/// A response of the service; anything else is a failure.
public struct PatternResponse: Sendable {
    /// The status.
    public let status: Int
    /// The body; JSON `null` if it is empty.
    public let body: JSONValue
    /// The delay that the server asks for in whole seconds (RFC 9110, 10.2.3).
    public let retryAfterSeconds: Int?

    /// The longest delay that is respected.
    static let retryAfterSecondsMax = 86_400

    /// Creates a response.
    public init(status: Int, body: JSONValue, retryAfterSeconds: Int? = nil) {
        self.status = status
        self.body = body
        self.retryAfterSeconds = retryAfterSeconds
    }

    /// Creates a response from one over HTTP; `nil` if it is not one of the service.
    ///
    /// - Parameter markerField: The header field with the value `1` that each response of the service has.
    init?(_ response: HTTPClientResponse, markerField: String) {
        func value(of name: String) -> String? {
            response.head.fieldLines.first { $0.name.lowercased() == name.lowercased() }?.value
        }
        guard value(of: markerField) == "1", let body = JSONText.parse(response.body) else { return nil }
        status = response.head.status
        self.body = body
        retryAfterSeconds = value(of: "Retry-After").flatMap { Int($0) }.map {
            max(0, min(Self.retryAfterSecondsMax, $0))
        }
    }
}
