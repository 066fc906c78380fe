public import JSON

/// What a client's body says: which fields it has, and of what type.
public struct NoteFields: Hashable, Sendable {
    /// A field that may be missing, null, a text, or of a wrong type.
    public enum Field: Hashable, Sendable {
        /// It is not there.
        case missing
        /// It is null.
        case null
        /// A text.
        case text(String)
        /// Something else.
        case wrongType
    }

    /// `uuid`.
    public let uuid: Field
    /// `revision`.
    public let revision: Field
    /// `date`.
    public let date: Field
    /// `title`.
    public let title: Field
    /// `text`.
    public let text: Field

    /// Reads a body; `nil` if it is not a JSON object.
    public init?(json: some Sequence<UInt8>) {
        guard let value = JSONText.parse(json) else { return nil }
        self.init(value)
    }

    /// Takes a body that has been read; `nil` if it is not an object.
    public init?(_ value: JSONValue) {
        guard let object = value.object else { return nil }
        self.init { name in
            switch object[name] {
            case nil: .missing
            case .null: .null
            case .text(let text): .text(text)
            default: .wrongType
            }
        }
    }

    /// Takes the fields of a form.
    public init(form: [ByteKey: String]) { self.init { name in form[ByteKey(name)].map(Field.text) ?? .missing } }

    private init(_ field: (String) -> Field) {
        uuid = field("uuid")
        revision = field("revision")
        date = field("date")
        title = field("title")
        text = field("text")
    }
}
