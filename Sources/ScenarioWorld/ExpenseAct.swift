internal import Determinism
internal import JSON
public import PatternEngine
public import ScenarioModel

/// An act of a user of client X: the action of a step with the keys of its records.
public struct ExpenseAct: Sendable {
    /// The act.
    public let act: PatternEngine.Act
    /// The name and the key of the record that the act adds: a record has its name before it is visible.
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
            act = .add(new, Self.fields(title, text))
        case .edit(let row, let title, let text): act = .update(try key(row), Self.fields(title, text))
        case .delete(let row): act = .delete(try key(row))
        case .pin(let row): act = .update(try key(row), ["pinned": "true"])
        case .open(let row?): act = .open(.record(try key(row)))
        case .open(nil): act = .open(.list)
        case .sync: act = .sync
        case .call(let name, let arguments):
            func note() throws(ActionError) -> RecordKey {
                try key(arguments.first { $0.name == "note" }?.value ?? "")
            }
            switch ExpenseClient.Call(rawValue: name) {
            case .transfer: act = .open(.form("transfer"))
            case .balance: act = .open(.page("balance"))
            case .fill:
                var fields = RecordFields()
                for argument in arguments { fields[argument.name] = argument.value }
                act = .fill(fields)
            case .submit: act = .submit
            case .retry: act = .retry
            case .dismiss: act = .dismiss(try note())
            case .unpin: act = .update(try note(), ["pinned": "false"])
            case nil: throw ActionError("the expense app has no call '\(name)'")
            }
        case .resolve, .choose, .editStale, .deleteStale, .keep, .send, .kill, .start, .upgrade, .clock:
            throw ActionError("the expense app does not have this action")
        }
        newRecord = added
    }

    private static func fields(_ title: String?, _ text: String?) -> RecordFields {
        var fields = RecordFields()
        fields["title"] = title
        fields["amount"] = text
        return fields
    }
}

extension PatternChange {
    /// A digest of the change that is the same in every process and build.
    public var digest: UInt64 { FNV1a.digest(encoded.utf8) }

    /// The change as text, in an order that is the same in every process.
    private var encoded: String {
        var parts: [String] = []
        func text(_ fields: RecordFields) -> String { fields.json.json }
        for (key, record) in records.sorted(by: { $0.key < $1.key }) {
            guard let record else {
                parts.append("\(key) -")
                continue
            }
            let failure = record.failure.map { "\($0.action.rawValue) \(text($0.fields)) \(text($0.errors))" } ?? "-"
            parts.append("\(key) \(record.kind) \(record.confirmed.map(text) ?? "-") \(record.update) \(failure)")
        }
        for (sequence, write) in writes.sorted(by: { $0.key < $1.key }) {
            guard let write else {
                parts.append("\(sequence) -")
                continue
            }
            parts.append(
                "\(sequence) \(write.operation) \(write.action.rawValue) \(write.record) \(text(write.fields)) "
                    + "\(write.wasTried) \(write.serverErrors)")
        }
        for (form, draft) in drafts.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            guard let draft else {
                parts.append("\(form) -")
                continue
            }
            parts.append(
                "\(form) \(text(draft.fields)) \(draft.operation ?? "-") \(draft.submission.rawValue) \(text(draft.errors))"
            )
        }
        parts.append("\(lastUpdate.map(String.init) ?? "-") \(lastSequence.map(String.init) ?? "-")")
        return parts.joined(separator: "\n")
    }
}
