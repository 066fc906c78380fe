extension Scenario {
    /// The server of a scenario.
    public enum ServerKind: Hashable, Sendable {
        /// Slowlane's notes server.
        case builtIn
        /// A program, and what tells that it accepts requests: the URL or the path of a resource; `nil` for a port
        /// that accepts connections.
        case run(Program, ready: String?)
        /// A server at a URL.
        case url(String)
    }

    /// The TLS of a server that is not the built-in one, which the links of the devices end.
    public struct ServerTLS: Hashable, Sendable {
        /// The path of the PEM file of the authorities that certify the server; `nil` for those of the system.
        public var authorities: String?
        /// The folder in which a relative path begins; `nil` for that of the runner.
        public var folder: String?
        /// Whether any certificate is accepted.
        public var isInsecure: Bool

        /// Creates settings.
        public init(authorities: String? = nil, folder: String? = nil, isInsecure: Bool = false) {
            self.authorities = authorities
            self.folder = folder
            self.isInsecure = isInsecure
        }

        /// The path of the file of authorities.
        public var path: String? {
            authorities.map { $0.hasPrefix("/") ? $0 : (folder ?? "") + $0 }
        }
    }

    /// Generated notes on the server at the start. They are named `f1`, `f2` and so on.
    public struct Fill: Hashable, Sendable {
        /// The number of notes.
        public var notes: Int
        /// The size of each note's text in bytes.
        public var bytes: Int

        /// Creates a description of generated notes.
        public init(notes: Int, bytes: Int) {
            self.notes = notes
            self.bytes = bytes
        }

        /// The names of the notes.
        public var rows: [String] { (0..<notes).map { "f\($0 + 1)" } }
    }
}
