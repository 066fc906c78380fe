internal import LinkModel
internal import NIOCore

/// Cuts chunks into pieces, each sent by itself, with a pause after each.
struct SlicerToxic: ToxicMachine {
    let averageSize: Int
    let sizeVariation: Int
    let delay: Nanoseconds
    var chance: RandomStream
    /// Lengths of what is left of the first chunk, the nearest last; those too long are still to be cut.
    private var lengths: [Int] = []
    private var pauseEnds: Instant?

    /// A variation above the average would make pieces of no length: it counts as the average. Without an average nothing is
    /// cut.
    init(averageSize: Int64, sizeVariation: Int64, delay: Int64, chance: RandomStream) {
        self.averageSize = Int(min(max(0, averageSize), 1 << 40))
        self.sizeVariation = min(self.averageSize, Int(min(max(0, sizeVariation), 1 << 40)))
        self.delay = .microseconds(min(max(0, delay), Toxic.millisecondsMax))
        self.chance = chance
    }

    var holdsFirst: Bool { !lengths.isEmpty }

    mutating func step(_ input: inout ToxicInput, at now: Instant) -> ToxicStep {
        if let pauseEnds, pauseEnds > now { return .wait(until: pauseEnds) }
        pauseEnds = nil
        guard let first = input.first else { return input.isAtEnd ? .finish : .idle }
        if lengths.isEmpty { lengths = [first.bytes.readableBytes] }
        guard let piece = input.take(atMost: nextLength()) else { return .idle }
        if delay > .zero { pauseEnds = now + delay }
        return .passAlone(piece)
    }

    /// Halves the nearest length until it is short enough, and takes it.
    private mutating func nextLength() -> Int {
        var length = lengths.removeLast()
        while averageSize > 0 && length > 1 && length > averageSize + sizeVariation {
            let shifted = length / 2 + Int(chance.integer(upToMagnitude: Int64(sizeVariation)))
            let cut = min(max(1, shifted), length - 1)
            lengths.append(length - cut)
            length = cut
        }
        return length
    }
}
