extension History {
    /// The icon beside a note.
    public enum Icon: String, CaseIterable, Hashable, Sendable, CustomStringConvertible {
        /// There is none: the note is synchronised.
        case plain = "none"
        /// A change is pending.
        case upload
        /// The note is in conflict.
        case conflict
        /// A change was rejected.
        case error

        public var description: String { rawValue }
    }
}
