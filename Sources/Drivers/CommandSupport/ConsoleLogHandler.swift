public import Logging

/// A log handler that prints messages as plain lines on the console, with the name of the proxy that they are about.
public struct ConsoleLogHandler: LogHandler {
    private let console: Console
    public var logLevel: Logger.Level
    public var metadata: Logger.Metadata = [:]

    /// Creates a handler that drops messages below a level.
    public init(_ console: Console, level: Logger.Level) {
        self.console = console
        logLevel = level
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        let level = event.level == .info ? "" : "\(event.level): "
        let proxy = metadata["proxy"].map { "\($0): " } ?? ""
        console.print("\(level)\(proxy)\(event.message)", to: .progress)
    }
}
