internal import Scenario

/// The results of an exploration so far, added in the order of the seeds.
struct ExplorationTally: Sendable {
    /// A class of failures.
    struct Class: Sendable {
        let group: FailureGroup
        /// The failure of the first seed.
        let first: SeedFailure
        /// The failing seeds, the first ones only.
        var seeds: [UInt64]
        /// The number of failing seeds.
        var count: Int
    }

    /// The maximum number of seeds that a class lists.
    static let seedsMax = 20
    /// The maximum number of classes; further ones are counted as failed seeds only.
    private static let classesMax = 100

    private(set) var seeds = 0
    private(set) var failed = 0
    private(set) var repeated = 0
    private(set) var different = 0
    private(set) var errors = 0
    private(set) var events = 0
    /// The classes in the order of their first seeds.
    private(set) var classes: [Class] = []
    /// The number of seeds that reach each cell.
    private(set) var cells: [CoverageCell: Int] = [:]
    /// The number of seeds that reach each state that the scenario asks for.
    private(set) var reached: [String: Int] = [:]

    /// Adds a seed. Returns the failures that are the first of their classes.
    mutating func add(_ seed: ExploredSeed) -> [SeedFailure] {
        seeds += 1
        events += seed.eventCount
        if seed.error != nil { errors += 1 }
        switch seed.repetition {
        case .none: break
        case .same: repeated += 1
        case .different: different += 1
        }
        for cell in seed.cells { cells[cell, default: 0] += 1 }
        for state in seed.reached { reached[state, default: 0] += 1 }
        guard !seed.failures.isEmpty else { return [] }
        failed += 1
        var first: [SeedFailure] = []
        var counted: Set<FailureGroup> = []
        for failure in seed.failures where counted.insert(failure.group).inserted {
            if let index = classes.firstIndex(where: { $0.group == failure.group }) {
                classes[index].count += 1
                if classes[index].seeds.count < Self.seedsMax { classes[index].seeds.append(seed.seed) }
            } else if classes.count < Self.classesMax {
                classes.append(
                    Class(group: failure.group, first: failure, seeds: [seed.seed], count: 1))
                first.append(failure)
            }
        }
        return first
    }

    /// Returns the states that no seed has reached.
    ///
    /// - Parameter wanted: The states that the scenario asks for.
    func unreached(_ wanted: [String]) -> [String] { wanted.filter { reached[$0] == nil } }

    /// Returns the exit status: that of the worst finding.
    ///
    /// - Parameter wanted: The states that the scenario asks for.
    func exitStatus(_ wanted: [String]) -> Int32 {
        RunStatus.worst(of: [
            different > 0 ? RunStatus.notDeterministic : RunStatus.passed,
            failed > 0 ? RunStatus.failed : RunStatus.passed,
            errors > 0 ? RunStatus.invalidFile : RunStatus.passed,
            unreached(wanted).isEmpty ? RunStatus.passed : RunStatus.inconclusive,
        ])
    }
}
