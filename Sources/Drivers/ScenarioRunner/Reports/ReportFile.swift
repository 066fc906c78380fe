internal import Worlds

/// The files of a run in its report folder, besides its page.
struct ReportFile: Sendable {
    /// The name in the folder.
    let name: String
    /// The content.
    let bytes: [UInt8]

    /// Returns the views of a run for other programs: `run.har`, `trace.json` and `wire.pcapng`.
    static func views(of finished: FinishedRun) -> [ReportFile] {
        guard let result = finished.result else { return [] }
        let facts = RunFacts(result.history)
        let trace = TraceReport.document(finished.run, facts, result.history)
        return [
            ReportFile(name: "run.har", bytes: Array((HARReport.document(finished.run, facts) + "\n").utf8)),
            ReportFile(name: "trace.json", bytes: Array((trace + "\n").utf8)),
            ReportFile(name: "wire.pcapng", bytes: CaptureReport.file(finished.run, facts)),
        ]
    }
}
