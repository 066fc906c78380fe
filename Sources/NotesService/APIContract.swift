public import HTTPTypes

/// What a notes server says where servers differ.
public struct APIContract: Hashable, Sendable, CustomStringConvertible {
    /// Its name.
    public let name: String
    /// It in a sentence.
    public let summary: String
    /// What is said to who is not known: 403, or 401 with a challenge.
    public var unauthenticated: HTTPResponse.Status

    let idFormat: IDFormat
    let missingSlash: MissingSlash
    let creation: Creation
    let update: Update
    let tombstones: Tombstones?
    let reading: Reading
    let features: Features

    /// What a note may be called.
    enum IDFormat: String {
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
        let requiresID: Bool
        /// What a `revision` does there.
        let revision: Revision
        /// Whether a second one of the same name is compared with the note, or malformed.
        let comparesDuplicates: Bool

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
        let keepsRevisionIfUnchanged: Bool
    }

    /// What is said of what has been deleted.
    struct Tombstones: Hashable {
        /// To who reads or writes.
        let gone: HTTPResponse.Status
        /// To who deletes.
        let repeatedDeleteStatus: HTTPResponse.Status
    }

    struct Reading: Hashable {
        /// Whether conditions are looked at before the note's owner: so did the original, and told strangers tags.
        let checksConditionsBeforeOwner: Bool
        /// Lists by the clients' dates, or in the order of the last writes.
        let listsByDate: Bool
        /// Whether dates are answered as they were typed, and may lack an offset.
        let echoesDates: Bool
        /// Whether a browser gets HTML of everything.
        let servesHTML: Bool
    }

    struct Features: OptionSet, Hashable {
        let rawValue: Int
        /// `Idempotency-Key` names an operation.
        static let idempotencyKeys = Features(rawValue: 1)
        /// `If-Match` is a base revision.
        static let ifMatch = Features(rawValue: 2)
        /// A refusal shows the note as it is.
        static let currentInConflicts = Features(rawValue: 4)
        /// Answers to writes and lists carry an ETag, notes a Last-Modified, all a Cache-Control.
        static let validators = Features(rawValue: 8)
        /// The index can be asked for what has changed since.
        static let cursors = Features(rawValue: 16)
        /// There are tokens.
        static let tokens = Features(rawValue: 32)
        /// Notes can be pinned.
        static let pins = Features(rawValue: 64)

        static let all: Features = [.idempotencyKeys, .ifMatch, .currentInConflicts, .validators, .cursors, .tokens, .pins]
    }

    /// The original of 2013, with writes that are atomic and without its 500s.
    public static let orig = APIContract(
        name: "orig", summary: "the original of 2013, with atomic writes and without its 500s",
        unauthenticated: .forbidden, idFormat: .text, missingSlash: .redirected,
        creation: Creation(requiresID: false, revision: .continued, comparesDuplicates: false),
        update: Update(missingRevision: .badRequest, putReplaces: false, keepsRevisionIfUnchanged: false),
        tombstones: nil,
        reading: Reading(
            checksConditionsBeforeOwner: true, listsByDate: true, echoesDates: true, servesHTML: true),
        features: [])
    /// The repaired one, which its clients can talk to.
    public static let compat = APIContract(
        name: "compat", summary: "the original repaired, so that its clients still work",
        unauthenticated: .forbidden, idFormat: .uuid, missingSlash: .redirectedIfSafe,
        creation: Creation(requiresID: false, revision: .ignored, comparesDuplicates: true),
        update: Update(missingRevision: .badRequest, putReplaces: true, keepsRevisionIfUnchanged: true),
        tombstones: Tombstones(gone: .notFound, repeatedDeleteStatus: .notFound),
        reading: Reading(
            checksConditionsBeforeOwner: false, listsByDate: false, echoesDates: false, servesHTML: false),
        features: .all)
    /// The one to write new clients for.
    public static let strict = APIContract(
        name: "strict", summary: "the repaired one without concessions: for new clients",
        unauthenticated: .unauthorized, idFormat: .uuid, missingSlash: .unknown,
        creation: Creation(requiresID: true, revision: .refused, comparesDuplicates: true),
        update: Update(missingRevision: .preconditionRequired, putReplaces: true, keepsRevisionIfUnchanged: true),
        tombstones: Tombstones(gone: .gone, repeatedDeleteStatus: .noContent), reading: compat.reading, features: .all)

    public var description: String { name }

    /// All of them.
    public static let all = [compat, orig, strict]
    /// The dialects by name.
    public static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
}
