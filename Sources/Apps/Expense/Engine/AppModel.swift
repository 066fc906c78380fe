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

    /// The policy of a form, which is submitted with a `POST`.
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

    /// The policy of a page with data of the server.
    public struct PagePolicy: Hashable, Sendable {
        /// The name, which is also that of its screen.
        public let name: String
        /// The path of the request after ``AppModel/basePath``.
        public let path: String
        /// The answers that determine the pattern.
        public let questions: ExpenseQuestions

        /// Creates a policy.
        public init(name: String, path: String, _ questions: ExpenseQuestions) {
            self.name = name
            self.path = path
            self.questions = questions
        }
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

    /// Returns the pattern of a write; `nil` if the app has no such write.
    public func pattern(of action: PendingAction, kind: String) -> OfflinePattern? {
        writes.first { $0.action == action && $0.kind == kind }?.questions.pattern
    }

    /// The app of the expense app: reports with expenses, chats that can be pinned, transfers of money, and the balance.
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
                ExpenseQuestions(access: .write, anticipatesResult: true, isForm: true, movesMoney: true))
        ],
        pages: [PagePolicy(name: "balance", path: "/pages/balance", ExpenseQuestions(access: .read))])
}
