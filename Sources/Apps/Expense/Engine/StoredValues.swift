internal import Client
internal import Wire

// The JSON of stored values.

extension StoredRecord {
    var stored: JSONValue {
        [
            "key": .text(key.text), "kind": .text(kind), "parent": parent.map { .text($0.text) } ?? .null,
            "confirmed": confirmed?.json ?? .null, "update": .integer(Int64(update)),
            "failure": failure.map { failure in
                [
                    "action": .text(failure.action.rawValue), "fields": failure.fields.json,
                    "errors": failure.errors.json,
                ]
            } ?? .null,
        ]
    }

    init?(stored json: JSONValue) {
        guard let key = json["key"].text.flatMap({ RecordKey($0) }), let kind = json["kind"].text,
            case .integer(let update) = json["update"]
        else { return nil }
        var failure: Failure?
        if let object = json["failure"].object {
            guard let action = object["action"]?.text.flatMap({ PendingAction(rawValue: $0) }),
                let fields = RecordFields(object["fields"] ?? .null),
                let errors = RecordFields(object["errors"] ?? .null)
            else { return nil }
            failure = Failure(action: action, fields: fields, errors: errors)
        }
        self.init(
            key: key, kind: kind, parent: json["parent"].text.flatMap { RecordKey($0) },
            confirmed: RecordFields(json["confirmed"]), update: Int(update), failure: failure)
    }
}

extension QueuedWrite {
    var stored: JSONValue {
        [
            "sequence": .integer(Int64(sequence)), "operation": .text(operation), "action": .text(action.rawValue),
            "record": .text(record.text), "kind": .text(kind), "parent": parent.map { .text($0.text) } ?? .null,
            "pattern": .text(pattern.rawValue), "fields": fields.json, "tried": .bool(wasTried),
            "serverErrors": .integer(Int64(serverErrors)),
        ]
    }

    init?(stored json: JSONValue) {
        guard case .integer(let sequence) = json["sequence"], let operation = json["operation"].text,
            let action = json["action"].text.flatMap({ PendingAction(rawValue: $0) }),
            let record = json["record"].text.flatMap({ RecordKey($0) }), let kind = json["kind"].text,
            let pattern = json["pattern"].text.flatMap({ OfflinePattern(rawValue: $0) }),
            let fields = RecordFields(json["fields"]), case .integer(let errors) = json["serverErrors"]
        else { return nil }
        self.init(
            sequence: Int(sequence), operation: operation, action: action, record: record, kind: kind,
            parent: json["parent"].text.flatMap { RecordKey($0) }, pattern: pattern, fields: fields,
            wasTried: json["tried"] == .bool(true))
        serverErrors = Int(errors)
    }
}

extension FormDraft {
    var stored: JSONValue {
        [
            "form": .text(form), "fields": fields.json, "operation": operation.map { .text($0) } ?? .null,
            "submission": .text(submission.rawValue), "errors": errors.json,
        ]
    }

    init?(stored json: JSONValue) {
        guard let form = json["form"].text, let fields = RecordFields(json["fields"]),
            let submission = json["submission"].text.flatMap({ Submission(rawValue: $0) }),
            let errors = RecordFields(json["errors"])
        else { return nil }
        self.init(form: form, fields: fields, operation: json["operation"].text, submission: submission, errors: errors)
    }
}
