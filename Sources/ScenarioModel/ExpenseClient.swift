/// What a scenario may ask of client X, the expense app: calls, and the values that its screens have.
public enum ExpenseClient {
    /// A call with `call`.
    public enum Call: String, CaseIterable, Hashable, Sendable {
        /// Opens the form for a transfer of money.
        case transfer
        /// Opens the page with the balance.
        case balance
        /// Fills in inputs of the open form.
        case fill
        /// Submits the open form.
        case submit
        /// Reads the open page again.
        case retry
        /// Dismisses the error of a record.
        case dismiss
        /// Takes back the pin of a chat.
        case unpin

        /// The arguments; `note` is the name of a record.
        public var arguments: [String] {
            switch self {
            case .transfer, .balance, .submit, .retry: []
            case .fill: ["amount", "memo", "to"]
            case .dismiss, .unpin: ["note"]
            }
        }

        /// Whether the call needs all its arguments.
        public var needsArguments: Bool { self == .dismiss || self == .unpin }
    }

    /// The actions of steps.
    public static let actions = ["create", "edit", "delete", "pin", "open", "sync", "kill", "start", "call"]
    /// The screens besides those of reports.
    public static let screens = ["list", "transfer", "balance"]
    /// The controls.
    public static let controls = [
        "add", "back", "balance", "delete", "dismiss", "edit", "fill", "open", "pin", "retry", "submit", "transfer",
    ]
    /// The dialogs.
    public static let dialogs = ["none", "sending", "unknown-result"]
    /// The messages that vanish by themselves.
    public static let toasts = ["none", "sent"]
    /// The opacities of records.
    public static let opacities = ["1", "0.5"]
    /// The markers.
    public static let markers = ["none", "red"]

    /// Returns the values that the client can show; `nil` if the values are not limited.
    ///
    /// - Parameter rows: The names of the scenario's records.
    public static func values(of key: StateCondition.Check.Key, rows: Set<String>) -> [String]? {
        switch key {
        case .screen: screens + rows.sorted()
        case .control: controls
        case .dialog: dialogs
        case .toast: toasts
        case .opacity: opacities
        case .marker: markers
        default: nil
        }
    }
}

extension Scenario {
    /// A record of the expense service at the start.
    public struct SeedRecord: Hashable, Sendable {
        /// A kind of record.
        public enum Kind: String, CaseIterable, Hashable, Sendable { case report, expense, chat }

        /// The record's name in the scenario.
        public let row: String
        /// The kind.
        public let kind: Kind
        /// The name of the report that contains it; `nil` for none.
        public let parent: String?
        /// The title.
        public let title: String?
        /// The text: the amount of an expense.
        public let text: String?
        /// Whether an expense is approved, so that it cannot be deleted.
        public let isApproved: Bool

        /// Creates a record.
        public init(
            row: String, kind: Kind, parent: String? = nil, title: String? = nil, text: String? = nil,
            isApproved: Bool = false
        ) {
            self.row = row
            self.kind = kind
            self.parent = parent
            self.title = title
            self.text = text
            self.isApproved = isApproved
        }
    }

    /// Whether the client of a device is the expense app, so that the server has its service.
    public var hasExpenseClient: Bool { devices.contains { $0.client == .expense } }
}
