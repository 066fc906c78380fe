import HTTPTypes
import LinkModel
import Logging
import NIOPosix
import Synchronization
import Testing
import Wire

@testable import ControlAPI

/// Calls of an API without a socket. Its proxies are disabled, so that they do not listen either.
struct APICall {
    let api: API

    init(
        seed: UInt64 = 1, limits: ServerLimits = ServerLimits(), timelineStart: TimelineStart? = nil,
        logger: Logger? = nil
    ) {
        let none = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        api = API(
            seed: seed, limits: limits, version: "test", timelineStart: timelineStart,
            on: MultiThreadedEventLoopGroup.singleton,
            logger: logger ?? none)
    }

    init(_ api: API) { self.api = api }

    func callAsFunction(
        _ method: String, _ path: String, _ body: String = "", userAgent: String? = nil
    ) async throws -> API.Response {
        var request = HTTPRequest(
            method: try #require(HTTPRequest.Method(method)), scheme: "http", authority: "localhost", path: path)
        request.headerFields[.userAgent] = userAgent
        return await api.respond(to: request, body: Array(body.utf8))
    }

    /// Creates a disabled proxy.
    func proxy(_ name: String = "p", _ more: String = "") async throws {
        let response = try await self(
            "POST", "/proxies",
            #"{"name":"\#(name)","listen":"127.0.0.1:0","upstream":"127.0.0.1:1","enabled":false\#(more)}"#)
        #expect(response.status == .created, "\(response.body)")
    }
}

extension API.Response {
    var json: JSONValue? { JSONText.parse(Array(body.utf8)) }
    var object: JSONObject? { json?.object }

    /// The text of an error whose body has the status of the response.
    var error: String? {
        guard let object, object["status"] == .integer(Int64(status.code)) else { return nil }
        return object["error"]?.text
    }
}

/// The messages of a logger.
final class LogRecord: Sendable {
    private let messages = Mutex<[String]>([])

    var text: String { messages.withLock { $0.joined(separator: "\n") } }

    var logger: Logger { Logger(label: "test") { _ in Handler(record: self) } }

    private struct Handler: LogHandler {
        let record: LogRecord
        var logLevel = Logger.Level.trace
        var metadata: Logger.Metadata = [:]

        init(record: LogRecord) { self.record = record }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { record.messages.withLock { $0.append("\(event.level): \(event.message)") } }
    }
}
