/// Text that is expensive to normalise by Unicode's rules.
public enum CombiningMarks {
    /// 480 kB of combining marks of two alternating classes. Canonical ordering by insertion sort takes 14 000 000 000 moves.
    public static let long = of(bytes: 480_000)

    /// Returns combining marks of two alternating classes.
    public static func of(bytes: Int) -> String { String(repeating: "\u{315}\u{300}", count: bytes / 4) }
}
