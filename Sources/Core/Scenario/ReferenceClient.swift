/// What a scenario may ask of the reference client: calls, versions, and the values that its screen has.
///
/// The reference client is Slowlane's sync client with the screen of a notes app, `NotesScreen`.
public enum ReferenceClient {
    /// A call with `call`. Its argument `note` is the name of a note.
    public enum Call: String, CaseIterable, Hashable, Sendable {
        /// Sends a parked change again.
        case retry
        /// Discards a parked change.
        case dismiss
    }

    /// The versions of the client. The first one is emulated for `upgrade`: it has pins, and another layout of the store.
    public static let versions = 1...2
    /// The screens besides those of notes.
    public static let screens = ["list"]
    /// The controls.
    public static let controls = [
        "create", "open", "sync", "back", "edit", "delete", "pin", "resolve", "keep", "retry", "dismiss",
    ]
    /// The dialogs: the client has none.
    public static let dialogs = ["none"]
    /// The messages that vanish by themselves.
    public static let toasts = ["none", "no-connection"]
    /// The opacities of notes.
    public static let opacities = ["1", "0.5"]

    /// Returns the values that the client can show; `nil` if the values are not limited.
    ///
    /// - Parameter rows: The names of the scenario's notes.
    public static func values(of key: StateCondition.Check.Key, rows: Set<String>) -> [String]? {
        switch key {
        case .screen: screens + rows.sorted()
        case .control: controls
        case .dialog: dialogs
        case .toast: toasts
        case .opacity: opacities
        default: nil
        }
    }
}

extension Scenario {
    /// Returns the version of the reference client with which a device starts: the first one if its steps replace the
    /// client or use what only the first version has, otherwise the last one.
    public func initialVersion(of device: String) -> Int {
        let isFirst = steps.contains { step in
            guard let (actor, action) = step.action, actor == device else { return false }
            switch action {
            case .upgrade, .pin: return true
            default: return false
            }
        }
        return isFirst ? ReferenceClient.versions.lowerBound : ReferenceClient.versions.upperBound
    }
}
