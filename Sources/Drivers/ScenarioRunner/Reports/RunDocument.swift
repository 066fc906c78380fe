internal import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Scenario
internal import Wire
internal import Worlds

/// A run with its history as one JSON object, and as a page that needs nothing else.
enum RunDocument {
    /// The version of the schema. Keys may be added without a new version.
    static let schema = 1

    /// Returns the object of a run that took place.
    static func json(_ finished: FinishedRun, _ summary: RunSummary, _ texts: TextDisplay) -> String? {
        guard let result = finished.result else { return nil }
        let scenario = finished.run.scenario
        var history = HistoryJSON(texts: texts)
        let entries = result.history.entries.map { history.object($0) }
        let devices = scenario.devices.map { device in
            JSONText.object([("name", JSONText.string(device.name)), ("user", JSONText.string(device.user))])
        }
        let writers = scenario.writers.map { writer in
            JSONText.object([("name", JSONText.string(writer.name)), ("user", JSONText.string(writer.user))])
        }
        return JSONText.object([
            ("schema", "\(schema)"), ("slowlane", JSONText.string(SlowlaneVersion.current)),
            ("about", JSONText.string(scenario.about)), ("contract", JSONText.string(scenario.contract)),
            ("devices", JSONText.array(devices)), ("writers", JSONText.array(writers)),
            (
                "faults",
                JSONText.array(
                    scenario.faults.map { JSONText.string("\($0.request) \($0.point.rawValue) \($0.action)") })
            ),
            ("steps", JSONText.array(scenario.steps.map { JSONText.string($0.location.description) })),
            ("invariants", JSONText.array(summary.invariantLines.map { JSONText.string($0) })),
            ("run", JSONLinesReport.line(summary)), ("entries", JSONText.array(entries)),
        ])
    }

    /// Returns the page of a run: style, program and data are part of it.
    ///
    /// - Parameters:
    ///   - json: The run, or what the program of the page expects.
    ///   - folder: The folder of the style and the program.
    ///   - name: The name of these files.
    static func page(title: String, json: String, folder: String = "report", name: String = "report") -> String {
        // A "</script>" in the data would end it.
        let data = json.replacing("<", with: "\\u003c")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta http-equiv="Content-Security-Policy" \
            content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
            <title>\(escaped(title))</title>
            <style>
            \(EmbeddedFile.page("\(folder)/\(name).css") ?? "")</style>
            </head>
            <body>
            <noscript>This page needs JavaScript.</noscript>
            <script type="application/json" id="data">\(data)</script>
            <script>
            \(EmbeddedFile.page("report/history.js") ?? "")
            \(EmbeddedFile.page("\(folder)/\(name).js") ?? "")</script>
            </body>
            </html>

            """
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }
}
