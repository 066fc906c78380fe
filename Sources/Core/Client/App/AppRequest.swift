public import Wire

/// A request of an engine. The machine adds `Host`, `Content-Length` and the credentials.
public struct AppRequest: Sendable {
    /// The number of the request; each has another.
    public let number: Int
    /// The method.
    public let method: String
    /// The request target.
    public let target: String
    /// Further header fields.
    public var fields: [(name: String, value: String)]
    /// The body.
    public var body: [UInt8]
    /// The connection pool: a request does not wait for those of another pool.
    public var pool: Int
    /// Whether the body of the response is reported in pieces as it arrives, so that a part of it survives a failure.
    public var isStreamed: Bool

    /// Creates a request.
    public init(
        number: Int, method: String, target: String, fields: [(name: String, value: String)] = [],
        body: [UInt8] = [], pool: Int = 0, isStreamed: Bool = false
    ) {
        self.number = number
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
        self.pool = pool
        self.isStreamed = isStreamed
    }

    /// Creates a request with JSON in both directions.
    ///
    /// - Parameters:
    ///   - operation: The operation id, sent as `Idempotency-Key`; `nil` for none.
    ///   - json: The body; `nil` for none.
    public init(
        number: Int, method: String, target: String, operation: String? = nil, json: JSONValue?, pool: Int = 0
    ) {
        self.init(number: number, method: method, target: target, pool: pool)
        fields.append((name: "Accept", value: "application/json"))
        if let operation { fields.append((name: "Idempotency-Key", value: "\"\(operation)\"")) }
        if let json {
            fields.append((name: "Content-Type", value: "application/json"))
            body = Array(json.json.utf8)
        }
    }
}

/// A response of an app's service, or a piece of one.
public struct AppResponse: Sendable {
    /// The status.
    public let status: Int
    /// The header fields.
    public let fields: [(name: String, value: String)]
    /// The body, or its next piece.
    public let body: [UInt8]

    /// The longest delay of `Retry-After` that is respected.
    static let retryAfterSecondsMax = 86_400

    /// Creates a response.
    public init(status: Int, fields: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Creates a response with a JSON body.
    public init(status: Int, json: JSONValue) { self.init(status: status, body: Array(json.json.utf8)) }

    /// The first value of a header field; its name is compared without case.
    public subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The body as JSON; `nil` if it is not JSON.
    public var json: JSONValue? { JSONText.parse(body) }

    /// Whether the request was successful.
    public var isSuccess: Bool { (200...299).contains(status) }

    /// The type of the problem with which a server rejects a request whose operation id belongs to another one.
    public static let keyReusedType = "urn:slowlane:idempotency-key-reused"

    /// Whether the server has executed another request with the operation id of this one. Such a response has status 422
    /// like one with messages by field, and says nothing about the fields.
    public var isKeyReused: Bool { status == 422 && json?["type"].text == Self.keyReusedType }

    /// The delay that the server requests, in whole seconds (RFC 9110, 10.2.3).
    public var retryAfterSeconds: Int? {
        self["Retry-After"].flatMap { Int($0) }.map { max(0, min(Self.retryAfterSecondsMax, $0)) }
    }
}

/// The reason why a request has no response of the service.
public struct AppFailure: Hashable, Sendable {
    /// A cause, as far as a user can understand it.
    public enum Cause: String, CaseIterable, Hashable, Sendable {
        /// There is no connection: refused, no route, an unknown name, or the interface is down.
        case noConnection = "no-connection"
        /// The server does not respond in time.
        case timeout
        /// The connection was lost before the response was complete.
        case lost
        /// Another server responds, such as a captive portal.
        case foreign
        /// The response breaks the protocol or a limit, or the request does.
        case malformed
    }

    /// The cause.
    public let cause: Cause
    /// Whether the server may have executed the request.
    public let wasSent: Bool

    /// Creates a failure.
    public init(_ cause: Cause, wasSent: Bool) {
        self.cause = cause
        self.wasSent = wasSent
    }

    /// Creates the failure of an exchange.
    init(_ error: HTTPClientError) {
        wasSent = error.phase != .notSent
        switch error.reason {
        case .connect(.timedOut), .timedOut: cause = .timeout
        case .connect, .cancelled: cause = .noConnection
        case .closedByPeer: cause = .lost
        case .notHTTP: cause = .foreign
        case .malformed, .bodyTooLarge, .tooManyWaiting: cause = .malformed
        }
    }
}
