internal import ArgumentParser

/// Random seeds as arguments.
enum SeedArgument {
    /// Throws if a text is not a seed. ArgumentParser's own error does not name the range.
    static func parse(_ text: String) throws -> UInt64 {
        guard let seed = UInt64(text) else {
            throw ValidationError("a seed is a whole number from 0 to \(UInt64.max)")
        }
        return seed
    }
}
