internal import Foundation
public import Logging
internal import Wire

/// A log handler that prints messages as Toxiproxy's server does: one JSON object a line, on standard output.
public struct JSONLogHandler: LogHandler {
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
        let level =
            switch event.level {
            case .notice: "info"
            case .warning: "warn"
            case .critical: "fatal"
            default: event.level.rawValue
            }
        var members: [(key: String, value: String)] = [("level", JSONText.string(level))]
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        members += all.sorted { $0.key < $1.key }.map { ($0.key, Self.json($0.value)) }
        members.append(("time", JSONText.string(Date.now.ISO8601Format())))
        members.append(("message", JSONText.string("\(event.message)")))
        console.print(JSONText.object(members), to: .log)
    }

    /// Returns a value as Toxiproxy's server prints it: a count as a number, anything else as a string.
    private static func json(_ value: Logger.Metadata.Value) -> String {
        if case .stringConvertible(let count as Int) = value { return "\(count)" }
        return JSONText.string("\(value)")
    }
}
