/// A merge of two texts with a common base, line by line (diff3).
public enum LineMerge {
    /// The most lines that two texts may differ by; the work grows with its square.
    static let differencesMax = 1_000

    /// Returns the text with the changes of both sides; `nil` if they change the same or adjacent lines in different ways,
    /// or too many lines.
    public static func merge(base: String, mine: String, theirs: String) -> String? {
        let (base, mine, theirs) = (lines(base), lines(mine), lines(theirs))
        guard let toMine = matches(base, mine), let toTheirs = matches(base, theirs) else { return nil }
        var result: [ArraySlice<UInt8>] = []
        var (inBase, inMine, inTheirs) = (0, 0, 0)
        while true {
            // Lines that all three have.
            while inBase < base.count, toMine[inBase] == inMine, toTheirs[inBase] == inTheirs {
                result.append(base[inBase])
                (inBase, inMine, inTheirs) = (inBase + 1, inMine + 1, inTheirs + 1)
            }
            // The lines up to the next one that all three have.
            let next = (inBase..<base.count).first { toMine[$0] != nil && toTheirs[$0] != nil }
            let (endOfMine, endOfTheirs) = (
                next.flatMap { toMine[$0] } ?? mine.count, next.flatMap { toTheirs[$0] } ?? theirs.count
            )
            let old = base[inBase..<(next ?? base.count)]
            let (left, right) = (mine[inMine..<endOfMine], theirs[inTheirs..<endOfTheirs])
            if left == right || right == old {
                result += left
            } else if left == old {
                result += right
            } else {
                return nil
            }
            guard let next else { break }
            (inBase, inMine, inTheirs) = (next, endOfMine, endOfTheirs)
        }
        return String(decoding: Array(result.joined(separator: [UInt8(ascii: "\n")])), as: UTF8.self)
    }

    private static func lines(_ text: String) -> [ArraySlice<UInt8>] {
        Array(text.utf8).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    }

    /// Returns for each line of a text the place of the same line in another one, in a longest common subsequence (Myers,
    /// "An O(ND) Difference Algorithm"); `nil` for lines that it lacks, and if the texts differ by too many lines.
    private static func matches(_ old: [ArraySlice<UInt8>], _ new: [ArraySlice<UInt8>]) -> [Int?]? {
        var matches = [Int?](repeating: nil, count: old.count)
        var prefix = 0
        while prefix < min(old.count, new.count), old[prefix] == new[prefix] {
            matches[prefix] = prefix
            prefix += 1
        }
        var suffix = 0
        while suffix < min(old.count, new.count) - prefix,
            old[old.count - 1 - suffix] == new[new.count - 1 - suffix]
        {
            suffix += 1
            matches[old.count - suffix] = new.count - suffix
        }
        let (oldCount, newCount) = (old.count - prefix - suffix, new.count - prefix - suffix)
        let limit = min(oldCount + newCount, differencesMax)
        // The furthest place in `old` on each diagonal, for each number of differences so far.
        var trace: [[Int]] = []
        var furthest = [Int](repeating: 0, count: 2 * limit + 3)
        for count in 0...limit {
            trace.append(Array(furthest[(limit + 1 - count)...(limit + 1 + count)]))
            for diagonal in stride(from: -count, through: count, by: 2) {
                let index = diagonal + limit + 1
                let isInsertion = diagonal == -count || diagonal != count && furthest[index - 1] < furthest[index + 1]
                var place = isInsertion ? furthest[index + 1] : furthest[index - 1] + 1
                while place < oldCount, place - diagonal < newCount,
                    old[prefix + place] == new[prefix + place - diagonal]
                {
                    place += 1
                }
                furthest[index] = place
                guard place >= oldCount, place - diagonal >= newCount else { continue }
                follow(trace, prefix, (oldCount, newCount), &matches)
                return matches
            }
        }
        return nil
    }

    /// Records the matches on the way from the end to the beginning.
    private static func follow(
        _ trace: [[Int]], _ prefix: Int, _ end: (old: Int, new: Int), _ matches: inout [Int?]
    ) {
        var (inOld, inNew) = (end.old, end.new)
        for count in stride(from: trace.count - 1, through: 0, by: -1) {
            /// The furthest place before this difference; those of the step before it have one diagonal less on each side.
            let before = trace[count]
            func furthest(_ diagonal: Int) -> Int { before[diagonal + count] }
            let diagonal = inOld - inNew
            var start = (old: 0, new: 0)
            if count > 0 {
                let isInsertion =
                    diagonal == -count || diagonal != count && furthest(diagonal - 1) < furthest(diagonal + 1)
                let previous = isInsertion ? diagonal + 1 : diagonal - 1
                start.old = furthest(previous)
                start.new = start.old - previous
            }
            while inOld > start.old, inNew > start.new {
                (inOld, inNew) = (inOld - 1, inNew - 1)
                matches[prefix + inOld] = prefix + inNew
            }
            (inOld, inNew) = start
        }
    }
}
