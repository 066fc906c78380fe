internal import Determinism
internal import Scenario

extension Scenario.Fill {
    /// Returns the notes: each has its name as title, and a text of random words that have the given size together.
    func seedNotes(seed: UInt64) -> [Scenario.SeedNote] {
        var random = RandomStream(seed: seed, "server/fill")
        return rows.map { row in
            var text: [UInt8] = []
            text.reserveCapacity(bytes)
            var draw: UInt64 = 0
            for index in 0..<bytes {
                // A draw gives five bits to each of twelve letters.
                if index % 12 == 0 { draw = random.next() }
                let value = UInt8(truncatingIfNeeded: draw & 31)
                text.append(value < 26 ? UInt8(ascii: "a") + value : UInt8(ascii: " "))
                draw >>= 5
            }
            return Scenario.SeedNote(row: row, title: row, text: String(decoding: text, as: UTF8.self), revision: 1)
        }
    }
}
