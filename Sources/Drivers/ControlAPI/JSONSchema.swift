internal import Wire

/// The schema of a JSON value, in the words of OpenAPI 3.1 (JSON Schema 2020-12).
struct JSONSchema: Sendable {
    private(set) var keywords: JSONObject
    /// The named schemas to which this one refers, the components of an OpenAPI document.
    private(set) var components: JSONObject = [:]

    init(_ keywords: JSONObject, referringTo parts: [JSONSchema] = []) {
        self.keywords = keywords
        for part in parts {
            for (name, schema) in part.components {
                precondition(components[name].map { $0 == schema } ?? true, "two schemas have the name \(name)")
                components[name] = schema
            }
        }
    }

    /// The schema as JSON.
    var value: JSONValue { .object(keywords) }

    // MARK: Types

    static let text = JSONSchema(["type": "string"])
    static let bool = JSONSchema(["type": "boolean"])
    /// A whole number that is not negative.
    static let count = integer(min: 0)
    /// An object of any members.
    static let object = JSONSchema(["type": "object"])

    static func integer(min: Int64? = nil, max: Int64? = nil) -> JSONSchema { number("integer", min, max) }

    static func integer(in range: ClosedRange<Int>) -> JSONSchema {
        integer(min: Int64(range.lowerBound), max: Int64(range.upperBound))
    }

    static func number(min: Int64? = nil, max: Int64? = nil) -> JSONSchema { number("number", min, max) }

    private static func number(_ type: String, _ min: Int64?, _ max: Int64?) -> JSONSchema {
        var keywords: JSONObject = ["type": .text(type)]
        if let min { keywords["minimum"] = .integer(min) }
        if let max { keywords["maximum"] = .integer(max) }
        return JSONSchema(keywords)
    }

    /// One of some texts.
    static func words(_ words: [String]) -> JSONSchema {
        JSONSchema(["type": "string", "enum": .array(words.map { .text($0) })])
    }

    static func array(of element: JSONSchema, max: Int? = nil) -> JSONSchema {
        var keywords: JSONObject = ["type": "array", "items": element.value]
        if let max { keywords["maxItems"] = .integer(Int64(max)) }
        return JSONSchema(keywords, referringTo: [element])
    }

    /// A value of at least one of some schemas.
    static func any(of schemas: [JSONSchema]) -> JSONSchema {
        JSONSchema(["anyOf": .array(schemas.map(\.value))], referringTo: schemas)
    }

    /// A value of exactly one of some schemas.
    static func one(of schemas: [JSONSchema]) -> JSONSchema {
        JSONSchema(["oneOf": .array(schemas.map(\.value))], referringTo: schemas)
    }

    /// An object with declared members.
    ///
    /// - Parameter isClosed: Whether there are no other members.
    static func object(_ fields: [JSONField], isClosed: Bool = false) -> JSONSchema {
        var keywords: JSONObject = ["type": "object"]
        let required = fields.filter(\.isRequired).names
        if !required.isEmpty { keywords["required"] = .array(required.map { .text($0) }) }
        var properties = JSONObject()
        for field in fields { properties[field.name] = field.schema.value }
        keywords["properties"] = .object(properties)
        if isClosed { keywords["additionalProperties"] = false }
        return JSONSchema(keywords, referringTo: fields.map(\.schema))
    }

    // MARK: Changes

    /// The schema of the value or of `null`.
    var orNull: JSONSchema {
        guard let type = keywords["type"] else {
            return JSONSchema(["anyOf": [value, ["type": "null"]]], referringTo: [self])
        }
        var words = keywords["enum"]?.array
        words?.append(.null)
        var schema = with(["type": [type, "null"]])
        if let words { schema.keywords["enum"] = .array(words) }
        return schema
    }

    /// Returns the schema with a description, if there is one.
    func about(_ about: String?) -> JSONSchema { about.map { with(["description": .text($0)]) } ?? self }

    /// Returns the schema with examples of values.
    func examples(_ examples: JSONValue...) -> JSONSchema { with(["examples": .array(examples)]) }

    /// Returns the schema with further keywords.
    func with(_ more: JSONObject) -> JSONSchema {
        var schema = self
        for (name, value) in more { schema.keywords[name] = value }
        return schema
    }

    /// Returns a reference to the schema as a component of an OpenAPI document.
    func named(_ name: String) -> JSONSchema {
        var reference = JSONSchema(["$ref": .text("#/components/schemas/\(name)")], referringTo: [self])
        reference.components[name] = value
        return reference
    }
}

/// A member of an object: its name and the schema of its value.
struct JSONField: Sendable {
    let name: String
    let schema: JSONSchema
    let isRequired: Bool

    /// A member that is always there.
    static func required(_ name: String, _ schema: JSONSchema, _ about: String? = nil) -> Self {
        Self(name: name, schema: schema.about(about), isRequired: true)
    }

    /// A member that may be absent.
    static func optional(_ name: String, _ schema: JSONSchema, _ about: String? = nil) -> Self {
        Self(name: name, schema: schema.about(about), isRequired: false)
    }
}

extension [JSONField] {
    /// The names, of which ``RequestWarnings`` distinguishes unknown ones.
    var names: [String] { map(\.name) }
}
