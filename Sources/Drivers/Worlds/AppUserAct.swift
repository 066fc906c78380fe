public import Client
internal import Determinism
public import Scenario

/// An act of an app's user: the action of a step with the keys of its records.
public struct AppUserAct: Sendable {
    /// The act.
    public let act: AppAct
    /// The name and the key of the record that the act creates: a record has its name before it is visible.
    public let newRecord: (row: String, key: RecordKey)?

    /// Creates the act of an action.
    ///
    /// - Parameter ids: Identifiers of new records.
    public init(
        _ action: Scenario.Action, _ recorder: HistoryRecorder, ids: RandomIdentifiers
    ) throws(ActionError) {
        func key(_ row: String) throws(ActionError) -> RecordKey {
            guard let bytes = recorder.record(of: row), let key = RecordKey(String(decoding: bytes, as: UTF8.self))
            else {
                throw ActionError("no record is called '\(row)'")
            }
            return key
        }
        var added: (row: String, key: RecordKey)?
        switch action {
        case .create(let row, let title, let text):
            guard let new = RecordKey(ids.uuid()) else { throw ActionError("the identifier is no key") }
            added = (row, new)
            act = .create(new, Self.fields(title, text))
        case .edit(let row, let title, let text): act = .edit(try key(row), Self.fields(title, text))
        case .delete(let row): act = .delete(try key(row))
        case .pin(let row): act = .pin(try key(row))
        case .open(let row?): act = .open(try key(row))
        case .open(nil): act = .open(nil)
        case .sync: act = .sync
        case .call(let name, let arguments):
            var record: RecordKey?
            var fields = RecordFields()
            for argument in arguments {
                if argument.name == AppVocabulary.recordArgument {
                    record = try key(argument.value)
                } else {
                    fields[argument.name] = argument.value
                }
            }
            act = .call(name, record, fields)
        case .resolve, .choose, .editStale, .deleteStale, .keep, .send, .kill, .start, .upgrade, .clock, .signOut,
            .signIn,
            .disk, .server:
            throw ActionError(AppActError.unknown.description)
        }
        newRecord = added
    }

    private static func fields(_ title: String?, _ text: String?) -> RecordFields {
        var fields = RecordFields()
        fields["title"] = title
        fields["text"] = text
        return fields
    }
}
