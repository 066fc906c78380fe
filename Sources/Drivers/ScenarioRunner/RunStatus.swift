/// The exit statuses of `slowlane run`.
public enum RunStatus {
    /// Every expectation held.
    public static let passed: Int32 = 0
    /// An expectation failed.
    public static let failed: Int32 = 1
    /// The run did not show whether every expectation holds.
    public static let inconclusive: Int32 = 3
    /// The arguments select no scenario.
    public static let nothingSelected: Int32 = 4
    /// Wrong arguments (`EX_USAGE`).
    public static let usage: Int32 = 64
    /// A file was rejected (`EX_DATAERR`).
    public static let invalidFile: Int32 = 65
    /// A port could not be bound, or a file not be written (`EX_UNAVAILABLE`).
    public static let unavailable: Int32 = 69
    /// The runs took longer than their time limit, as with the command `timeout` of coreutils.
    public static let timedOut: Int32 = 124
    /// Equal runs have different events (`EX_SOFTWARE`).
    public static let notDeterministic: Int32 = 70

    /// The statuses of runs, worst first.
    private static let order = [notDeterministic, failed, unavailable, invalidFile, inconclusive, passed]

    /// Returns the worst status: 70, then 1, 69, 65, 3, 0.
    public static func worst(of statuses: some Sequence<Int32>) -> Int32 {
        func rank(_ status: Int32) -> Int { order.firstIndex(of: status) ?? -1 }
        return statuses.min { rank($0) < rank($1) } ?? passed
    }
}
