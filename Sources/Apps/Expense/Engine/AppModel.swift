public import Client

/// An app as the engine needs it: its operations with the answers to the questions of the flow chart, and its paths.
public struct AppModel: Sendable {
    /// The policy of a write of a record.
    public struct WritePolicy: Hashable, Sendable {
        /// The kind of record.
        public let kind: String
        /// The change.
        public let action: PendingAction
        /// The answers that determine the pattern.
        public let questions: ExpenseQuestions

        /// Creates a policy.
        public init(kind: String, _ action: PendingAction, _ questions: ExpenseQuestions) {
            self.kind = kind
            self.action = action
            self.questions = questions
        }
    }

    /// The policy of a form. A write is submitted with a `POST`, a read with a `GET` whose query has the inputs.
    public struct FormPolicy: Hashable, Sendable {
        /// The name, which is also that of its screen.
        public let name: String
        /// The path of the request after ``AppModel/basePath``.
        public let path: String
        /// The inputs.
        public let fields: [String]
        /// The answers that determine the pattern.
        public let questions: ExpenseQuestions

        /// Creates a policy.
        public init(name: String, path: String, fields: [String], _ questions: ExpenseQuestions) {
            self.name = name
            self.path = path
            self.fields = fields
            self.questions = questions
        }
    }

    /// The policy of a page. A read is a `GET`; a write, which the page shows the result of, is a `POST`.
    public struct PagePolicy: Hashable, Sendable {
        /// The content of a page.
        public enum Content: Hashable, Sendable {
            /// The response to a request to this path after ``AppModel/basePath``.
            case path(String)
            /// Part of the app.
            case local(RecordFields)
        }

        /// The name, which is also that of its screen.
        public let name: String
        /// The content.
        public let content: Content
        /// The answers that determine the pattern.
        public let questions: ExpenseQuestions

        /// Creates a policy.
        public init(name: String, _ content: Content, _ questions: ExpenseQuestions) {
            self.name = name
            self.content = content
            self.questions = questions
        }

        /// The part of the app that is the content; `nil` if the server has it.
        var localContent: RecordFields? { if case .local(let fields) = content { fields } else { nil } }

        /// Whether the request changes something, so that it is never sent by itself.
        var isWrite: Bool { questions.access == .write }
    }

    /// The path of the service, without a slash at its end.
    public let basePath: String
    /// The header field with the value `1` that each response of the service has.
    public let markerField: String
    /// The kinds of records that can be opened.
    public let containers: Set<String>
    /// The kind of the records that users add to a container.
    public let addedKind: String
    /// The writes.
    public let writes: [WritePolicy]
    /// The forms.
    public let forms: [FormPolicy]
    /// The pages.
    public let pages: [PagePolicy]

    /// Creates a model.
    public init(
        basePath: String, markerField: String, containers: Set<String>, addedKind: String, writes: [WritePolicy],
        forms: [FormPolicy], pages: [PagePolicy]
    ) {
        self.basePath = basePath
        self.markerField = markerField
        self.containers = containers
        self.addedKind = addedKind
        self.writes = writes
        self.forms = forms
        self.pages = pages
    }

    /// The first operation that contradicts its place: its answers lead to a pattern that is shown elsewhere. `nil` if there
    /// is none.
    public var contradiction: String? {
        for write in writes where ![.optimistic, .optimisticWithPendingUI].contains(write.questions.pattern) {
            return
                "\(write.action.rawValue) of '\(write.kind)' is \(write.questions.pattern.rawValue), so it cannot be queued"
        }
        for form in forms where form.questions.pattern != .blockingForm {
            return "the form '\(form.name)' is \(form.questions.pattern.rawValue)"
        }
        for page in pages {
            let expected: OfflinePattern = page.localContent == nil ? .blockingPage : .none
            if page.questions.pattern != expected {
                return "the page '\(page.name)' is \(page.questions.pattern.rawValue), not \(expected.rawValue)"
            }
        }
        return nil
    }

    func form(_ name: String) -> FormPolicy? { forms.first { $0.name == name } }

    func page(_ name: String) -> PagePolicy? { pages.first { $0.name == name } }

    /// Returns the pattern of a write; `nil` if the app has no such write.
    public func pattern(of action: PendingAction, kind: String) -> OfflinePattern? {
        writes.first { $0.action == action && $0.kind == kind }?.questions.pattern
    }

    /// The expense app: reports with expenses, chats that can be pinned, transfers of money, the balance, a search, the order
    /// of a statement, and a page about the app.
    public static let expense = AppModel(
        basePath: "/expense", markerField: "Slowlane-Expense", containers: ["report"], addedKind: "expense",
        writes: [
            // The client knows the result, and the user needs to know whether the server has accepted it.
            WritePolicy(
                kind: "expense", .add, ExpenseQuestions(access: .write, anticipatesResult: true, mustKnowResult: true)),
            WritePolicy(
                kind: "expense", .update,
                ExpenseQuestions(access: .write, anticipatesResult: true, mustKnowResult: true)),
            WritePolicy(
                kind: "expense", .delete,
                ExpenseQuestions(access: .write, anticipatesResult: true, mustKnowResult: true)),
            // Nothing depends on the success of a pin.
            WritePolicy(kind: "chat", .update, ExpenseQuestions(access: .write, anticipatesResult: true)),
        ],
        forms: [
            FormPolicy(
                name: "transfer", path: "/transfers", fields: ["amount", "memo", "to"],
                ExpenseQuestions(access: .write, anticipatesResult: true, isForm: true, movesMoney: true)),
            // What the server finds must be current.
            FormPolicy(
                name: "search", path: "/search", fields: ["title"], ExpenseQuestions(access: .read, isForm: true)),
        ],
        pages: [
            PagePolicy(name: "balance", .path("/pages/balance"), ExpenseQuestions(access: .read)),
            // Only the server knows whether there is anything to state.
            PagePolicy(name: "statement", .path("/pages/statement"), ExpenseQuestions(access: .write)),
            PagePolicy(
                name: "about", .local(["version": "1"]), ExpenseQuestions(interactsWithServer: false, access: .read)),
        ])
}
