public import Client
internal import Foundation
internal import Wire

/// Contents of a `JSONResource` as values of Swift types.
extension RecordContent {
    /// Encodes a value as a JSON object.
    public init(encoding value: some Encodable) throws {
        let data = try JSONEncoder().encode(value)
        guard let object = JSONText.parse(data)?.object else {
            throw EncodingError.invalidValue(
                value, EncodingError.Context(codingPath: [], debugDescription: "The value is not a JSON object."))
        }
        // The same form as that of a content from the server, so that equal contents have equal bytes.
        self.init(Array(JSONValue.object(object).json.utf8))
    }

    /// Returns the content after a change of the value that it represents. Members that the type does not have stay, and so
    /// do the bytes of those that the change leaves alone.
    public func changing<Value: Codable>(
        _ type: Value.Type = Value.self, _ body: (inout Value) throws -> Void
    ) throws -> RecordContent {
        var value = try decode(Value.self)
        let before = try RecordContent(encoding: value).object
        try body(&value)
        let after = try RecordContent(encoding: value).object
        return RecordContent(Array(JSONValue.object(Self.merged(object, before, after)).json.utf8))
    }

    private var object: JSONObject { JSONText.parse(bytes)?.object ?? JSONObject() }

    /// Returns an object with the differences between two others.
    private static func merged(_ object: JSONObject, _ before: JSONObject, _ after: JSONObject) -> JSONObject {
        var result = object
        for name in Set(before.keys + after.keys).sorted() where before[name] != after[name] {
            if let inner = object[name]?.object, let old = before[name]?.object, let new = after[name]?.object {
                result[name] = .object(merged(inner, old, new))
            } else {
                result[name] = after[name]
            }
        }
        return result
    }

    /// Decodes a value.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }
}
