internal import Client
public import Wire

/// A request of the engine.
public struct ExpenseEngineRequest: Sendable {
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
        /// A form that reads.
        case query(form: String)

        /// The form that the request is about; `nil` for none.
        var form: String? {
            switch self {
            case .submit(let form, _), .status(let form, _), .query(let form): form
            case .write, .updates, .probe, .page: nil
            }
        }
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
    var pool: Int { activity.form == nil ? 0 : 1 }

    /// The request of the app.
    var encoded: AppRequest {
        AppRequest(
            number: number, method: method, target: target, operation: operation, json: body, pool: pool)
    }
}

/// A response of the service; anything else is a failure.
public struct ExpenseEngineResponse: Sendable {
    /// The status.
    public let status: Int
    /// The body; JSON `null` if it is empty.
    public let body: JSONValue
    /// The delay that the server asks for in whole seconds (RFC 9110, 10.2.3).
    public let retryAfterSeconds: Int?

    /// Whether the server has executed another request with the operation id of this one (``Client/App/AppResponse/isKeyReused``).
    var isKeyReused: Bool { status == 422 && body["type"].text == AppResponse.keyReusedType }

    /// Creates a response.
    public init(status: Int, body: JSONValue, retryAfterSeconds: Int? = nil) {
        self.status = status
        self.body = body
        self.retryAfterSeconds = retryAfterSeconds
    }
}
