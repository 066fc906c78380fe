/// Text that is expensive to compare by Unicode's rules.
public enum MarkRun {
    /// 480 kB of combining marks of two classes in turn, which canonical order takes apart: what normalises them by insertion
    /// moves 14 000 000 000 of them.
    public static let long = of(bytes: 480_000)

    /// Combining marks of two classes in turn.
    public static func of(bytes: Int) -> String { String(repeating: "\u{315}\u{300}", count: bytes / 4) }
}
