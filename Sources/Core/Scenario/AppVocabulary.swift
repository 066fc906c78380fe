/// What a scenario may ask of an app: calls, records and settings, and the values that its screens have.
public struct AppVocabulary: Sendable {
    /// A call with `call`.
    public struct Call: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The arguments; ``AppVocabulary/recordArgument`` is the name of a record.
        public let arguments: [String]
        /// Whether the call needs all its arguments.
        public let needsArguments: Bool

        /// Creates a call.
        public init(_ name: String, _ arguments: [String] = [], needsArguments: Bool = false) {
            self.name = name
            self.arguments = arguments
            self.needsArguments = needsArguments
        }

        /// Creates a call with a record.
        public static func ofRecord(_ name: String) -> Call {
            Call(name, [AppVocabulary.recordArgument], needsArguments: true)
        }
    }

    /// A kind of record of the app's service.
    public struct RecordKind: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The kinds of the records that can contain it; empty for one at the root.
        public let parents: [String]
        /// Whether one of them must contain it.
        public let needsParent: Bool
        /// The fields besides title and text, given with `with`.
        public let fields: [String]

        /// Creates a kind at the root, or in a record of another kind.
        public init(_ name: String, in parent: String? = nil, fields: [String] = []) {
            self.name = name
            parents = parent.map { [$0] } ?? []
            needsParent = parent != nil
            self.fields = fields
        }

        /// Creates a kind at the root or in a record of one of other kinds.
        public init(_ name: String, rootOr parents: [String], fields: [String] = []) {
            self.name = name
            self.parents = parents
            needsParent = false
            self.fields = fields
        }
    }

    /// A setting of the app, given with a device's `settings`.
    public struct Setting: Hashable, Sendable {
        /// The possible values.
        public enum Values: Hashable, Sendable {
            /// One of these words.
            case words([String])
            /// A time such as `5m`.
            case time
            /// A number of bytes such as `2MB`.
            case size
        }

        /// The name.
        public let name: String
        /// The possible values.
        public let values: Values

        /// Creates a setting.
        public init(_ name: String, _ values: Values) {
            self.name = name
            self.values = values
        }
    }

    /// What invariants allow an app, or require of it, and no other.
    public struct Habits: OptionSet, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The app reads several lists, so that two reads without a record may overlap.
        static let severalLists = Habits(rawValue: 1)
        /// In an outage the app tries its other transfers before it waits.
        static let otherTransfersFirst = Habits(rawValue: 2)
        /// The app reads when its user does, also before the end of a Retry-After.
        static let readsOnRequest = Habits(rawValue: 4)
        /// The look of a record tells of offline changes, and a mark of errors.
        static let marksChanges = Habits(rawValue: 8)
        /// A record that was open is open again after a restart.
        static let restoresRecord = Habits(rawValue: 16)
    }

    /// The argument of a call that is the name of a record.
    public static let recordArgument = "note"

    /// The actions on the device of any app.
    static let deviceActions = ["kill", "start", "sign-out", "sign-in", "disk", "clock"]

    /// The app in words, such as `expense app`.
    public let title: String
    /// The actions of steps.
    public let actions: [String]
    /// The calls.
    public let calls: [Call]
    /// The kinds of records that the service may have at the start.
    public let kinds: [RecordKind]
    /// The settings.
    public let settings: [Setting]
    /// The screens besides those of records.
    public let screens: [String]
    /// A screen of a record in words, such as `a report`; `nil` if records have no screens.
    public let recordScreen: String?
    /// The controls.
    public let controls: [String]
    /// The dialogs besides `none`.
    public let dialogs: [String]
    /// The messages that vanish by themselves, besides `none`.
    public let toasts: [String]
    /// Whether the app shows all records of its service when it has synced.
    public let showsAllRecords: Bool
    /// The methods of requests that the app sends without an action of its user.
    public let ownMethods: [String]
    /// What invariants allow the app, or require of it.
    public let habits: Habits

    init(
        title: String, actions: [String], calls: [Call], kinds: [RecordKind] = [], settings: [Setting] = [],
        screens: [String], recordScreen: String? = nil, controls: [String], dialogs: [String] = [],
        toasts: [String] = [], showsAllRecords: Bool = true, ownMethods: [String] = ["GET"],
        habits: Habits
    ) {
        self.title = title
        self.actions = actions
        self.calls = calls
        self.kinds = kinds
        self.settings = settings
        self.screens = screens
        self.recordScreen = recordScreen
        self.controls = controls
        self.dialogs = dialogs
        self.toasts = toasts
        self.showsAllRecords = showsAllRecords
        self.ownMethods = ownMethods
        self.habits = habits
    }

    /// The opacities of records.
    public static let opacities = ["1", "0.5"]
    /// The markers.
    public static let markers = ["none", "red"]

    /// Returns the call with a name; `nil` if there is none.
    public func call(_ name: String) -> Call? { calls.first { $0.name == name } }

    /// Returns the values that the app can show; `nil` if the values are not limited.
    ///
    /// - Parameter rows: The names of the scenario's records.
    public func values(of key: StateCondition.Check.Key, rows: Set<String>) -> [String]? {
        switch key {
        case .screen: screens + (recordScreen == nil ? [] : rows.sorted())
        case .control: controls
        case .dialog: ["none"] + dialogs
        case .toast: ["none"] + toasts
        case .opacity: Self.opacities
        case .marker: Self.markers
        default: nil
        }
    }
}
