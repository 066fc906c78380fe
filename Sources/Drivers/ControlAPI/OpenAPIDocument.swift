internal import HTTPTypes
internal import Wire

/// The OpenAPI 3.1 document of the routes under `/slowlane/v1`: the paths and methods are those of ``SlowlaneRoute``,
/// the schemas those of the readers and writers.
enum OpenAPIDocument {
    /// An operation of the document, a route with a method.
    struct Operation {
        let id: String
        let summary: String
        let about: String?
        /// The parameters beside those of the path.
        let parameters: [JSONValue]
        /// The schema of the request's body; `nil` without one.
        let body: JSONSchema?
        let isBodyRequired: Bool
        let success: Success
        /// The statuses of errors.
        let errors: [Int]

        init(
            _ id: String, _ summary: String, about: String? = nil, parameters: [JSONValue] = [],
            body: JSONSchema? = nil, isBodyRequired: Bool = true, _ success: Success, errors: [Int] = []
        ) {
            self.id = id
            self.summary = summary
            self.about = about
            self.parameters = parameters
            self.body = body
            self.isBodyRequired = isBodyRequired
            self.success = success
            self.errors = errors
        }
    }

    /// The response to a request that has taken effect.
    struct Success {
        let status: HTTPResponse.Status
        let about: String
        /// The schema of JSON; `nil` for other media types.
        let schema: JSONSchema?
        /// The media types in place of JSON, with their content.
        let content: JSONObject

        static let done = Success(status: .noContent, about: "Done.", schema: nil, content: [:])

        static func json(_ schema: JSONSchema, _ about: String, _ status: HTTPResponse.Status = .ok) -> Success {
            Success(
                status: status, about: about, schema: schema, content: ["application/json": ["schema": schema.value]])
        }

        static func other(_ content: JSONObject, _ about: String) -> Success {
            Success(status: .ok, about: about, schema: nil, content: content)
        }
    }

    /// The errors that requests to a proxy have beside those of the operation.
    private static let proxyErrors = [301, 400, 404]

    /// The document.
    static var value: JSONValue {
        var paths = JSONObject()
        for route in SlowlaneRoute.allCases { paths["/\(route.template)"] = path(route) }
        var responses = JSONObject()
        for error in errors { responses[error.name] = error.json }
        let operations = SlowlaneRoute.allCases.flatMap(\.operations.values)
        let schemas = operations.flatMap { [$0.success.schema, $0.body].compactMap(\.self) }
        let components = JSONSchema([:], referringTo: schemas + [APIError.shape.schema]).components
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Slowlane's API", "version": "1",
                "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
                "description": .text(
                    "Links, faults, outages, random seeds and connections of the proxies of `slowlane server`. Proxies "
                        + "and toxics have Toxiproxy's API. Names of fields match in any letter case, and null counts "
                        + "as absent. Unknown fields have no effect; a `Warning` header names them."),
            ],
            "servers": [["url": "/slowlane/v1"]], "security": [[:], ["token": []]],
            "tags": [["name": "server"], ["name": "proxies"]], "paths": .object(paths),
            "components": [
                "securitySchemes": [
                    "token": [
                        "type": "http", "scheme": "bearer",
                        "description": "Required if the server was started with --token.",
                    ]
                ],
                "headers": [
                    "Warning": [
                        "description": "Parts of the request that have no effect.", "schema": JSONSchema.text.value,
                    ]
                ],
                "parameters": parameters, "responses": .object(responses), "schemas": .object(components),
            ],
        ]
    }

    // MARK: Paths

    private static func path(_ route: SlowlaneRoute) -> JSONValue {
        var item = JSONObject()
        let variables = route.template.split(separator: "/").filter { $0.hasPrefix("{") }
        if !variables.isEmpty {
            item["parameters"] = .array(variables.map { ref("parameters", String($0.dropFirst().dropLast())) })
        }
        let operations = route.operations
        for method in route.methods {
            guard let operation = operations[method] else { continue }
            item[method.rawValue.lowercased()] = json(operation, isOfProxy: !variables.isEmpty)
        }
        return .object(item)
    }

    private static func json(_ operation: Operation, isOfProxy: Bool) -> JSONValue {
        var members: JSONObject = [
            "operationId": .text(operation.id), "summary": .text(operation.summary),
            "tags": [isOfProxy ? "proxies" : "server"],
        ]
        members["description"] = operation.about.map { .text($0) }
        if !operation.parameters.isEmpty { members["parameters"] = .array(operation.parameters) }
        members["requestBody"] = operation.body.map { body in
            [
                "required": .bool(operation.isBodyRequired),
                "content": ["application/json": ["schema": body.value]],
            ]
        }
        let success = operation.success
        var response: JSONObject = ["description": .text(success.about)]
        if success.schema != nil { response["headers"] = ["Warning": ref("headers", "Warning")] }
        if !success.content.isEmpty { response["content"] = .object(success.content) }
        var responses: JSONObject = [String(success.status.code): .object(response)]
        for status in (isOfProxy ? proxyErrors : []) + operation.errors {
            responses[String(status)] = errors.first { $0.status == status }.map { ref("responses", $0.name) }
        }
        members["responses"] = .object(responses)
        return .object(members)
    }

    private static func ref(_ kind: String, _ name: String) -> JSONValue {
        ["$ref": .text("#/components/\(kind)/\(name)")]
    }

    // MARK: Components

    /// The parameter that tells how connections are closed.
    static let how = ref("parameters", "how")

    /// Returns a parameter of a query or a header.
    static func parameter(
        _ name: String, in place: String, _ schema: JSONSchema, _ about: String
    ) -> JSONValue {
        ["name": .text(name), "in": .text(place), "description": .text(about), "schema": schema.value]
    }

    private static let parameters: JSONValue = {
        func variable(_ name: String, _ schema: JSONSchema, _ about: String) -> JSONValue {
            var members = parameter(name, in: "path", schema, about).object ?? [:]
            members["required"] = true
            return .object(members)
        }
        let segment = JSONSchema.text.with(["minLength": 1, "pattern": "^[^/]+$"])
        return [
            "proxy": variable("proxy", segment, "The name of a proxy; a name with a slash cannot be addressed."),
            "fault": variable("fault", segment, "The name of a fault."),
            "number": variable("number", .count, "The number of a connection."),
            "how": parameter(
                "how", in: "query", .words(["reset", "close"]).with(["default": "reset"]),
                "reset: a RST to both sides; close: a FIN."),
        ]
    }()

    /// The responses with errors, by status.
    private static let errors: [(status: Int, name: String, json: JSONValue)] = {
        let json: JSONObject = ["application/json": ["schema": APIError.shape.schema.value]]
        func error(_ about: String, _ content: JSONObject = json) -> JSONValue {
            ["description": .text(about), "content": .object(content)]
        }
        var jsonOrText = json
        jsonOrText["text/plain"] = ["schema": JSONSchema.text.value]
        return [
            (
                301, "Redirect",
                [
                    "description": "The path contains an empty segment or a dot segment.",
                    "headers": ["Location": ["schema": JSONSchema.text.value]],
                ]
            ),
            (400, "BadRequest", error("The request is invalid, or a limit is reached.")),
            (403, "ForeignPage", error("A web page of another origin has sent the request.")),
            (404, "NotFound", error("There is no such proxy, fault, connection, timeline or path.", jsonOrText)),
            (409, "Conflict", error("The state of the proxy does not permit the request.")),
            (500, "Failed", error("The proxy cannot bind its port.")),
            (503, "Busy", error("A limit is reached for now.")),
        ]
    }()
}
