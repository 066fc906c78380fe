internal import Determinism
internal import NIOCore

/// A splitter of chunks into small pieces. Each piece is sent separately, and a pause follows it.
struct SlicerToxic: ToxicMachine {
    let averageSize: Int
    let sizeVariation: Int
    let delay: Nanoseconds
    var random: RandomStream
    /// The lengths into which the rest of the first chunk is split so far, in reverse order. A length above the maximum
    /// is split further when it is taken.
    private var lengths: [Int] = []
    private var pauseEnd: Instant?

    /// Limits the variation to the average, since a larger one would lead to pieces of length 0. With an average of 0,
    /// chunks are not split.
    init(averageSize: Int64, sizeVariation: Int64, delay: Int64, random: RandomStream) {
        self.averageSize = Int(min(max(0, averageSize), 1 << 40))
        self.sizeVariation = min(self.averageSize, Int(min(max(0, sizeVariation), 1 << 40)))
        self.delay = .microseconds(min(max(0, delay), Toxic.millisecondsMax))
        self.random = random
    }

    var hasBegunFirstChunk: Bool { !lengths.isEmpty }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if let pauseEnd, pauseEnd > now { return .wait(until: pauseEnd) }
        pauseEnd = nil
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        if lengths.isEmpty { lengths = [first.bytes.readableBytes] }
        guard let piece = input.take(atMost: nextLength()) else { return .idle }
        if delay > .zero { pauseEnd = now + delay }
        return .passAlone(piece)
    }

    /// Splits the next length at about its half until it is short enough, and removes and returns it.
    private mutating func nextLength() -> Int {
        var length = lengths.removeLast()
        while averageSize > 0 && length > 1 && length > averageSize + sizeVariation {
            let shifted = length / 2 + Int(random.integer(upToMagnitude: Int64(sizeVariation)))
            let front = min(max(1, shifted), length - 1)
            lengths.append(length - front)
            length = front
        }
        return length
    }
}
