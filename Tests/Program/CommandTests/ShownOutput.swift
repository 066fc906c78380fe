/// The output of a command as a page shows it. A line `...` stands for any lines; spaces, and figures that differ between runs, are
/// not compared, and notes about the machine are left out.
struct ShownOutput {
    private let segments: [[String]]

    init(_ lines: [String]) {
        segments = lines.map(Self.fixed).split(separator: "...", omittingEmptySubsequences: false).map(Array.init)
    }

    /// Returns a line without what differs between runs: digests, decimal fractions, long numbers, sizes, the address of the host.
    private static func fixed(_ line: some StringProtocol) -> String {
        String(line).replacing("localhost", with: "127.0.0.1")
            .replacing(/\(from another device [0-9.:]+( or [0-9.:]+)*\)[ ]/, with: "")
            .replacing(/\b[0-9a-f]{16}\b/, with: "#")
            .replacing(/[0-9]+\.[0-9]+|\b[0-9]{6,}\b/, with: "#")
            .replacing(/\b[0-9]+ (B|milliseconds)\b/) { "# \($0.1)" }
            .replacing(/[=\-]{4,}/, with: "-")
            .split(separator: " ").joined(separator: " ")
    }

    /// Whether a text is the output, or `isBeginning` and begins with it.
    func matches(_ text: String, isBeginning: Bool = false) -> Bool {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("slowlane: note: ") }.map(Self.fixed)
        while lines.last?.isEmpty == true { lines.removeLast() }
        var position = 0
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1 && !isBeginning
            let starts = index == 0 ? 0...0 : position...max(position, lines.count)
            let start = starts.first {
                lines.dropFirst($0).starts(with: segment) && (!isLast || $0 + segment.count == lines.count)
            }
            guard let start else { return false }
            position = start + segment.count
        }
        return true
    }
}
