/// Metrics in the text format of Prometheus 0.0.4 or OpenMetrics 1.0.
struct MetricsText {
    private(set) var text = ""
    let isOpenMetrics: Bool

    /// A sample: the text of its labels (``labels(_:)``), and its value.
    typealias Sample = (labels: String, value: String)

    /// Returns the text of labels.
    static func labels(_ labels: [(String, String)]) -> String {
        "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",") + "}"
    }

    mutating func add(_ name: String, _ kind: String, help: String = "", _ samples: [Sample]) {
        if samples.isEmpty { return }
        // In OpenMetrics the name of a counter's family lacks the suffix of its samples.
        let family = isOpenMetrics && kind == "counter" && name.hasSuffix("_total") ? String(name.dropLast(6)) : name
        text += "# HELP \(family) \(help)\n# TYPE \(family) \(kind)\n"
        for (labels, value) in samples { text += "\(name)\(labels) \(value)\n" }
    }

    mutating func finish() {
        if isOpenMetrics { text += "# EOF\n" }
    }

    private static func escaped(_ text: String) -> String {
        if !text.utf8.contains(where: { $0 == 0x5C || $0 == 0x22 || $0 == 0x0A }) { return text }
        return text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
