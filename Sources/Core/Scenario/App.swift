extension Scenario {
    /// An app of Slowlane's with offline patterns.
    public enum App: String, CaseIterable, Hashable, Sendable {
        /// The expense app.
        case expense
        /// The network-first reader.
        case reader
        /// The field app.
        case field

        /// The header field that each response of its service has, such as `Slowlane-Expense`.
        public var markerField: String { "Slowlane-\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())" }

        /// What a scenario may ask of it.
        public var vocabulary: AppVocabulary {
            switch self {
            case .expense: .expense
            case .reader: .reader
            case .field: .field
            }
        }
    }

    /// A record of an app's service at the start.
    public struct SeedRecord: Hashable, Sendable {
        /// The record's name in the scenario.
        public var row: String
        /// The kind.
        public var kind: String
        /// The name of the record that contains it; `nil` for none.
        public var parent: String?
        /// The title.
        public var title: String?
        /// The text, such as the amount of an expense.
        public var text: String?
        /// Whether an expense is approved, so that it cannot be deleted.
        public var isApproved: Bool
        /// Further fields.
        public var fields: [Argument]

        /// Creates a record.
        public init(
            row: String, kind: String, parent: String? = nil, title: String? = nil, text: String? = nil,
            isApproved: Bool = false, fields: [Argument] = []
        ) {
            self.row = row
            self.kind = kind
            self.parent = parent
            self.title = title
            self.text = text
            self.isApproved = isApproved
            self.fields = fields
        }

        /// The app whose service has the record; `nil` for an unknown kind.
        public var app: App? { App.allCases.first { $0.vocabulary.kinds.contains { $0.name == kind } } }
    }

    /// The apps of the devices, whose services the server has.
    public var apps: [App] { App.allCases.filter { app in devices.contains { $0.client == .app(app) } } }
}
