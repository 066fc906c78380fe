internal import Logging

/// Log lines as plain sentences on the console.
struct ConsoleLogHandler: LogHandler {
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
        console.print("\(event.level == .info ? "" : "\(event.level): ")\(event.message)", to: .progress)
    }
}
