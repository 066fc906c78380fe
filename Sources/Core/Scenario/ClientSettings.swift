public import Determinism

extension Scenario {
    /// Delays and limits of the reference clients; `nil` for the value of the published policy.
    public struct ClientSettings: Hashable, Sendable {
        /// The delay after the first failure.
        public var firstDelay: Nanoseconds?
        /// The longest delay between attempts.
        public var longestDelay: Nanoseconds?
        /// The interval between index fetches.
        public var poll: Nanoseconds?
        /// The time without progress after which an exchange fails.
        public var timeout: Nanoseconds?
        /// The size from which a change is sent on a connection of its own.
        public var largeBytes: Int?

        /// Creates the settings of the published policy.
        public init() {}
    }
}
