import Scenario
import Testing
import Worlds

@testable import Client

/// The screen of the reference client.
@Suite struct ScreenTests {
    /// What the linter accepts is what the client can show.
    @Test func theModelKnowsTheValuesOfTheClient() {
        #expect(Set(ReferenceClient.controls) == Set(NotesScreen.Control.allCases.map(\.rawValue)))
        #expect(ReferenceClient.toasts == NotesScreen.Toast.allCases.map(\.rawValue))
        #expect(Array(ReferenceClient.versions) == ClientVersion.allCases.map(\.rawValue))
    }

    private static func row(_ icon: RecordRow.Icon, isDeleted: Bool) -> NotesView.Row {
        let content = NoteContent(title: "t", text: "x", date: "d").encoded
        return NotesView.Row(
            RecordRow(
                id: "a", content: content, icon: icon, isDeleted: isDeleted, revision: nil, kept: [content],
                problem: nil))
    }

    /// Each decision that a note waits for is a control of its screen, and no other is.
    @Test func theControlsFollowFromTheNote() {
        func controls(_ icon: RecordRow.Icon, isDeleted: Bool = false) -> [NotesScreen.Control] {
            NotesScreen(note: Self.row(icon, isDeleted: isDeleted), connectivity: .online).controls
        }
        #expect(controls(.none) == [.back, .edit, .delete] && controls(.upload) == controls(.none))
        #expect(controls(.conflict) == [.back, .edit, .delete, .resolve])
        #expect(controls(.conflict, isDeleted: true) == [.back, .keep])
        #expect(controls(.error) == [.back, .edit, .delete, .retry, .dismiss])
        #expect(controls(.upload, isDeleted: true) == [.back])
        let first = NotesScreen(note: Self.row(.none, isDeleted: false), connectivity: .online, hasPins: true)
        #expect(first.controls == [.back, .edit, .delete, .pin])
        #expect(NotesScreen(note: nil, connectivity: .online).controls == [.create, .open, .sync])
        #expect(Self.row(.upload, isDeleted: true).isGrey && Self.row(.upload, isDeleted: true).isStruck)
        #expect(!Self.row(.upload, isDeleted: false).isGrey && !Self.row(.error, isDeleted: false).isStruck)
    }

    /// One failure is repeated at once, so it is no message yet.
    @Test func aLostConnectionIsAMessage() {
        func toast(_ connectivity: Connectivity) -> NotesScreen.Toast {
            NotesScreen(note: nil, connectivity: connectivity).toast
        }
        #expect([.unknown, .online, .suspected, .interfaceNotAllowed].allSatisfy { toast($0) == .none })
        #expect(toast(.interfaceDown) == .noConnection && toast(.unreachable(failures: 2)) == .noConnection)
    }
}
