public import HTTPTypes

/// A contract of the notes API: the behaviour in which the three kinds of notes server differ.
public struct APIContract: Hashable, Sendable, CustomStringConvertible {
    /// The name.
    public let name: String
    /// A description in one sentence.
    public let summary: String
    /// The status of unauthenticated requests: 403, or 401 with a challenge.
    public var unauthenticatedStatus: HTTPResponse.Status

    let idFormat: IDFormat
    let missingSlash: MissingSlash
    let creation: Creation
    let update: Update
    let tombstones: Tombstones?
    let reading: Reading
    let features: Features

    /// The format of a note's `uuid`. A database file stores the raw value.
    enum IDFormat: String {
        /// 1 to 255 characters, kept as sent and unique among all users.
        case freeText = "text"
        /// A UUID (RFC 9562), case-insensitive and unique per user.
        case uuid
    }

    /// The treatment of a path without its final slash.
    enum MissingSlash {
        /// 301 to the path with the slash.
        case redirect
        /// 301 for safe methods; other methods are served as if the slash were there.
        case redirectIfSafe
        case notFound
    }

    struct Creation: Hashable {
        /// Whether a POST needs a `uuid` or an `Idempotency-Key`.
        let requiresID: Bool
        let revision: Revision
        /// Whether a POST of an existing `uuid` is compared with the stored note; otherwise it is a 400.
        let comparesDuplicates: Bool

        /// The treatment of a `revision` in a POST.
        enum Revision {
            /// The first revision of the note has the number after that of the given `revision`.
            case continued
            case ignored, rejected
        }
    }

    struct Update: Hashable {
        /// The status of a write without a base revision.
        let missingRevisionStatus: HTTPResponse.Status
        /// Whether PUT replaces the note and rejects missing fields. Otherwise missing title and text keep their value,
        /// and a missing date becomes the current time.
        let putReplaces: Bool
        /// Whether a write that changes nothing keeps the revision.
        let keepsRevisionIfUnchanged: Bool
    }

    /// Statuses of deleted notes.
    struct Tombstones: Hashable {
        /// The status of GET, PUT and PATCH.
        let readStatus: HTTPResponse.Status
        /// The status of another DELETE.
        let repeatedDeleteStatus: HTTPResponse.Status
    }

    struct Reading: Hashable {
        /// Whether preconditions are evaluated before ownership. The original did this and so disclosed entity tags of
        /// other users' notes.
        let checksConditionsBeforeOwner: Bool
        /// Whether lists are ordered by the notes' dates; otherwise by last write.
        let listsByDate: Bool
        /// Whether the response to a write repeats the date as sent, and whether a date may lack an offset.
        let echoesDates: Bool
        /// Whether a request with `Accept: text/html` gets the JSON in a web page.
        let servesHTML: Bool
    }

    struct Features: OptionSet, Hashable {
        let rawValue: Int
        /// `Idempotency-Key` on writes.
        static let idempotencyKeys = Features(rawValue: 1)
        /// `If-Match` as base revision.
        static let ifMatch = Features(rawValue: 2)
        /// The stored note in 409 and 412 responses.
        static let currentInConflicts = Features(rawValue: 4)
        /// ETag on writes and lists, Last-Modified on notes, Cache-Control on everything.
        static let validators = Features(rawValue: 8)
        /// Cursors in the index.
        static let cursors = Features(rawValue: 16)
        static let tokens = Features(rawValue: 32)
        static let pins = Features(rawValue: 64)
        static let attachments = Features(rawValue: 128)

        static let all: Features = [
            .idempotencyKeys, .ifMatch, .currentInConflicts, .validators, .cursors, .tokens, .pins,
            .attachments,
        ]
    }

    /// The original server, with atomic writes and no 500 responses.
    public static let orig = APIContract(
        name: "orig", summary: "the original server, with atomic writes and no 500 responses",
        unauthenticatedStatus: .forbidden, idFormat: .freeText, missingSlash: .redirect,
        creation: Creation(requiresID: false, revision: .continued, comparesDuplicates: false),
        update: Update(missingRevisionStatus: .badRequest, putReplaces: false, keepsRevisionIfUnchanged: false),
        tombstones: nil,
        reading: Reading(checksConditionsBeforeOwner: true, listsByDate: true, echoesDates: true, servesHTML: true),
        features: [])
    /// The API of the original server with additions, compatible with its clients.
    public static let compat = APIContract(
        name: "compat", summary: "the API of the original server with additions, compatible with its clients",
        unauthenticatedStatus: .forbidden, idFormat: .uuid, missingSlash: .redirectIfSafe,
        creation: Creation(requiresID: false, revision: .ignored, comparesDuplicates: true),
        update: Update(missingRevisionStatus: .badRequest, putReplaces: true, keepsRevisionIfUnchanged: true),
        tombstones: Tombstones(readStatus: .notFound, repeatedDeleteStatus: .notFound),
        reading: Reading(
            checksConditionsBeforeOwner: false, listsByDate: false, echoesDates: false, servesHTML: false),
        features: .all)
    /// `compat` without concessions to old clients.
    public static let strict = APIContract(
        name: "strict", summary: "compat without concessions to old clients",
        unauthenticatedStatus: .unauthorized, idFormat: .uuid, missingSlash: .notFound,
        creation: Creation(requiresID: true, revision: .rejected, comparesDuplicates: true),
        update: Update(missingRevisionStatus: .preconditionRequired, putReplaces: true, keepsRevisionIfUnchanged: true),
        tombstones: Tombstones(readStatus: .gone, repeatedDeleteStatus: .noContent), reading: compat.reading,
        features: .all)

    public var description: String { name }

    /// All contracts, the default first.
    public static let all = [compat, orig, strict]
    /// The contracts by name.
    public static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
}
