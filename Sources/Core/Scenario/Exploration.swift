extension Scenario {
    /// A search for failing runs over many seeds.
    public struct Exploration: Equatable, Sendable {
        /// A part of a scenario that the seed varies.
        public enum Part: String, CaseIterable, Hashable, Sendable { case workload, network, faults, config }

        /// The number of seeds.
        public var seeds: Int
        /// The parts that vary; the others are those of the scenario's own seed.
        public var vary: [Part]
        /// The expectations of each drawn run; each `sometimes` is one of all runs together.
        public var expectations: [Expectation] = []

        /// Creates a search.
        public init(seeds: Int, vary: [Part]) {
            self.seeds = seeds
            self.vary = vary
        }

        public static func == (left: Exploration, right: Exploration) -> Bool {
            left.seeds == right.seeds && left.vary == right.vary
                && left.expectations.map(\.description) == right.expectations.map(\.description)
        }
    }
}
