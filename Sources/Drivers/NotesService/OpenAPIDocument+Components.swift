internal import NotesContract
internal import Wire

/// Parameters and schemas.
extension OpenAPIDocument {
    var parameters: Members {
        func parameter(_ name: String, _ location: String, _ schema: JSONValue, _ description: String) -> JSONValue {
            [
                "name": .text(name), "in": .text(location), "required": .bool(location == "path"), "schema": schema,
                "description": .text(description),
            ]
        }
        let text: JSONValue = ["type": "string"]
        var all: Members = [
            "Name": parameter("uuid", "path", uuidSchema, "The note."),
            "Base": parameter(
                "revision", "query", ["type": "string", "minLength": 1], "The base revision."),
            "IfNoneMatch": parameter("If-None-Match", "header", text, "Entity tags that the client has."),
            "IfMatch": parameter("If-Match", "header", text, "Entity tags, one of which must be current."),
        ]
        if isExtended {
            all["Operation"] = parameter(
                "Idempotency-Key", "header", ["type": "string", "format": "uuid"],
                "Identifies the operation, so that a retry has no second effect. 1 to 255 characters, preferably a UUID."
            )
            all["IfModifiedSince"] = parameter("If-Modified-Since", "header", text, "An HTTP date.")
            all["Since"] = parameter("since", "query", text, "A cursor; only later writes are listed.")
            all["Limit"] = parameter(
                "limit", "query",
                ["type": "integer", "minimum": 1, "maximum": .integer(Int64(NotesService.Limits.pageEntriesMax))],
                "The maximum number of entries.")
        }
        if contract.features.contains(.attachments) {
            for (name, parameter) in attachmentParameters { all[name] = parameter }
        }
        return all
    }

    private var uuidSchema: JSONValue {
        contract.idFormat == .uuid
            ? ["type": "string", "format": "uuid"]
            : ["type": "string", "minLength": 1, "maxLength": 255]
    }

    var schemas: Members {
        let textOrNull: JSONValue = ["type": ["string", "null"]]
        let revision: JSONValue = ["type": "string", "pattern": "^[0-9]+-.+$", "maxLength": 255]
        let dateTyped: JSONValue =
            contract.reading.echoesDates ? ["type": "string"] : ["type": "string", "format": "date-time"]
        let base: JSONValue = ["type": "string", "minLength": 1]
        var note: Members = [
            "uuid": uuidSchema, "revision": revision, "date": dateTyped, "title": textOrNull, "text": textOrNull,
        ]
        let whole = note
        var draft = note
        draft["revision"] = nil
        note["revision"] = base
        note["uuid"] = nil
        var entry: Members = ["uuid": uuidSchema, "revision": revision]
        if isExtended {
            entry["deleted"] = ["const": true]
            entry["pinned"] = ["const": true]
        }
        let required: [JSONValue] =
            contract.update.putReplaces ? ["date", "title", "text"] : []
        let needsRevision: [JSONValue] = contract.features.contains(.ifMatch) ? [] : ["revision"]
        var all: Members = [
            "Document": ["type": "object", "required": ["openapi", "paths"]],
            "Health": [
                "type": "object", "required": ["status"],
                "properties": ["status": ["enum": ["ok", "unhealthy"]], "detail": ["type": "string"]],
            ],
            "Root": [
                "type": "object", "required": ["notes", "notes-uuids"],
                "properties": ["notes": ["type": "string"], "notes-uuids": ["type": "string"]],
            ],
            "Note": [
                "type": "object", "properties": .object(whole), "additionalProperties": false,
                "required": ["uuid", "revision", "date", "title", "text"],
            ],
            "NewNote": [
                "type": "object", "properties": .object(draft),
                "required": .array(contract.creation.requiresID ? ["uuid"] : []),
            ],
            "WholeNote": ["type": "object", "properties": .object(note), "required": .array(required + needsRevision)],
            "NoteChange": ["type": "object", "properties": .object(note), "required": .array(needsRevision)],
            "IndexEntry": [
                "type": "object", "properties": .object(entry), "required": ["uuid", "revision"],
                "additionalProperties": false,
            ],
            "Options": [
                "type": "object", "required": ["name", "description", "renders", "parses"],
            ],
            "Failure": [
                "description":
                    "The reason in `error` or `detail`, or by field; with `current` the stored note, with `type` the type of the problem.",
                "type": "object", "minProperties": 1,
                "properties": [
                    "error": ["type": "string"], "detail": ["type": "string"], "type": ["type": "string"],
                    "current": ["anyOf": [ref("schemas", "Note"), ref("schemas", "IndexEntry")]],
                ],
                "additionalProperties": ["type": "array", "items": ["type": "string"], "minItems": 1],
            ],
            "Login": [
                "type": "object", "required": ["username", "password"],
                "properties": ["username": ["type": "string"], "password": ["type": "string"]],
            ],
        ]
        if isExtended {
            all["ListedNote"] = ["anyOf": [ref("schemas", "Note"), ref("schemas", "IndexEntry")]]
            all["Pin"] = [
                "type": "object", "required": ["pinned"], "properties": ["pinned": ["type": "boolean"]],
            ]
            all["Attachment"] = attachmentSchema
            all["Refresh"] = [
                "type": "object", "required": ["refresh_token"], "properties": ["refresh_token": ["type": "string"]],
            ]
            all["Tokens"] = [
                "type": "object", "required": ["access_token", "token_type", "expires_in", "refresh_token"],
                "properties": [
                    "access_token": ["type": "string"], "token_type": ["const": "Bearer"],
                    "expires_in": ["type": "integer"], "refresh_token": ["type": "string"],
                ],
            ]
        }
        return all
    }
}
