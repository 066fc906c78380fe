public import Determinism

/// A probability in parts per million.
public struct Probability: Hashable, Sendable, CustomStringConvertible {
    /// Parts per million, 0 to 1 000 000.
    public let partsPerMillion: Int32

    /// Creates a probability, or `nil` outside 0 to 1 000 000.
    public init?(partsPerMillion: Int32) {
        guard (0...1_000_000).contains(partsPerMillion) else { return nil }
        self.partsPerMillion = partsPerMillion
    }

    private init(unchecked partsPerMillion: Int32) {
        self.partsPerMillion = partsPerMillion
    }

    /// Never.
    public static let zero = Probability(unchecked: 0)
    /// Always. With this loss probability, no packet passes.
    public static let one = Probability(unchecked: 1_000_000)

    public var description: String {
        "\(Decimals.text(Int64(partsPerMillion), digits: 4)) %"
    }
}

extension RandomStream {
    /// Returns `true` with the given probability.
    public mutating func bool(probability: Probability) -> Bool {
        integer(below: 1_000_000) < Int64(probability.partsPerMillion)
    }
}
