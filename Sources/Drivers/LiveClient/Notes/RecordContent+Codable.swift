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

    /// Decodes a value.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSONDecoder().decode(type, from: Data(bytes))
    }
}
