/// What a notes server says where servers differ.
public struct NotesDialect: Hashable, Sendable {
    /// Its name.
    public let name: String
    /// Whether `Idempotency-Key` names an operation.
    public let knowsOperations: Bool
    /// Whether creating what is there already is a conflict (409), or a malformed request (400).
    public let secondCreationIsConflict: Bool
    /// Whether a refusal shows the note as it is.
    public let showsCurrent: Bool
    /// Whether the index lists what has been deleted, and the name stays taken.
    public let keepsTombstones: Bool
    /// Whether answers to writes carry an ETag.
    public let tagsWrites: Bool
    /// Whether a PUT that changes nothing leaves the revision.
    public let keepsRevisionWhenEqual: Bool
    /// Whether a PUT replaces: a missing field is refused instead of left as it is.
    public let putReplaces: Bool

    /// The original of 2013, as far as creation and operations go.
    public static let orig = NotesDialect(
        name: "orig", knowsOperations: false, secondCreationIsConflict: false, showsCurrent: false,
        keepsTombstones: false, tagsWrites: false, keepsRevisionWhenEqual: false, putReplaces: false)
    /// The repaired one, which its clients can talk to.
    public static let compat = NotesDialect(
        name: "compat", knowsOperations: true, secondCreationIsConflict: true, showsCurrent: true,
        keepsTombstones: true, tagsWrites: true, keepsRevisionWhenEqual: true, putReplaces: true)

    /// The dialects by name.
    public static let named = ["orig": orig, "compat": compat]
}
