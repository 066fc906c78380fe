public import Wire

/// The fields of a request body that writes a note.
public struct NoteFields: Hashable, Sendable {
    /// A field of a request body.
    public enum Field: Hashable, Sendable {
        /// The field is absent.
        case missing
        /// The field is null.
        case null
        /// The field is a string.
        case text(String)
        /// The field has another type.
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

    /// Parses a JSON body; `nil` if it is not a JSON object.
    public init?(json: some Sequence<UInt8>) {
        guard let value = JSONText.parse(json) else { return nil }
        self.init(value)
    }

    /// Takes the fields of a JSON value; `nil` if it is not an object.
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
