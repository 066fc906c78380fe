internal import Determinism
internal import LinkModel
internal import Wire

/// An object of responses, declared once: the names, values and meanings of its members in the order in which they are
/// written. The writer and the schema come from the declaration.
struct JSONShape<Value>: Sendable {
    /// The name of the schema; `nil` if it stands where it is used.
    let name: String?
    let members: [JSONMember<Value>]

    init(_ name: String, _ members: [JSONMember<Value>]) { (self.name, self.members) = (name, members) }

    init(_ members: [JSONMember<Value>]) { (name, self.members) = (nil, members) }

    var fields: [JSONField] { members.map(\.field) }

    /// The schema, a reference if it has a name.
    var schema: JSONSchema {
        let schema = JSONSchema.object(fields)
        return name.map(schema.named) ?? schema
    }

    /// The object as the value of a member.
    var form: JSONForm<Value> { JSONForm(schema, json) }

    /// Returns the object.
    @Sendable func json(_ value: Value) -> String { JSONText.object(texts(value)) }

    /// Returns the members, for objects that contain more.
    func texts(_ value: Value) -> [(key: String, value: String)] {
        members.compactMap { member in member.write(value).map { (member.field.name, $0) } }
    }
}

/// A member of a ``JSONShape``: its entry in the schema, and the writer of its value.
struct JSONMember<Whole>: Sendable {
    let field: JSONField
    /// Returns the value as JSON text; `nil` if the member is left out.
    let write: @Sendable (Whole) -> String?

    /// A member that is always written.
    static func required<Value>(
        _ name: String, _ get: @escaping @Sendable (Whole) -> Value, _ form: JSONForm<Value>, _ about: String? = nil
    ) -> Self {
        Self(field: .required(name, form.schema, about)) { form.write(get($0)) }
    }

    /// A member that is left out without a value.
    static func optional<Value>(
        _ name: String, _ get: @escaping @Sendable (Whole) -> Value?, _ form: JSONForm<Value>, _ about: String? = nil
    ) -> Self {
        Self(field: .optional(name, form.schema, about)) { get($0).map(form.write) }
    }

    /// Returns the member as one of an object that contains the members of a part.
    func of<Outer>(_ part: @escaping @Sendable (Outer) -> Whole) -> JSONMember<Outer> {
        let write = write
        return JSONMember<Outer>(field: field) { write(part($0)) }
    }
}

/// The form of values in JSON: their schema and their writer.
struct JSONForm<Value>: Sendable {
    let schema: JSONSchema
    let write: @Sendable (Value) -> String

    init(_ schema: JSONSchema, _ write: @escaping @Sendable (Value) -> String) {
        self.schema = schema
        self.write = write
    }

    /// Returns the form of the value or of `null`.
    static func orNull<Wrapped>(_ form: JSONForm<Wrapped>) -> Self where Value == Wrapped? {
        Self(form.schema.orNull) { $0.map(form.write) ?? "null" }
    }

    static func array<Element>(of form: JSONForm<Element>) -> Self where Value == [Element] {
        Self(.array(of: form.schema)) { JSONText.array($0.map(form.write)) }
    }

    /// A pair of values, one for each direction.
    static func pair<Part>(of form: JSONForm<Part>) -> Self where Value == PerDirection<Part> {
        JSONShape<Value>([.required("up", { $0.up }, form), .required("down", { $0.down }, form)]).form
    }
}

extension JSONForm<String> {
    static var text: Self { Self(.text, JSONText.string) }

    /// One of some texts.
    static func words(_ words: [String]) -> Self { Self(.words(words), JSONText.string) }

    /// Values that are JSON text already.
    static func json(_ schema: JSONSchema) -> Self { Self(schema) { $0 } }
}

extension JSONForm<Bool> {
    static var bool: Self { Self(.bool) { $0 ? "true" : "false" } }
}

extension JSONForm where Value: BinaryInteger & Sendable {
    static var count: Self { integer(min: 0) }

    static func integer(min: Int64? = nil, max: Int64? = nil) -> Self {
        Self(.integer(min: min, max: max)) { "\($0)" }
    }
}

extension JSONForm<Int64> {
    /// Nanoseconds since 1970, as milliseconds.
    static var time: Self { Self(.number(), EventText.milliseconds) }
}

extension JSONForm<Nanoseconds> {
    static func milliseconds(min: Int64? = 0) -> Self {
        Self(.number(min: min)) { JSONText.number($0.inMilliseconds) }
    }
}

extension JSONForm<Probability> {
    static var percent: Self {
        Self(.number(min: 0, max: 100)) { JSONText.number(Double($0.partsPerMillion) / 10_000) }
    }
}

extension JSONForm where Value: RawRepresentable<String> & CaseIterable & Sendable {
    /// The name of a case.
    static var word: Self { Self(.words(Value.allCases.map(\.rawValue))) { JSONText.string($0.rawValue) } }
}
