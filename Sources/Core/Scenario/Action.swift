public import Determinism

extension Scenario {
    /// An action of a device or writer.
    public enum Action: Hashable, Sendable {
        /// Creates a note.
        case create(row: String, title: String? = nil, text: String? = nil)
        /// Changes a note.
        case edit(row: String, title: String? = nil, text: String? = nil)
        /// Deletes a note.
        case delete(row: String)
        /// Resolves a conflict by writing a title and a text; `nil` keeps the local value.
        case resolve(row: String, title: String? = nil, text: String? = nil)
        /// Resolves a conflict by a choice.
        case choose(row: String, Choice)
        /// Changes a note on the base that the writer read before, without reading the note first.
        case editStale(row: String, title: String? = nil, text: String? = nil)
        /// Deletes a note on the base that the writer read before, without reading the note first.
        case deleteStale(row: String)
        /// Keeps a note whose deletion is in conflict with a change of another client.
        case keep(row: String)
        /// Pins a note.
        case pin(row: String)
        /// Opens a screen: a note, or the list if `row` is `nil`.
        case open(row: String?)
        /// Requests a sync.
        case sync
        /// Sends a request as given, past the client's queue.
        case send(RawRequest)
        /// Kills the client.
        case kill
        /// Starts the client again.
        case start
        /// Replaces the client by another version of it, with the same store.
        case upgrade(version: Int)
        /// Shifts the wall clock of the device; the monotonic clock is not changed.
        case clock(shift: Nanoseconds)
        /// Signs the user out: the client ends, and the store of the account stays on the device.
        case signOut
        /// Signs a user in on the device: the client starts again with that user's credentials and store.
        case signIn(user: String)
        /// Changes the disk of the device.
        case disk(Disk)
        /// Changes the server itself.
        case server(ServerOperation)
        /// Calls a function of the app under test.
        case call(name: String, arguments: [Argument])
    }

    /// The disk of a device.
    public enum Disk: Hashable, Sendable {
        /// A commit succeeds at once.
        case normal
        /// No commit succeeds.
        case full
        /// A commit succeeds after this time.
        case slow(Nanoseconds)
    }

    /// A change of the built-in server itself.
    public enum ServerOperation: String, CaseIterable, Hashable, Sendable {
        /// Keeps a copy of everything that the server stores, in place of an earlier copy.
        case backup
        /// Replaces everything that the server stores by the copy.
        case restore
    }

    /// A way to resolve a conflict other than writing a new content.
    public enum Choice: String, CaseIterable, Hashable, Sendable {
        /// The server's side is kept.
        case theirs
        /// The local side is kept.
        case mine
        /// The note is deleted.
        case delete
    }

    /// A named argument of a call.
    public struct Argument: Hashable, Sendable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Creates an argument.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A request that is sent as given.
    public struct RawRequest: Hashable, Sendable {
        /// The method, such as `PUT`.
        public var method: String
        /// The request target. `{n1}` stands for the identifier of the note `n1`.
        public var path: String
        /// Header fields, in the order of the file. `{n1.revision}` in a value stands for the revision of the note `n1`
        /// that the sender has received last.
        public var headers: [Argument]
        /// The body. `{n1}` stands for the identifier of the note `n1`, if there is one.
        public var body: String

        /// Creates a request.
        public init(method: String, path: String, headers: [Argument] = [], body: String = "") {
            self.method = method
            self.path = path
            self.headers = headers
            self.body = body
        }

        /// The names of the notes in ``path``, in order. An opening brace without a closing one is text.
        public var rows: [String] {
            path.split(separator: "{", omittingEmptySubsequences: false).dropFirst().compactMap { part in
                part.firstIndex(of: "}").map { String(part[..<$0]) }
            }
        }

        /// The names in ``body`` that stand for identifiers of notes, if there are such notes: texts between braces of
        /// letters, digits, hyphens, dots and underscores.
        public var bodyRows: [String] {
            if !body.utf8.contains(UInt8(ascii: "{")) { return [] }
            return body.split(separator: "{", omittingEmptySubsequences: false).dropFirst().compactMap { part in
                guard let end = part.firstIndex(of: "}"), end > part.startIndex, part[..<end].allSatisfy(Self.isInName)
                else { return nil }
                return String(part[..<end])
            }
        }

        private static func isInName(_ character: Character) -> Bool {
            character.isASCII && (character.isLetter || character.isNumber || "-._".contains(character))
        }

        /// Returns the body with the identifiers of notes in place of their names; a name without one is text.
        public func body(identifier: (String) -> String?) -> String {
            var result = body
            for row in Set(bodyRows).sorted() {
                guard let found = identifier(row) else { continue }
                let parts = result.split(separator: "{\(row)}", omittingEmptySubsequences: false)
                result = parts.joined(separator: found)
            }
            return result
        }

        /// The names of the notes whose revisions ``headers`` have, in order.
        public var revisionRows: [String] { headers.flatMap { Self.revisions(in: $0.value) } }

        private static let revisionSuffix = ".revision"

        private static func revisions(in text: String) -> [String] {
            text.split(separator: "{", omittingEmptySubsequences: false).dropFirst().compactMap { part in
                guard let end = part.firstIndex(of: "}"), part[..<end].hasSuffix(revisionSuffix) else { return nil }
                return String(part[..<end].dropLast(revisionSuffix.count))
            }
        }

        /// Returns the header fields with the revisions of notes; `nil` if one of the notes has none.
        public func headers(revision: (String) -> String?) -> [Argument]? {
            var found: [Argument] = []
            for field in headers {
                var value = field.value
                for row in Set(Self.revisions(in: value)) {
                    guard let revision = revision(row) else { return nil }
                    let parts = value.split(
                        separator: "{\(row)\(Self.revisionSuffix)}", omittingEmptySubsequences: false)
                    value = parts.joined(separator: revision)
                }
                found.append(Argument(name: field.name, value: value))
            }
            return found
        }

        /// Returns the request target with the identifiers of notes; `nil` if one of the notes has none.
        public func target(identifier: (String) -> String?) -> String? {
            var target = path
            for row in Set(rows) {
                guard let found = identifier(row) else { return nil }
                target = target.split(separator: "{\(row)}", omittingEmptySubsequences: false).joined(separator: found)
            }
            return target
        }
    }
}

extension Scenario.Action {
    /// The name of the note that the action changes; `nil` if it changes none.
    public package(set) var row: String? {
        get {
            switch self {
            case .create(let row, _, _), .edit(let row, _, _), .delete(let row), .resolve(let row, _, _),
                .choose(let row, _), .editStale(let row, _, _), .deleteStale(let row), .keep(let row), .pin(let row):
                row
            case .open, .sync, .send, .kill, .start, .upgrade, .clock, .call, .signOut, .signIn, .disk, .server: nil
            }
        }
        set {
            guard let row = newValue else { return }
            switch self {
            case .create(_, let title, let text): self = .create(row: row, title: title, text: text)
            case .edit(_, let title, let text): self = .edit(row: row, title: title, text: text)
            case .delete: self = .delete(row: row)
            case .resolve(_, let title, let text): self = .resolve(row: row, title: title, text: text)
            case .choose(_, let choice): self = .choose(row: row, choice)
            case .editStale(_, let title, let text): self = .editStale(row: row, title: title, text: text)
            case .deleteStale: self = .deleteStale(row: row)
            case .keep: self = .keep(row: row)
            case .pin: self = .pin(row: row)
            case .open, .sync, .send, .kill, .start, .upgrade, .clock, .call, .signOut, .signIn, .disk, .server: break
            }
        }
    }

    /// The title and the text that the action writes; `nil` if it writes none. Only an action that writes some has others.
    package var content: (title: String?, text: String?)? {
        get {
            switch self {
            case .create(_, let title, let text), .edit(_, let title, let text), .editStale(_, let title, let text),
                .resolve(_, let title, let text):
                (title, text)
            default: nil
            }
        }
        set {
            guard let (title, text) = newValue else { return }
            switch self {
            case .create(let row, _, _): self = .create(row: row, title: title, text: text)
            case .edit(let row, _, _): self = .edit(row: row, title: title, text: text)
            case .editStale(let row, _, _): self = .editStale(row: row, title: title, text: text)
            case .resolve(let row, _, _): self = .resolve(row: row, title: title, text: text)
            default: break
            }
        }
    }

    /// A kind of action: what it does, whatever its values are and however it was planned.
    public enum Kind: Hashable, Sendable {
        case create, edit, delete, resolve, keep, pin, open, sync, send, kill, start, upgrade, clock, call, signOut,
            signIn, disk, server
    }

    /// The kind.
    public var kind: Kind {
        switch self {
        case .create: .create
        case .edit, .editStale: .edit
        case .delete, .deleteStale: .delete
        case .resolve, .choose: .resolve
        case .keep: .keep
        case .pin: .pin
        case .open: .open
        case .sync: .sync
        case .send: .send
        case .kill: .kill
        case .start: .start
        case .upgrade: .upgrade
        case .clock: .clock
        case .call: .call
        case .signOut: .signOut
        case .signIn: .signIn
        case .disk: .disk
        case .server: .server
        }
    }

    /// Whether the action changes a note.
    var isWrite: Bool { row != nil }

    /// Whether the action starts a client, or another version of it.
    var startsClient: Bool {
        switch self {
        case .start, .upgrade, .signIn: true
        default: false
        }
    }

    /// The name of the note that the action changes or shows; `nil` if there is none.
    public var subject: String? {
        switch self {
        case .open(let row): row
        case .call(_, let arguments): arguments.first { $0.name == "note" }?.value
        default: row
        }
    }
}

extension Scenario.Action.Kind {
    /// The verb of a sentence about a user or a client.
    var verb: String {
        switch self {
        case .create: "creates"
        case .edit: "edits"
        case .delete: "deletes"
        case .resolve: "resolves"
        case .keep: "keeps"
        case .pin: "pins"
        case .open: "opens"
        case .sync: "syncs"
        case .send: "sends"
        case .kill: "is killed"
        case .start: "starts again"
        case .upgrade: "is upgraded"
        case .clock: "has its clock shifted"
        case .call: "calls"
        case .signOut: "signs out"
        case .signIn: "signs in"
        case .disk: "has its disk changed"
        case .server: "changes the server"
        }
    }
}

extension Scenario.Action: CustomStringConvertible {
    public var description: String {
        switch self {
        case .create(let row, _, _), .edit(let row, _, _), .delete(let row), .resolve(let row, _, _), .keep(let row),
            .pin(let row):
            "\(kind.verb) \(row)"
        case .choose(let row, let choice): "\(kind.verb) \(row) with \(choice.rawValue)"
        case .editStale(let row, _, _), .deleteStale(let row): "\(kind.verb) \(row) on the base read before"
        case .open(let row): "\(kind.verb) \(row ?? "the list")"
        case .sync, .kill, .start, .signOut: kind.verb
        case .signIn(let user): "\(kind.verb) as \(user)"
        case .disk(let disk): "has a \(disk) disk"
        case .server(.backup): "makes a backup of the server"
        case .server(.restore): "restores the server's backup"
        case .send(let request): "\(kind.verb) \(request.method) \(request.path)"
        case .upgrade(let version): "\(kind.verb) to version \(version)"
        case .clock(let shift): "\(kind.verb) by \(TimeFormat.signed(shift))"
        case .call(let name, let arguments):
            "\(kind.verb) \(name)" + (arguments.first { $0.name == "note" }.map { " of \($0.value)" } ?? "")
        }
    }
}

extension Scenario.Disk: CustomStringConvertible {
    public var description: String {
        switch self {
        case .normal: "normal"
        case .full: "full"
        case .slow(let delay): "slow (\(TimeFormat.short(delay)))"
        }
    }
}

extension Scenario {
    /// The users of devices and writers, also those who sign in during the run.
    public var users: Set<String> {
        var found = Set(devices.map(\.user) + writers.map(\.user))
        for step in steps { if case .signIn(let user)? = step.action?.action { found.insert(user) } }
        return found
    }
}
