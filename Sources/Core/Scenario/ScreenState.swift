extension History {
    /// What a device shows beside its notes, as its client publishes it. `nil` stands for a value that the client does
    /// not publish.
    public struct ScreenState: Hashable, Sendable {
        /// The name of the visible screen; that of a note is the note's name in the scenario.
        public let name: String?
        /// The controls that can be used, sorted.
        public let controls: [String]?
        /// The visible dialog; `none` for no dialog.
        public let dialog: String?
        /// The visible message that vanishes by itself; `none` for no message.
        public let toast: String?
        /// The notice or error on the screen; `none` for no such text.
        public let error: String?
        /// Whether the root of the app has a mark because a note has an error.
        public let hasMarker: Bool?
        /// The inputs or the content of the screen, each as `name=value`, sorted.
        public let fields: [String]?

        /// Creates a state.
        public init(
            name: String? = nil, controls: [String]? = nil, dialog: String? = nil, toast: String? = nil,
            error: String? = nil, hasMarker: Bool? = nil, fields: [String]? = nil
        ) {
            self.name = name
            self.error = error
            self.hasMarker = hasMarker
            self.fields = fields?.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            self.controls = controls?.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            self.dialog = dialog
            self.toast = toast
        }

        /// Returns the values that a check of the device compares with; `nil` if the client does not publish them.
        func values(of key: StateCondition.Check.Key) -> [String]? {
            switch key {
            case .screen: name.map { [$0] }
            case .control: controls
            case .dialog: dialog.map { [$0] }
            case .toast: toast.map { [$0] }
            case .error: error.map { [$0] }
            case .marker: hasMarker.map { [$0 ? "red" : "none"] }
            case .field: fields
            default: nil
            }
        }

        func encode(into encoder: inout EventEncoder) {
            encoder.add(name)
            encoder.add(controls?.count)
            for control in controls ?? [] { encoder.add(control) }
            encoder.add(dialog)
            encoder.add(toast)
            encoder.add(error)
            encoder.add(hasMarker)
            encoder.add(fields?.count)
            for field in fields ?? [] { encoder.add(field) }
        }

        /// The state in words, for a line of the event.
        var text: String {
            [("screen", name), ("dialog", dialog), ("toast", toast), ("error", error)]
                .compactMap { key, value in value.flatMap { $0 == "none" ? nil : " \(key) \($0)" } }.joined()
        }
    }
}

extension History.DeviceState {
    /// Returns the values of a device or of one of its notes that a check compares with; `nil` if the client does not
    /// publish them.
    func publishedValues(of key: StateCondition.Check.Key, _ row: Row?) -> [String]? {
        switch key {
        case .opacity: row?.opacity.map { [$0] }
        case .strike: row?.isStruck.map { ["\($0)"] }
        case .error where row != nil: row?.error.map { [$0] }
        case .marker where row != nil: row?.hasMarker.map { [$0 ? "red" : "none"] }
        default: screen.values(of: key)
        }
    }

    /// The screen keys of which the client has published a value.
    var publishedKeys: Set<StateCondition.Check.Key> {
        Set(
            StateCondition.screenKeys.filter { key in
                StateCondition.rowKeys.contains(key)
                    ? rows.contains { publishedValues(of: key, $0) != nil } : screen.values(of: key) != nil
            })
    }
}
