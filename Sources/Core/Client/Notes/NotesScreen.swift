/// The screen of a notes app over the sync client: a pure function of the notes, of the belief about connectivity, and of
/// what the user has opened.
///
/// Everything is drawn from the store, so nothing on the screen waits for the network, and opening a screen causes no
/// request. The app asks nothing in a dialog: a decision is a control on the screen of its note.
public struct NotesScreen: Hashable, Sendable {
    /// A control that the user can use.
    public enum Control: String, CaseIterable, Hashable, Sendable {
        /// On the list.
        case create, open, sync
        /// On the screen of a note.
        case back, edit, delete
        /// On that of a note, if the app has pins.
        case pin
        /// For a note in conflict; `keep` if the note is deleted locally.
        case resolve, keep
        /// For a note with a parked change.
        case retry, dismiss
    }

    /// A message that vanishes by itself.
    public enum Toast: String, CaseIterable, Hashable, Sendable {
        case none
        /// The interface is down, or attempts have failed again. It vanishes when a request succeeds.
        case noConnection = "no-connection"
    }

    /// The open note; `nil` for the list.
    public let note: String?
    /// The controls that can be used.
    public let controls: [Control]
    /// The message.
    public let toast: Toast

    /// Creates the screen.
    ///
    /// - Parameters:
    ///   - note: The note that the user has opened; `nil` for the list. A note that vanishes leaves the list.
    ///   - hasPins: Whether notes can be pinned.
    public init(note: NotesView.Row?, connectivity: Connectivity, hasPins: Bool = false) {
        self.note = note?.uuid
        switch connectivity {
        case .interfaceDown, .unreachable: toast = .noConnection
        case .unknown, .online, .suspected, .interfaceNotAllowed: toast = .none
        }
        guard let note else {
            controls = [.create, .open, .sync]
            return
        }
        var controls: [Control] = [.back]
        if !note.isDeleted { controls += [.edit, .delete] }
        if !note.isDeleted, hasPins { controls.append(.pin) }
        switch note.icon {
        case .conflict: controls.append(note.isDeleted ? .keep : .resolve)
        case .error: controls += [.retry, .dismiss]
        case .none, .upload: break
        }
        self.controls = controls
    }
}

extension NotesView.Row {
    /// Whether the note is struck through: its deletion is pending.
    public var isStruck: Bool { isDeleted }

    /// Whether the note is drawn with half its opacity: its deletion is pending.
    public var isGrey: Bool { isDeleted }
}
