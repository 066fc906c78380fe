/// What an app shows.
public struct AppView: Hashable, Sendable {
    /// A record.
    public struct Row: Hashable, Sendable {
        /// The identifier.
        public let key: RecordKey
        /// The visible fields.
        public let fields: RecordFields
        /// Whether the record has the look of a pending change.
        public let isPending: Bool
        /// Whether the record is drawn with half opacity.
        public let isGrey: Bool
        /// Whether the record is struck through.
        public let isStruck: Bool
        /// Whether a deletion of the record is pending.
        public let isDeleted: Bool
        /// The message at the record, with a button that dismisses it; `nil` for none.
        public let error: String?
        /// Whether the record has a red dot: it or a record in it has an error.
        public let hasMarker: Bool

        /// Creates a record with the look of one that is not pending.
        public init(
            key: RecordKey, fields: RecordFields, isPending: Bool = false, isGrey: Bool = false,
            isStruck: Bool = false, isDeleted: Bool = false, error: String? = nil, hasMarker: Bool = false
        ) {
            self.key = key
            self.fields = fields
            self.isPending = isPending
            self.isGrey = isGrey
            self.isStruck = isStruck
            self.isDeleted = isDeleted
            self.error = error
            self.hasMarker = hasMarker
        }
    }

    /// The visible screen.
    public struct Screen: Hashable, Sendable {
        /// The name: `list`, that of a record, a form or a page.
        public let name: String
        /// The record that is open; `nil` for another screen.
        public let record: RecordKey?
        /// The controls that can be used.
        public let controls: [String]
        /// The visible dialog; `nil` for none.
        public let dialog: String?
        /// The message that vanishes by itself; `nil` for none.
        public let toast: String?
        /// The notice or error on the screen; `nil` for none.
        public let error: String?
        /// Whether the root has a red dot: a record has an error.
        public let hasMarker: Bool
        /// The inputs of a form, the content of a page, or other values that the screen shows.
        public let fields: RecordFields

        /// Creates a screen.
        public init(
            name: String, record: RecordKey? = nil, controls: [String], dialog: String? = nil, toast: String? = nil,
            error: String? = nil, hasMarker: Bool = false, fields: RecordFields = [:]
        ) {
            self.name = name
            self.record = record
            self.controls = controls
            self.dialog = dialog
            self.toast = toast
            self.error = error
            self.hasMarker = hasMarker
            self.fields = fields
        }
    }

    /// The visible records in the order of their keys.
    public let rows: [Row]
    /// The number of queued writes.
    public let outbox: Int
    /// The visible screen.
    public let screen: Screen
    /// The belief about connectivity.
    public let connectivity: ConnectivityEstimate.Belief

    /// Creates a view.
    public init(rows: [Row], outbox: Int, screen: Screen, connectivity: ConnectivityEstimate.Belief) {
        self.rows = rows
        self.outbox = outbox
        self.screen = screen
        self.connectivity = connectivity
    }
}
