internal import Client
internal import Wire

/// A form of the reader.
enum ReaderForm: String, CaseIterable, Hashable, Sendable {
    /// Feedback to the editors. Its result does not affect what the user does next, so it is sent in the background.
    case feedback
    /// An account. The next page depends on its result, so it blocks the app.
    case signUp = "sign-up"

    /// Whether the user waits for the result.
    var isBlocking: Bool { self == .signUp }

    /// The path after that of the service.
    var path: String { self == .feedback ? "/feedback" : "/accounts" }

    /// The inputs.
    var inputs: [String] { self == .feedback ? ["contact", "message"] : ["name", "password"] }

    /// The inputs that are never stored and never shown.
    var secrets: [String] { self == .signUp ? ["password"] : [] }

    /// The form in texts.
    var subject: String { self == .feedback ? "your feedback" : "your account" }
}

/// The inputs of a form that was not submitted, and the operation id of a submission without a result.
struct FormDraft {
    var fields: RecordFields = [:]
    var operation: String?

    init() {}

    init?(stored json: JSONValue) {
        guard let fields = RecordFields(json["fields"]) else { return nil }
        self.fields = fields
        operation = json["operation"].text
    }

    var stored: JSONValue { ["fields": fields.json, "operation": operation.map { .text($0) } ?? .null] }
}

/// A form that is sent in the background.
struct OutgoingForm {
    enum State: String {
        /// It is sent as soon as those before it have a result.
        case sending
        /// It has failed, and the user decides.
        case failed
        /// It is sent when there is a connection.
        case later
    }

    let sequence: Int
    let form: ReaderForm
    let fields: RecordFields
    let operation: String
    var state: State
    /// The last problem.
    var problem: ReaderProblem

    init(sequence: Int, form: ReaderForm, fields: RecordFields, operation: String) {
        self.sequence = sequence
        self.form = form
        self.fields = fields
        self.operation = operation
        state = .sending
        problem = .cannotSave
    }

    init?(sequence: Int, stored json: JSONValue) {
        guard let form = json["form"].text.flatMap({ ReaderForm(rawValue: $0) }),
            let fields = RecordFields(json["fields"]), let operation = json["operation"].text,
            let state = json["state"].text.flatMap({ State(rawValue: $0) }),
            let problem = json["problem"].text.flatMap({ ReaderProblem(rawValue: $0) })
        else { return nil }
        self.init(sequence: sequence, form: form, fields: fields, operation: operation)
        self.state = state
        self.problem = problem
    }

    var stored: JSONValue {
        [
            "form": .text(form.rawValue), "fields": fields.json, "operation": .text(operation),
            "state": .text(state.rawValue), "problem": .text(problem.rawValue),
        ]
    }
}

/// A like, or the end of one, that has no result.
struct LikeOperation {
    let sequence: Int
    let article: RecordKey
    /// The state that the user wants.
    let isLiked: Bool
    /// The visit of the page on which the user has tapped; `nil` after a restart.
    var visit: Int?

    init(sequence: Int, article: RecordKey, isLiked: Bool, visit: Int?) {
        self.sequence = sequence
        self.article = article
        self.isLiked = isLiked
        self.visit = visit
    }

    init?(sequence: Int, stored json: JSONValue) {
        guard let article = json["article"].text.flatMap({ RecordKey($0) }), case .bool(let isLiked) = json["liked"]
        else { return nil }
        self.init(sequence: sequence, article: article, isLiked: isLiked, visit: nil)
    }

    var stored: JSONValue { ["article": .text(article.text), "liked": .bool(isLiked)] }
}
