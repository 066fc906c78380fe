internal import Determinism

/// What a request says, without texts and secrets: its account, the revision it names, and digests of its texts.
public struct RequestContents: Hashable, Sendable {
    /// The account that the credentials name.
    public enum Account: Hashable, Sendable {
        /// A user by name.
        case user(String)
        /// An access token, by its number in the run.
        case token(Int)
    }

    /// A revision of a note.
    public struct Revision: Hashable, Sendable {
        /// Its number; `nil` if it has none.
        public let number: Int?
        /// A digest of its text.
        public let digest: UInt64

        /// Creates the revision with this text.
        public init(_ text: String) {
            number = Int(text.prefix { $0 != "-" })
            digest = RequestContents.digest(text)
        }
    }

    /// The body of a request.
    public enum Body: Hashable, Sendable {
        /// There is none.
        case none
        /// A note: the digests of title and text, if it has them.
        case note(title: UInt64?, text: UInt64?)
        /// Anything else, or a body that was not read to its end.
        case other
    }

    /// The account; `nil` without credentials, or with credentials of another kind.
    public var account: Account?
    /// The revision that the request replaces; `nil` if it names none.
    public var base: Revision?
    /// Whether the client has the representation already and asks for a change (`If-None-Match`).
    public var isConditional: Bool
    /// The body.
    public var body: Body

    /// Creates the contents of a request.
    public init(
        account: Account? = nil, base: Revision? = nil, isConditional: Bool = false, body: Body = .none
    ) {
        self.account = account
        self.base = base
        self.isConditional = isConditional
        self.body = body
    }

    /// Returns the digest of a text of a note.
    public static func digest(_ text: String) -> UInt64 { FNV1a.digest(text.utf8) }

    /// The digest of the text of the note; `nil` if it is not known.
    var text: UInt64? { if case .note(_, let text) = body { text } else { nil } }

    func encode(into encoder: inout EventEncoder) {
        switch account {
        case nil: encoder.begin(0)
        case .user(let name):
            encoder.begin(1)
            encoder.add(name)
        case .token(let number):
            encoder.begin(2)
            encoder.add(number)
        }
        encoder.add(base != nil)
        if let base {
            encoder.add(base.number)
            encoder.add(base.digest)
        }
        encoder.add(isConditional)
        switch body {
        case .none: encoder.begin(0)
        case .note(let title, let text):
            encoder.begin(1)
            encoder.add(title)
            encoder.add(text)
        case .other: encoder.begin(2)
        }
    }
}

extension RequestContents: CustomStringConvertible {
    public var description: String {
        var parts: [String] = []
        switch account {
        case .user(let name)?: parts.append("account \(name)")
        case .token(let number)?: parts.append("account of token \(number)")
        case nil: parts.append("no account")
        }
        if let base { parts.append("base \(base.number.map(String.init) ?? "unknown")") }
        if isConditional { parts.append("conditional") }
        return parts.joined(separator: ", ")
    }
}

/// What a world records, besides the events of every run.
public struct WorldFacts: Hashable, Sendable {
    /// Whether time is virtual, so that nothing takes longer than it must.
    public var isSimulated: Bool
    /// Whether the bytes of both ends of each link are compared.
    public var comparesBytes: Bool

    /// Creates the facts of a world.
    public init(isSimulated: Bool, comparesBytes: Bool) {
        self.isSimulated = isSimulated
        self.comparesBytes = comparesBytes
    }
}
