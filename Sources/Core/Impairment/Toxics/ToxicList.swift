internal import DequeModule
internal import Determinism
internal import LinkModel

/// The toxics of a link, in the order in which they were added, with the random streams that they draw from.
struct ToxicList {
    private(set) var toxics: [Toxic] = []
    private var seed: UInt64
    private let name: String
    /// The number of additions of a toxic, by its name. Each addition has a random stream of its own.
    private var additions: [String: Int] = [:]
    /// The most recently removed `timeout` toxics. They may apply to connections that were open on the fast path then.
    private var removedTimeouts = Deque<RemovedTimeout>()
    private static let removedTimeoutsMax = 64

    /// A `timeout` toxic that was removed, with the origin of its random stream.
    private struct RemovedTimeout {
        let toxic: Toxic
        let addition: Int
        let seed: UInt64
        let time: Instant
    }

    /// Creates the list of a link.
    ///
    /// - Parameter name: The name of the link, the prefix of the names of its random streams.
    init(_ toxics: [Toxic], seed: UInt64, name: String) {
        self.toxics = toxics
        self.seed = seed
        self.name = name
    }

    var isEmpty: Bool { toxics.isEmpty }

    mutating func add(_ toxic: Toxic) {
        toxics.append(toxic)
        additions[toxic.name, default: 0] += 1
    }

    /// Replaces the toxic with the same name. Returns `false` if there is none.
    mutating func update(_ toxic: Toxic) -> Bool {
        guard let index = toxics.firstIndex(where: { $0.name == toxic.name }) else { return false }
        toxics[index] = toxic
        return true
    }

    /// Removes a toxic and returns it; `nil` if no toxic has that name.
    mutating func remove(_ name: String, at now: Instant) -> Toxic? {
        guard let index = toxics.firstIndex(where: { $0.name == name }) else { return nil }
        let toxic = toxics.remove(at: index)
        if case .timeout = toxic.effect {
            if removedTimeouts.count == Self.removedTimeoutsMax { removedTimeouts.removeFirst() }
            removedTimeouts.append(
                RemovedTimeout(toxic: toxic, addition: additions[name] ?? 0, seed: seed, time: now))
        }
        return toxic
    }

    mutating func reseed(_ seed: UInt64) {
        self.seed = seed
        additions = [:]
    }

    /// Returns the random stream of a toxic for a connection, given by its number.
    func random(for toxic: Toxic, connection: Int) -> RandomStream {
        random(for: toxic, addition: additions[toxic.name] ?? 0, seed: seed, connection: connection)
    }

    private func random(for toxic: Toxic, addition: Int, seed: UInt64, connection: Int) -> RandomStream {
        RandomStream(
            seed: seed, "\(name)/toxic/\(toxic.name)/\(addition)/\(toxic.stream)/conn/\(connection)")
    }

    /// Returns the stream of a `timeout` toxic that was removed after a connection was opened, and would have applied
    /// to that connection; `nil` if there is none.
    ///
    /// - Parameter opening: The time at which the connection was opened.
    func streamOfRemovedTimeout(since opening: Instant, connection: Int) -> Direction? {
        removedTimeouts.first { removed in
            var random = random(
                for: removed.toxic, addition: removed.addition, seed: removed.seed, connection: connection)
            return removed.time >= opening && random.bool(probability: removed.toxic.toxicity)
        }?.toxic.stream
    }
}
