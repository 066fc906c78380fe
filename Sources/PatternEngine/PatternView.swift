/// What client X shows.
public struct PatternView: Hashable, Sendable {
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
        /// The inputs of a form, or the content of a page.
        public let fields: RecordFields
    }

    /// The visible records in the order of their keys.
    public let rows: [Row]
    /// The number of queued writes.
    public let outbox: Int
    /// The visible screen.
    public let screen: Screen
    /// The belief about connectivity.
    public let connectivity: String
}

/// The texts that client X shows.
public enum PatternText {
    /// The notice of a form or page while the device is offline.
    public static let offline = "offline"
    /// The error of a page that cannot be read.
    public static let failed = "failed"
    /// The error of a form of which nothing was sent.
    public static let notSent = "not-sent"
    /// The dialog after a submission whose response was lost.
    public static let unknownResult = "unknown-result"
    /// The dialog while a form is being submitted.
    public static let sending = "sending"
    /// The message after a successful submission.
    public static let sent = "sent"
    /// The message at a record if the server has given none.
    public static let generic = "the server has not accepted the change"
}
