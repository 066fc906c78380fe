internal import JSON

/// What a client's body says: which fields it has, and of what type.
public struct NoteRequest: Hashable, Sendable {
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
        guard let object = JSONText.parse(json)?.object else { return nil }
        func field(_ name: String) -> Field {
            switch object[name] {
            case nil: .missing
            case .null: .null
            case .text(let text): .text(text)
            default: .wrongType
            }
        }
        uuid = field("uuid")
        revision = field("revision")
        date = field("date")
        title = field("title")
        text = field("text")
    }
}
