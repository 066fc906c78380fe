extension NotesService {
    /// The guarantees of the service for writes, where the contract has them. The default values are those of the contract.
    public struct Behavior: Hashable, Sendable {
        /// The result of a request with a known `Idempotency-Key`.
        public enum Repetition: Hashable, Sendable {
            /// The stored result; an error if the request differs from the first one.
            case compared
            /// The stored result, whatever the request is.
            case trusted
            /// That of another execution.
            case executed
        }

        /// Whether the base revision of a write must be the current one.
        public var comparesRevisions = true
        /// The result of a request with a known `Idempotency-Key`.
        public var repetition = Repetition.compared
        /// Whether a write gives the note another revision.
        public var changesRevisions = true
        /// Whether a deletion leaves a tombstone.
        public var leavesTombstones = true
        /// Whether the `uuid` of a deleted note can be used for another one.
        public var reusesIDs = false

        /// Creates the behaviour of the contract.
        public init() {}
    }
}
