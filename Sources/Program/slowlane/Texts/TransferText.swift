internal import CommandSupport
internal import TCPModel

/// The table of `slowlane model --summary`.
enum TransferText {
    /// Returns a row for each transfer; times without trials are `-`.
    static func table(_ summaries: [TrialSummary], width: Int? = nil) -> [String] {
        let header = ["TRANSFER", "OK", "FIRST BYTE p50", "TOTAL p50", "p95", "max", "RESUMED AFTER p50", "p95"]
        return TextTable.lines(
            [header]
                + summaries.map { summary in
                    let (first, total, resume) = (summary.firstByte, summary.total, summary.resume)
                    return [
                        summary.transfer.text, "\(summary.trials - summary.failures)/\(summary.trials)",
                    ]
                        + [first?.p50, total?.p50, total?.p95, total?.max, resume?.p50, resume?.p95].map { time in
                            time.map(Units.milliseconds) ?? "-"
                        }
                }, width: width)
    }
}
