internal import Foundation
internal import JSON
internal import Logging

/// Log lines as Toxiproxy's server writes them: a JSON object each, on standard output.
struct JSONLogHandler: LogHandler {
    let console: Console
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]

    init(_ console: Console, level: Logger.Level) {
        self.console = console
        logLevel = level
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let level =
            switch event.level {
            case .notice: "info"
            case .warning: "warn"
            case .critical: "fatal"
            default: event.level.rawValue
            }
        var members: [(key: String, value: String)] = [("level", JSONText.string(level))]
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        members += all.sorted { $0.key < $1.key }.map { ($0.key, JSONText.string("\($0.value)")) }
        members.append(("time", JSONText.string(Date.now.ISO8601Format())))
        members.append(("message", JSONText.string("\(event.message)")))
        console.print(JSONText.object(members), to: .log)
    }
}
