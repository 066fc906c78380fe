/// Suggestions for misspelt names.
public enum NearestName {
    /// The maximum number of bytes of a name that are compared.
    private static let bytesMax = 256

    /// Returns the candidates closest to `name`, best first, at most `limit`.
    public static func of(_ name: String, in candidates: some Sequence<String>, limit: Int = 3) -> [String] {
        // A Character can be as long as the text and is then slow to compare.
        let name = String(decoding: name.utf8.prefix(bytesMax), as: UTF8.self).lowercased()
        let scored = candidates.compactMap { candidate -> (distance: Int, name: String)? in
            let other = candidate.lowercased()
            var distance = editDistance(name, other)
            if name.count > 1 && (other.hasPrefix(name) || name.hasPrefix(other)) { distance = min(distance, 1) }
            if name.count > 2 && other.contains(name) { distance = min(distance, 2) }
            return distance <= max(2, candidate.count / 3) ? (distance, candidate) : nil
        }
        return scored.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }.prefix(limit).map(\.name)
    }

    /// The maximum number of candidates that are compared.
    private static let candidatesMax = 1000

    /// Returns `"; did you mean 'a' or 'b'?"`, the new name of a renamed word, or an empty text.
    ///
    /// - Parameter synonyms: Candidates by words that are often used for them.
    public static func hint(
        _ name: String, in candidates: some Collection<String>, synonyms: [String: String] = [:]
    ) -> String {
        if candidates.count > candidatesMax { return "" }
        if let renamed = RenamedWords.hint(name, in: candidates) { return renamed }
        if let meant = synonyms[name.lowercased()], candidates.contains(meant) { return question([meant]) }
        return question(of(name, in: candidates))
    }

    /// Returns `"; did you mean 'a' or 'b'?"`, or an empty text without names.
    static func question(_ names: [String]) -> String {
        names.isEmpty ? "" : "; did you mean \(names.map { "'\($0)'" }.joined(separator: " or "))?"
    }

    /// Returns the number of insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
    private static func editDistance(_ left: String, _ right: String) -> Int {
        let a = Array(left.prefix(64))
        let b = Array(right.prefix(64))
        var beforeLast: [Int] = []
        var last = Array(0...b.count)
        for i in 0..<a.count {
            var row = [i + 1]
            for j in 0..<b.count {
                var best = min(last[j] + (a[i] == b[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
                row.append(best)
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
