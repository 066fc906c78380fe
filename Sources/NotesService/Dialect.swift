public import HTTPTypes

/// What a notes server says where servers differ.
public struct NotesDialect: Hashable, Sendable, CustomStringConvertible {
    /// Its name.
    public let name: String
    /// It in a sentence.
    public let summary: String
    /// What is said to who is not known: 403, or 401 with a challenge.
    public var unauthenticated: HTTPResponse.Status

    let naming: Naming
    let missingSlash: MissingSlash
    let creation: Creation
    let update: Update
    let tombstones: Tombstones?
    let reading: Reading
    let features: Features

    /// What a note may be called.
    enum Naming: String {
        /// Up to 255 characters, as they were typed; each name once among all users.
        case text
        /// A UUID in the form of RFC 9562, in either case; each user has names of their own.
        case uuid
    }

    /// What becomes of a request whose path lacks the final slash.
    enum MissingSlash {
        /// It is sent to the right one.
        case redirected
        /// It is sent there if it only reads, otherwise served as if the slash were there.
        case redirectedIfSafe
        /// There is nothing.
        case unknown
    }

    struct Creation: Hashable {
        /// Whether the client has to name the note, or at least the operation.
        let needsName: Bool
        /// What a `revision` does there.
        let revision: Revision
        /// Whether a second one of the same name is compared with the note, or malformed.
        let secondIsCompared: Bool

        enum Revision {
            /// The note goes on from it.
            case continued
            case ignored, refused
        }
    }

    struct Update: Hashable {
        /// The answer when no base revision is given.
        let missingRevision: HTTPResponse.Status
        /// Whether a PUT replaces: a missing field is refused. If not, title and text stay, and the date becomes now.
        let putReplaces: Bool
        /// Whether a write of what is there already leaves the revision.
        let keepsRevisionWhenEqual: Bool
    }

    /// What is said of what has been deleted.
    struct Tombstones: Hashable {
        /// To who reads or writes.
        let gone: HTTPResponse.Status
        /// To who deletes.
        let deletedAgain: HTTPResponse.Status
    }

    struct Reading: Hashable {
        /// Whether conditions are looked at before the note's owner: so did the original, and told strangers tags.
        let conditionsBeforeOwner: Bool
        /// Lists by the clients' dates, or in the order of the last writes.
        let isByDate: Bool
        /// Whether dates are answered as they were typed, and may lack an offset.
        let datesAreAsTyped: Bool
        /// Whether a browser gets HTML of everything.
        let hasBrowsableHTML: Bool
    }

    struct Features: OptionSet, Hashable {
        let rawValue: Int
        /// `Idempotency-Key` names an operation.
        static let operations = Features(rawValue: 1)
        /// `If-Match` is a base revision.
        static let ifMatch = Features(rawValue: 2)
        /// A refusal shows the note as it is.
        static let current = Features(rawValue: 4)
        /// Answers to writes and lists carry an ETag, notes a Last-Modified, all a Cache-Control.
        static let validators = Features(rawValue: 8)
        /// The index can be asked for what has changed since.
        static let cursor = Features(rawValue: 16)
        /// There are tokens.
        static let tokens = Features(rawValue: 32)
        /// Notes can be pinned.
        static let pins = Features(rawValue: 64)

        static let all: Features = [.operations, .ifMatch, .current, .validators, .cursor, .tokens, .pins]
    }

    /// The original of 2013, with writes that are atomic and without its 500s.
    public static let orig = NotesDialect(
        name: "orig", summary: "the original of 2013, with atomic writes and without its 500s",
        unauthenticated: .forbidden, naming: .text, missingSlash: .redirected,
        creation: Creation(needsName: false, revision: .continued, secondIsCompared: false),
        update: Update(missingRevision: .badRequest, putReplaces: false, keepsRevisionWhenEqual: false),
        tombstones: nil,
        reading: Reading(
            conditionsBeforeOwner: true, isByDate: true, datesAreAsTyped: true, hasBrowsableHTML: true),
        features: [])
    /// The repaired one, which its clients can talk to.
    public static let compat = NotesDialect(
        name: "compat", summary: "the original repaired, so that its clients still work",
        unauthenticated: .forbidden, naming: .uuid, missingSlash: .redirectedIfSafe,
        creation: Creation(needsName: false, revision: .ignored, secondIsCompared: true),
        update: Update(missingRevision: .badRequest, putReplaces: true, keepsRevisionWhenEqual: true),
        tombstones: Tombstones(gone: .notFound, deletedAgain: .notFound),
        reading: Reading(
            conditionsBeforeOwner: false, isByDate: false, datesAreAsTyped: false, hasBrowsableHTML: false),
        features: .all)
    /// The one to write new clients for.
    public static let strict = NotesDialect(
        name: "strict", summary: "the repaired one without concessions: for new clients",
        unauthenticated: .unauthorized, naming: .uuid, missingSlash: .unknown,
        creation: Creation(needsName: true, revision: .refused, secondIsCompared: true),
        update: Update(missingRevision: .preconditionRequired, putReplaces: true, keepsRevisionWhenEqual: true),
        tombstones: Tombstones(gone: .gone, deletedAgain: .noContent), reading: compat.reading, features: .all)

    public var description: String { name }

    /// All of them.
    public static let all = [compat, orig, strict]
    /// The dialects by name.
    public static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
}
