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
