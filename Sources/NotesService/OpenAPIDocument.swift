internal import HTTPTypes
internal import JSON
internal import NotesContract

/// What the server does, as OpenAPI 3.1 describes it: one document a dialect, made from the dialect itself.
struct OpenAPIDocument {
    let contract: APIContract

    private typealias Members = JSONObject
    private var isModern: Bool { contract.features.contains(.validators) }

    /// The document.
    var document: JSONValue {
        [
            "openapi": "3.1.0",
            "info": [
                "title": "Slowlane notes server", "version": .text(NotesHTTP.markerValue),
                "description": .text("Contract \(contract.name): \(contract.summary)."),
            ],
            "security": .array(schemes.keys.map { .object([$0: []]) }),
            "paths": .object(paths),
            "components": [
                "securitySchemes": .object(schemes), "schemas": .object(schemas), "parameters": .object(parameters),
                "headers": [
                    "Marker": [
                        "description": "Tells this server from whatever sits in between.", "required": true,
                        "schema": ["const": .text(NotesHTTP.markerValue)],
                    ]
                ],
            ],
        ]
    }

    private var schemes: Members {
        var schemes: Members = ["basic": ["type": "http", "scheme": "basic"]]
        if contract.features.contains(.tokens) { schemes["bearer"] = ["type": "http", "scheme": "bearer"] }
        return schemes
    }

    // MARK: Paths

    private var paths: Members {
        var paths: Members = [
            "/openapi.json": ["get": operation("getDocument", "This document", [200: .of("Document")], isPublic: true)],
            "/health": [
                "get": operation(
                    "getHealth", "Whether notes can be written", [200: .of("Health"), 503: .of("Health")],
                    isPublic: true)
            ],
            "/api/": path("Root", get: operation("getRoot", "Where things are", reading([200: .of("Root")]))),
            "/api/notes/": path(
                "Notes", get: listOperation("listNotes", "All of the user's notes", .list("Note")),
                ["post": createOperation]),
            "/api/notes/{uuid}/": path(
                "Note", parameters: ["Name"], get: getOperation,
                ["put": updateOperation("putNote"), "patch": updateOperation("patchNote"), "delete": deleteOperation]),
            "/api/notes-uuids/": path(
                "Index", get: listOperation("listRevisions", "Which version of each note there is", .list("IndexEntry"))
            ),
            "/notes/": [
                "get": operation(
                    "readNotes", "The notes as a page", [200: .html, 302: .none].merging(always) { $1 })
            ],
            "/accounts/login/": [
                "get": operation("showLogin", "Asks for name and password", [200: .html], isPublic: true),
                "post": operation(
                    "login", "Begins a session",
                    [
                        302: .none, 403: .either, 400: .of("Failure"), 413: .of("Failure"), 503: .of("Failure"),
                        507: .of("Failure"),
                    ],
                    parameters: [], body: formBody, isPublic: true),
            ],
            "/accounts/logout/": [
                "post": operation("logout", "Ends a session", writing([302: .none]))
            ],
        ]
        if contract.features.contains(.pins) {
            paths["/api/notes/{uuid}/pin/"] = path(
                "Pin", parameters: ["Name"],
                get: operation("getPin", "Whether it is pinned", reading([200: .of("Pin")].merging(missing) { $1 })),
                [
                    "put": operation(
                        "pin", "Pins it", writing([204: .none].merging(missing) { $1 }), parameters: ["Operation"]),
                    "delete": operation(
                        "unpin", "Unpins it", writing([204: .none].merging(missing) { $1 }), parameters: ["Operation"]),
                ])
        }
        if contract.features.contains(.tokens) {
            paths["/api/tokens/"] = [
                "post": operation(
                    "makeTokens", "Gives tokens for a password", writing([201: .of("Tokens"), 403: .of("Failure")])),
                "delete": operation("revokeTokens", "Ends all of the user's tokens", writing([204: .none])),
                "options": operation("optionsTokens", "What can be done", reading([200: .of("Options")])),
            ]
            paths["/api/tokens/refresh/"] = [
                "post": operation(
                    "refresh", "Gives a new access token",
                    [
                        200: .of("Tokens"), 400: .of("Failure"), 413: .of("Failure"), 503: .of("Failure"),
                        507: .of("Failure"),
                    ],
                    body: [
                        "required": true,
                        "content": ["application/json": ["schema": ref("schemas", "Refresh")]],
                    ], isPublic: true),
                "options": operation("optionsRefresh", "What can be done", [200: .of("Options")], isPublic: true),
            ]
        }
        return paths
    }

    /// A path that can be read: with HEAD and OPTIONS, too.
    private func path(
        _ name: String, parameters: [String] = [], get: JSONValue, _ others: Members = [:]
    ) -> JSONValue {
        var members = others
        members["get"] = get
        var head = get.object ?? [:]
        head["operationId"] = .text("head\(name)")
        // HEAD is GET without the body.
        head["responses"] = .object(
            (head["responses"]?.object ?? [:]).mapValues { response in
                var members = response.object ?? [:]
                members["content"] = nil
                members["links"] = nil
                return .object(members)
            })
        members["head"] = .object(head)
        members["options"] = operation("options\(name)", "What can be done", reading([200: .of("Options")]))
        if !parameters.isEmpty { members["parameters"] = refs(parameters) }
        return .object(members)
    }

    private func listOperation(_ id: String, _ summary: String, _ shape: Shape) -> JSONValue {
        var responses: [Int: Shape] = [200: shape]
        var parameters: [String] = []
        if isModern {
            responses[304] = Shape.none
            parameters.append("IfNoneMatch")
            if contract.features.contains(.cursors) && id == "listRevisions" {
                parameters += ["Since", "Limit"]
                responses[410] = .of("Failure")
            }
        }
        return operation(id, summary, reading(responses), parameters: parameters)
    }

    private var getOperation: JSONValue {
        let responses = reading(
            [
                200: .of("Note"), 304: .none, 412: contract.features.contains(.currentInConflicts) ? .of("Failure") : .empty,
            ].merging(missing) { $1 })
        return operation(
            "getNote", "One note", responses,
            parameters: ["IfNoneMatch", "IfMatch"] + (isModern ? ["IfModifiedSince"] : []))
    }

    private var createOperation: JSONValue {
        var responses: [Int: Shape] = [201: .of("Note")]
        if contract.creation.comparesDuplicates {
            responses[200] = .of("Note")
            responses[409] = .of("Failure")
        }
        return operation(
            "createNote", "A new note", writing(responses, hasBody: true), parameters: isModern ? ["Operation"] : [],
            body: noteBody("NewNote", isRequired: contract.creation.requiresID),
            links: [
                "get": ["operationId": "getNote", "parameters": ["uuid": "$response.body#/uuid"]],
                "delete": [
                    "operationId": "deleteNote",
                    "parameters": ["uuid": "$response.body#/uuid", "revision": "$response.body#/revision"],
                ],
                "put": [
                    "operationId": "putNote", "parameters": ["uuid": "$response.body#/uuid"],
                    "requestBody": "$response.body",
                ],
                "patch": [
                    "operationId": "patchNote", "parameters": ["uuid": "$response.body#/uuid"],
                    "requestBody": "$response.body",
                ],
            ])
    }

    private func updateOperation(_ id: String) -> JSONValue {
        operation(
            id, id == "putNote" ? "Writes a note" : "Changes parts of a note",
            writing(based.merging([200: .of("Note")]) { $1 }, hasBody: true),
            parameters: isModern ? ["Operation", "IfMatch", "IfNoneMatch"] : [],
            body: noteBody(id == "putNote" ? "WholeNote" : "NoteChange", isRequired: true))
    }

    private var deleteOperation: JSONValue {
        operation(
            "deleteNote", "Deletes a note", writing(based.merging([204: .none]) { $1 }),
            parameters: ["Base"] + (isModern ? ["Operation", "IfMatch", "IfNoneMatch"] : []))
    }

    // MARK: Statuses

    private enum Shape {
        case of(String), list(String), html, none
        /// A media type, and nothing of it.
        case empty
        /// A page or a failure.
        case either
    }

    private var unauthenticated: Int { contract.unauthenticated.code }

    /// What a request meets before anything looks at what it wants: too many, too busy, malformed.
    private var always: [Int: Shape] {
        [400: .of("Failure"), 405: .of("Failure"), 429: .of("Failure"), 503: .of("Failure")]
    }

    private var missing: [Int: Shape] {
        var shapes: [Int: Shape] = [404: .of("Failure")]
        if let gone = contract.tombstones?.gone { shapes[gone.code] = .of("Failure") }
        return shapes
    }

    /// What a write meets that needs a base revision.
    private var based: [Int: Shape] {
        var shapes = missing
        shapes[409] = .of("Failure")
        shapes[contract.update.missingRevision.code] = .of("Failure")
        if contract.features.contains(.ifMatch) { shapes[412] = .of("Failure") }
        return shapes
    }

    private func reading(_ shapes: [Int: Shape]) -> [Int: Shape] {
        shapes.merging(always) { own, _ in own }.merging([unauthenticated: .of("Failure"), 406: .of("Failure")]) {
            own, _ in own
        }
    }

    private func writing(_ shapes: [Int: Shape], hasBody: Bool = false) -> [Int: Shape] {
        var shapes = reading(shapes)
        // A session's cookie without its token.
        shapes[403] = .of("Failure")
        shapes[413] = .of("Failure")
        shapes[408] = .of("Failure")
        shapes[507] = .of("Failure")
        if hasBody { shapes[415] = .of("Failure") }
        if contract.features.contains(.idempotencyKeys) { shapes[422] = .of("Failure") }
        return shapes
    }

    // MARK: Parts

    private func operation(
        _ id: String, _ summary: String, _ shapes: [Int: Shape], parameters: [String] = [], body: JSONValue? = nil,
        links: JSONValue? = nil, isPublic: Bool = false
    ) -> JSONValue {
        var responses: Members = [:]
        for (status, shape) in shapes {
            var response: Members = [
                "description": .text(HTTPResponse.Status(code: status).reasonPhrase),
                "headers": ["Slowlane-Notes": ref("headers", "Marker")],
            ]
            if let content = content(shape, isBrowsable: !isPublic && id != "readNotes") {
                response["content"] = content
            }
            if status == 201, let links { response["links"] = links }
            responses[String(status)] = .object(response)
        }
        var members: Members = [
            "operationId": .text(id), "summary": .text(summary), "responses": .object(responses),
        ]
        if !parameters.isEmpty { members["parameters"] = refs(parameters) }
        if let body { members["requestBody"] = body }
        if isPublic { members["security"] = [] }
        return .object(members)
    }

    private func content(_ shape: Shape, isBrowsable: Bool) -> JSONValue? {
        let html: JSONValue = ["schema": ["type": "string"]]
        func json(_ schema: JSONValue) -> JSONValue {
            isBrowsable && contract.reading.servesHTML
                ? ["application/json": ["schema": schema], "text/html": html] : ["application/json": ["schema": schema]]
        }
        switch shape {
        case .of(let name): return json(ref("schemas", name))
        case .list(let name): return json(["type": "array", "items": ref("schemas", name)])
        case .html, .empty: return ["text/html": html]
        case .either: return ["text/html": html, "application/json": ["schema": ref("schemas", "Failure")]]
        case .none: return nil
        }
    }

    private func noteBody(_ schema: String, isRequired: Bool) -> JSONValue {
        let content: JSONValue = ["schema": ref("schemas", schema)]
        return [
            "required": .bool(isRequired),
            "content": [
                "application/json": content, "application/x-www-form-urlencoded": content,
                "multipart/form-data": content,
            ],
        ]
    }

    private var formBody: JSONValue {
        [
            "required": true,
            "content": ["application/x-www-form-urlencoded": ["schema": ref("schemas", "Login")]],
        ]
    }

    private func ref(_ kind: String, _ name: String) -> JSONValue { ["$ref": .text("#/components/\(kind)/\(name)")] }

    private func refs(_ names: [String]) -> JSONValue { .array(names.map { ref("parameters", $0) }) }

    private var parameters: Members {
        func parameter(_ name: String, _ place: String, _ schema: JSONValue, _ description: String) -> JSONValue {
            [
                "name": .text(name), "in": .text(place), "required": .bool(place == "path"), "schema": schema,
                "description": .text(description),
            ]
        }
        let text: JSONValue = ["type": "string"]
        var all: Members = [
            "Name": parameter("uuid", "path", nameSchema, "Which note."),
            "Base": parameter(
                "revision", "query", ["type": "string", "minLength": 1], "The revision that is to be deleted."),
            "IfNoneMatch": parameter("If-None-Match", "header", text, "Tags that are known already."),
            "IfMatch": parameter("If-Match", "header", text, "Tags of which one has to be the current."),
        ]
        if isModern {
            all["Operation"] = parameter(
                "Idempotency-Key", "header", ["type": "string", "format": "uuid"],
                "Names the operation, so that doing it twice does it once. Any 1 to 255 characters will do.")
            all["IfModifiedSince"] = parameter("If-Modified-Since", "header", text, "An HTTP date.")
            all["Since"] = parameter("since", "query", text, "A cursor: only what was written after it.")
            all["Limit"] = parameter(
                "limit", "query",
                ["type": "integer", "minimum": 1, "maximum": .integer(Int64(NotesService.Limits.pageEntriesMax))],
                "The most entries of a page.")
        }
        return all
    }

    private var nameSchema: JSONValue {
        contract.idFormat == .uuid
            ? ["type": "string", "format": "uuid"]
            : ["type": "string", "minLength": 1, "maxLength": 255]
    }

    private var schemas: Members {
        let textOrNull: JSONValue = ["type": ["string", "null"]]
        let revision: JSONValue = ["type": "string", "pattern": "^[0-9]+-.+$", "maxLength": 255]
        let dateTyped: JSONValue =
            contract.reading.echoesDates ? ["type": "string"] : ["type": "string", "format": "date-time"]
        let base: JSONValue = ["type": "string", "minLength": 1]
        var note: Members = [
            "uuid": nameSchema, "revision": revision, "date": dateTyped, "title": textOrNull, "text": textOrNull,
        ]
        let whole = note
        var draft = note
        draft["revision"] = nil
        note["revision"] = base
        note["uuid"] = nil
        var entry: Members = ["uuid": nameSchema, "revision": revision]
        if isModern {
            entry["deleted"] = ["const": true]
            entry["pinned"] = ["const": true]
        }
        let written: [JSONValue] =
            contract.update.putReplaces
            ? ["date", "title", "text"] : []
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
            "WholeNote": ["type": "object", "properties": .object(note), "required": .array(written + needsRevision)],
            "NoteChange": ["type": "object", "properties": .object(note), "required": .array(needsRevision)],
            "IndexEntry": [
                "type": "object", "properties": .object(entry), "required": ["uuid", "revision"],
                "additionalProperties": false,
            ],
            "Options": [
                "type": "object", "required": ["name", "description", "renders", "parses"],
            ],
            "Failure": [
                "description": "Why not: in `error` or `detail`, or by field; perhaps with the note as it is.",
                "type": "object", "minProperties": 1,
                "properties": [
                    "error": ["type": "string"], "detail": ["type": "string"],
                    "current": ["anyOf": [ref("schemas", "Note"), ref("schemas", "IndexEntry")]],
                ],
                "additionalProperties": ["type": "array", "items": ["type": "string"], "minItems": 1],
            ],
            "Login": [
                "type": "object", "required": ["username", "password"],
                "properties": ["username": ["type": "string"], "password": ["type": "string"]],
            ],
        ]
        if isModern {
            all["Pin"] = [
                "type": "object", "required": ["pinned"], "properties": ["pinned": ["type": "boolean"]],
            ]
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

extension APIContract {
    /// What a server of this dialect does, as OpenAPI 3.1 describes it, in JSON.
    public var openAPI: String { OpenAPIDocument(contract: self).document.json }
}

extension NotesService {
    func handleOpenAPI(_ request: APIRequest) throws -> Response {
        try request.allow([.get, .head])
        return .json(.ok, contract.openAPI)
    }
}
