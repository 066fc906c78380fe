internal import HTTPTypes
internal import NotesContract
internal import Wire

/// The OpenAPI 3.1 document of a contract, derived from the values of the contract.
struct OpenAPIDocument {
    let contract: APIContract

    typealias Members = JSONObject
    /// Whether the contract extends the original's.
    var isExtended: Bool { contract.features.contains(.validators) }

    /// The document.
    var json: JSONValue {
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
                "headers": .object(headers),
            ],
        ]
    }

    private var headers: Members {
        var headers: Members = [
            "Marker": [
                "description": "Distinguishes this server from captive portals and proxies.", "required": true,
                "schema": ["const": .text(NotesHTTP.markerValue)],
            ]
        ]
        if isExtended {
            headers["History"] = [
                "description": """
                Identifies the history of the user's notes in this database, in responses to authenticated requests. It \
                changes if the database is replaced or restored.
                """,
                "schema": ["type": "string", "pattern": "^[0-9a-f]{16}$"],
            ]
        }
        return headers
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
            "/api/": path(
                "Root", get: operation("getRoot", "The URLs of the collections", reading([200: .of("Root")]))),
            "/api/notes/": path(
                "Notes",
                get: listOperation("listNotes", "All notes of the user", .list(isExtended ? "ListedNote" : "Note")),
                ["post": createOperation]),
            "/api/notes/{uuid}/": path(
                "Note", parameters: ["Name"], get: getOperation,
                ["put": updateOperation("putNote"), "patch": updateOperation("patchNote"), "delete": deleteOperation]),
            "/api/notes-uuids/": path(
                "Index", get: listOperation("listRevisions", "The current revision of each note", .list("IndexEntry"))
            ),
            "/notes/": [
                "get": operation(
                    "readNotes", "The notes as a web page", [200: .html, 302: .none].merging(commonErrors) { $1 })
            ],
            "/accounts/login/": [
                "get": operation("showLogin", "The login form", [200: .html], isPublic: true),
                "post": operation(
                    "login", "Starts a session",
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
                get: operation(
                    "getPin", "Whether the note is pinned", reading([200: .of("Pin")].merging(notFoundErrors) { $1 })),
                [
                    "put": operation(
                        "pin", "Pins the note", writing([204: .none].merging(notFoundErrors) { $1 }),
                        parameters: ["Operation"]
                    ),
                    "delete": operation(
                        "unpin", "Unpins the note", writing([204: .none].merging(notFoundErrors) { $1 }),
                        parameters: ["Operation"]),
                ])
        }
        if contract.features.contains(.attachments) {
            paths["/api/notes/{uuid}/attachments/"] = attachmentsPath
            paths["/api/notes/{uuid}/attachments/{name}"] = attachmentPath
        }
        if contract.features.contains(.tokens) {
            paths["/api/tokens/"] = [
                "post": operation(
                    "makeTokens", "Creates tokens for a password", writing([201: .of("Tokens"), 403: .of("Failure")])),
                "delete": operation("revokeTokens", "Revokes all tokens of the user", writing([204: .none])),
                "options": operation(
                    "optionsTokens", "The methods and media types of the resource", reading([200: .of("Options")])),
            ]
            paths["/api/tokens/refresh/"] = [
                "post": operation(
                    "refresh", "Creates an access token",
                    [
                        200: .of("Tokens"), 400: .of("Failure"), 413: .of("Failure"), 503: .of("Failure"),
                        507: .of("Failure"),
                    ],
                    body: [
                        "required": true,
                        "content": ["application/json": ["schema": ref("schemas", "Refresh")]],
                    ], isPublic: true),
                "options": operation(
                    "optionsRefresh", "The methods and media types of the resource", [200: .of("Options")],
                    isPublic: true),
            ]
        }
        return paths
    }

    /// Returns the item of a readable path, with HEAD and OPTIONS.
    func path(
        _ name: String, parameters: [String] = [], get: JSONValue, _ others: Members = [:]
    ) -> JSONValue {
        var members = others
        members["get"] = get
        var head = get.object ?? [:]
        head["operationId"] = .text("head\(name)")
        // A response to HEAD has no body.
        head["responses"] = .object(
            (head["responses"]?.object ?? [:]).mapValues { response in
                var members = response.object ?? [:]
                members["content"] = nil
                members["links"] = nil
                return .object(members)
            })
        members["head"] = .object(head)
        members["options"] = operation(
            "options\(name)", "The methods and media types of the resource", reading([200: .of("Options")]))
        if !parameters.isEmpty { members["parameters"] = refs(parameters) }
        return .object(members)
    }

    private func listOperation(_ id: String, _ summary: String, _ shape: Shape) -> JSONValue {
        var responses: [Int: Shape] = [200: shape]
        var parameters: [String] = []
        if isExtended {
            responses[304] = Shape.none
            parameters.append("IfNoneMatch")
            if contract.features.contains(.cursors) {
                parameters += ["Since", "Limit"]
                responses[410] = .of("Failure")
            }
        }
        return operation(id, summary, reading(responses), parameters: parameters)
    }

    private var getOperation: JSONValue {
        let responses = reading(
            [
                200: .of("Note"), 304: .none,
                412: contract.features.contains(.currentInConflicts) ? .of("Failure") : .empty,
            ].merging(notFoundErrors) { $1 })
        return operation(
            "getNote", "One note", responses,
            parameters: ["IfNoneMatch", "IfMatch"] + (isExtended ? ["IfModifiedSince"] : []))
    }

    private var createOperation: JSONValue {
        var responses: [Int: Shape] = [201: .of("Note")]
        if contract.creation.comparesDuplicates {
            responses[200] = .of("Note")
            responses[409] = .of("Failure")
        }
        return operation(
            "createNote", "Creates a note", writing(responses, hasBody: true),
            parameters: isExtended ? ["Operation"] : [],
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
            id, id == "putNote" ? "Replaces a note" : "Changes parts of a note",
            writing(baseRevisionErrors.merging([200: .of("Note")]) { $1 }, hasBody: true),
            parameters: isExtended ? ["Operation", "IfMatch", "IfNoneMatch"] : [],
            body: noteBody(id == "putNote" ? "WholeNote" : "NoteChange", isRequired: true))
    }

    private var deleteOperation: JSONValue {
        operation(
            "deleteNote", "Deletes a note", writing(baseRevisionErrors.merging([204: .none]) { $1 }),
            parameters: ["Base"] + (isExtended ? ["Operation", "IfMatch", "IfNoneMatch"] : []))
    }

    // MARK: Statuses

    enum Shape {
        case of(String), list(String), html, bytes, none
        /// An empty body with the media type text/html.
        case empty
        /// A web page or an error.
        case either
    }

    private var unauthenticatedStatus: Int { contract.unauthenticatedStatus.code }

    /// Errors of any request: malformed, rate-limited, overload.
    private var commonErrors: [Int: Shape] {
        [400: .of("Failure"), 405: .of("Failure"), 429: .of("Failure"), 503: .of("Failure")]
    }

    var notFoundErrors: [Int: Shape] {
        var shapes: [Int: Shape] = [404: .of("Failure")]
        if let status = contract.tombstones?.readStatus { shapes[status.code] = .of("Failure") }
        return shapes
    }

    /// Errors of a write that needs a base revision.
    private var baseRevisionErrors: [Int: Shape] {
        var shapes = notFoundErrors
        shapes[409] = .of("Failure")
        shapes[contract.update.missingRevisionStatus.code] = .of("Failure")
        if contract.features.contains(.ifMatch) { shapes[412] = .of("Failure") }
        return shapes
    }

    func reading(_ shapes: [Int: Shape]) -> [Int: Shape] {
        shapes.merging(commonErrors) { own, _ in own }.merging([
            unauthenticatedStatus: .of("Failure"), 406: .of("Failure"),
        ]) {
            own, _ in own
        }
    }

    func writing(_ shapes: [Int: Shape], hasBody: Bool = false) -> [Int: Shape] {
        var shapes = reading(shapes)
        // A session without its CSRF token.
        shapes[403] = .of("Failure")
        shapes[413] = .of("Failure")
        shapes[408] = .of("Failure")
        shapes[507] = .of("Failure")
        if hasBody { shapes[415] = .of("Failure") }
        if contract.features.contains(.idempotencyKeys) { shapes[422] = .of("Failure") }
        return shapes
    }

    // MARK: Parts

    func operation(
        _ id: String, _ summary: String, _ shapes: [Int: Shape], parameters: [String] = [], body: JSONValue? = nil,
        links: JSONValue? = nil, isPublic: Bool = false
    ) -> JSONValue {
        var responses: Members = [:]
        for (status, shape) in shapes {
            var headers: Members = [NotesHTTP.markerName: ref("headers", "Marker")]
            if isExtended && !isPublic && !["readNotes", "logout"].contains(id) {
                headers[NotesHTTP.historyName] = ref("headers", "History")
            }
            var response: Members = [
                "description": .text(HTTPResponse.Status(code: status).reasonPhrase), "headers": .object(headers),
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
        case .bytes: return [NotesService.attachmentType: [:]]
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

    func ref(_ kind: String, _ name: String) -> JSONValue { ["$ref": .text("#/components/\(kind)/\(name)")] }

    private func refs(_ names: [String]) -> JSONValue { .array(names.map { ref("parameters", $0) }) }
}

extension APIContract {
    /// The OpenAPI 3.1 document in JSON.
    public var openAPI: String { OpenAPIDocument(contract: self).json.json }
}

extension NotesService {
    func handleOpenAPI(_ request: APIRequest) throws -> Response {
        try request.requireMethod([.get, .head])
        return .json(.ok, contract.openAPI)
    }
}
