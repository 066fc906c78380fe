import Logging
import Synchronization

/// The messages of a logger.
final class Messages: Sendable {
    private let lines = Mutex<[String]>([])

    var text: [String] { lines.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(messages: self) } }

    private struct Handler: LogHandler {
        let messages: Messages
        var logLevel = Logger.Level.info
        var metadata: Logger.Metadata = [:]

        init(messages: Messages) { self.messages = messages }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { messages.lines.withLock { $0.append("\(event.message)") } }
    }
}
