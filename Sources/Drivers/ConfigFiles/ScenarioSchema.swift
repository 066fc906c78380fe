internal import Scenario

/// The JSON Schema (2020-12) of scenario files, generated from the format's table.
///
/// A schema knows neither the names of links, devices, notes, marks and parameters nor conditions between keys; the
/// reader checks those.
public enum ScenarioSchema {
    /// The schema as JSON text.
    public static var json: String {
        var definitions: [(String, SchemaValue)] = [
            (
                "parameter",
                .object([
                    ("type", .text("string")), ("pattern", .text(#"^\$[a-z0-9-]+$"#)),
                    ("description", .text("The value of a parameter of 'matrix'.")),
                ])
            )
        ]
        for object in ScenarioFormat.objects where object.name != "scenario" {
            definitions.append((object.name, schema(of: object)))
        }
        var root: [(String, SchemaValue)] = [
            ("$schema", .text("https://json-schema.org/draft/2020-12/schema")),
            ("title", .text("Slowlane scenario, version \(ScenarioFile.formatVersion)")),
        ]
        if case .object(let members) = schema(of: ScenarioFormat.object("scenario")) { root += members }
        root.append(("$defs", .object(definitions)))
        return SchemaValue.object(root).text
    }

    // MARK: Mappings

    private static func schema(of object: ScenarioFormat.Object) -> SchemaValue {
        let (isVariant, isScenario) = (object.name == "variant", object.name == "scenario")
        var properties: [(String, SchemaValue)] = []
        for key in object.keys {
            // The values of a scenario depend on whether it extends another one.
            let value = isVariant ? overlay(key) : isScenario ? SchemaValue.object([]) : schema(of: key.shape)
            var members: [(String, SchemaValue)] = [("description", .text(key.about))]
            if let text = key.defaultText { members.append(("$comment", .text("default: \(text)"))) }
            if case .object(let inner) = value { members += inner } else { members.append(("allOf", .list([value]))) }
            properties.append((key.name, .object(members)))
        }
        var members: [(String, SchemaValue)] = [("type", .text("object")), ("properties", .object(properties))]
        if isScenario {
            func values(_ schema: (ScenarioFormat.Key) -> SchemaValue) -> SchemaValue {
                .object([("properties", .object(object.keys.map { ($0.name, schema($0)) }))])
            }
            let own = ["extends", "variants"]
            members.append(("if", requiring(["extends"])))
            members.append(("then", values { own.contains($0.name) ? schema(of: $0.shape) : overlay($0) }))
            members.append(("else", values { schema(of: $0.shape) }))
        }
        if let named = object.named {
            members.append(
                (
                    "patternProperties",
                    .object([(named.kind.pattern ?? "", schema(of: named.shape))])
                ))
        }
        members.append(("additionalProperties", .bool(false)))
        let required = object.keys.filter { $0.isRequired && !isVariant }.map(\.name)
        if isScenario {
            let inherited = required.filter { $0 != "scenario" && $0 != "name" }
            members.append(("required", .list([.text("scenario"), .text("name")])))
            members.append(("anyOf", .list([requiring(["extends"]), requiring(inherited)])))
        } else if !required.isEmpty {
            members.append(("required", .list(required.map { .text($0) })))
        }
        if !object.exactlyOne.isEmpty { members.append(("oneOf", .list(object.exactlyOne.map { requiring([$0]) }))) }
        if !object.atLeastOne.isEmpty { members.append(("anyOf", .list(object.atLeastOne.map { requiring([$0]) }))) }
        return .object(members)
    }

    private static func requiring(_ keys: [String]) -> SchemaValue {
        .object([("required", .list(keys.map { .text($0) }))])
    }

    /// Returns the schema of a key of a variant, or of a file that extends another one: null takes the key back unless
    /// every scenario needs it.
    private static func overlay(_ key: ScenarioFormat.Key) -> SchemaValue {
        let value = partial(key.shape)
        return key.isRequired ? value : anyOf([value, .object([("type", .text("null"))])])
    }

    /// Returns the schema of a value of a variant, which may contain only the changed keys of a mapping, and null for
    /// those that it takes back.
    private static func partial(_ shape: ScenarioFormat.Shape) -> SchemaValue {
        switch shape {
        case .object, .map: .object([("type", .text("object"))])
        case .either(let shapes): anyOf(shapes.map(partial))
        default: schema(of: shape)
        }
    }

    // MARK: Values

    private static func schema(of shape: ScenarioFormat.Shape) -> SchemaValue {
        switch shape {
        case .anything: return .bool(true)
        case .version:
            return .object([("enum", .list([.number(1), .text(ScenarioFile.formatVersion)]))])
        case .either(let shapes): return anyOf(shapes.map(schema))
        default: return anyOf([plain(shape), .object([("$ref", .text("#/$defs/parameter"))])])
        }
    }

    private static func anyOf(_ values: [SchemaValue]) -> SchemaValue {
        var flat: [SchemaValue] = []
        for value in values {
            if case .object(let members) = value, members.count == 1, case ("anyOf", .list(let inner)) = members[0] {
                for value in inner where !flat.contains(value) { flat.append(value) }
            } else if !flat.contains(value) {
                flat.append(value)
            }
        }
        return flat.count == 1 ? flat[0] : .object([("anyOf", .list(flat))])
    }

    private static func pattern(_ pattern: String) -> SchemaValue {
        .object([("type", .text("string")), ("pattern", .text(pattern))])
    }

    private static func plain(_ shape: ScenarioFormat.Shape) -> SchemaValue {
        switch shape {
        case .text: return .object([("type", .list([.text("string"), .text("number"), .text("boolean")]))])
        case .kebabCase: return pattern("^[a-z0-9-]+$")
        case .integer(let range):
            let number = SchemaValue.object([
                ("type", .text("integer")), ("minimum", .number(range.lowerBound)),
                ("maximum", .number(range.upperBound)),
            ])
            return anyOf([number, pattern(#"^\d+$"#)])
        case .fraction:
            return .object([("type", .text("number")), ("minimum", .number(0)), ("maximum", .number(1))])
        case .boolean: return words(["true", "false"])
        case .time: return pattern(ScenarioFormat.timePattern)
        case .signedTime:
            return pattern(ScenarioFormat.timePattern.replacing("^(?=.)", with: #"^[+-](?=.)(\d+(\.\d+)? *d)? *"#))
        case .percentage:
            return anyOf([pattern(#"^\d+(\.\d+)? *%$"#), .object([("enum", .list([.number(0), .text("0")]))])])
        case .size:
            return anyOf([
                .object([("type", .text("integer")), ("minimum", .number(0))]),
                pattern(#"^\d+(\.\d+)? *(B|bytes|kB|KB|MB|GB|KiB|MiB|GiB)?$"#),
            ])
        case .choice(let values): return words(values)
        case .name(let kind):
            return kind.pattern.map(pattern) ?? .object([("type", .text("string")), ("minLength", .number(1))])
        case .timeOrMark: return anyOf([plain(.time), plain(.name(.mark))])
        case .request:
            return pattern("^(any|(\((ScenarioFormat.methods + ["any"]).joined(separator: "|"))) +[^ ]+)$")
        case .response:
            let status = SchemaValue.object([
                ("type", .text("integer")), ("minimum", .number(100)), ("maximum", .number(599)),
            ])
            return anyOf([status, pattern(#"^([1-5]xx|[1-5]\d\d|lost|none)$"#)])
        case .invariant:
            return words(
                Scenario.Invariant.allCases.map(\.rawValue) + Scenario.Invariant.allCases.map(\.number))
        case .path: return pattern("^[^/]")
        case .link: return .object([("type", .text("string")), ("minLength", .number(1))])
        case .list(let shape, let least, let most):
            var members: [(String, SchemaValue)] = [("type", .text("array")), ("items", schema(of: shape))]
            if least > 0 { members.append(("minItems", .number(least))) }
            members.append(("maxItems", .number(most)))
            return .object(members)
        case .object(let name): return .object([("$ref", .text("#/$defs/\(name)"))])
        case .map(let kind, let shape):
            var members: [(String, SchemaValue)] = [("type", .text("object"))]
            if let pattern = kind.pattern {
                members.append(("patternProperties", .object([(pattern, schema(of: shape))])))
                members.append(("additionalProperties", .bool(false)))
            } else {
                members.append(("additionalProperties", schema(of: shape)))
            }
            let most: Int? =
                switch kind {
                case .newDevice: ScenarioFormat.devicesMax
                case .newWriter: ScenarioFormat.writersMax
                default: nil
                }
            if let most { members.append(("maxProperties", .number(most))) }
            return .object(members)
        case .anything, .version, .either: return schema(of: shape)
        }
    }

    /// Returns the schema of words. YAML reads `true` and `false` as Boolean values.
    private static func words(_ words: [String]) -> SchemaValue {
        var values = words.map { SchemaValue.text($0) }
        if words.contains("true") { values.append(.bool(true)) }
        if words.contains("false") { values.append(.bool(false)) }
        return .object([("enum", .list(values))])
    }
}

/// A JSON value of a schema, with members in order.
private indirect enum SchemaValue: Equatable {
    case object([(String, SchemaValue)])
    case list([SchemaValue])
    case text(String)
    case number(Int)
    case bool(Bool)

    static func == (left: SchemaValue, right: SchemaValue) -> Bool { left.text == right.text }

    /// The JSON text, with one line per member of the outer levels.
    var text: String { text(indentation: 0) + (isObject ? "\n" : "") }

    private var isObject: Bool { if case .object = self { true } else { false } }

    private func text(indentation: Int) -> String {
        switch self {
        case .object(let members):
            if members.isEmpty { return "{}" }
            // Deep levels stay on one line.
            let isDeep = indentation >= 4
            let space = isDeep ? "" : String(repeating: "  ", count: indentation + 1)
            let parts = members.map { "\(space)\(Self.quoted($0.0)): \($0.1.text(indentation: indentation + 1))" }
            if isDeep { return "{ \(parts.joined(separator: ", ")) }" }
            return "{\n\(parts.joined(separator: ",\n"))\n\(String(repeating: "  ", count: indentation))}"
        case .list(let values): return "[\(values.map { $0.text(indentation: 9) }.joined(separator: ", "))]"
        case .text(let text): return Self.quoted(text)
        case .number(let number): return "\(number)"
        case .bool(let bool): return bool ? "true" : "false"
        }
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}
