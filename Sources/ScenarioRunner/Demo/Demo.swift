internal import ConfigFiles
internal import Foundation
internal import JSON
internal import ScenarioModel

/// The demonstration: one scenario of sixty seconds, in virtual time or over real sockets, and its page.
public struct Demo: Sendable {
    /// The client of the devices.
    public enum Client: String, CaseIterable, Sendable {
        /// The sync client.
        case current
        /// The sync client with the defects of a client of 2013.
        case legacy = "2013"
    }

    /// The demonstration cannot run.
    public struct Failure: Error, CustomStringConvertible {
        /// The reason.
        public let description: String
    }

    private let worlds: RunWorlds

    /// Creates the demonstration.
    public init(worlds: RunWorlds = .standard) { self.worlds = worlds }

    private static let file = "demo/subway.yaml"

    private func run(_ client: Client, _ world: RunWorld) throws -> PlannedRun {
        let file = try ScenarioFile(parsing: EmbeddedFile.page(Self.file) ?? "", file: Self.file)
        guard let scenario = file.runs(ofVariant: client == .current ? "none" : client.rawValue).first else {
            throw Failure(description: "\(Self.file) has no variant '\(client.rawValue)'")
        }
        return PlannedRun(index: 0, source: Self.file, scenario: scenario, world: world)
    }

    private static func document(_ finished: FinishedRun) -> String? {
        RunSummary(finished, showsText: true, isTraced: false, isDocumented: true).document
    }

    // MARK: Runs

    /// Runs the scenario in virtual time, and returns the run with its history as a JSON object.
    public func document(_ client: Client) throws -> String {
        let run = try run(client, .simulated)
        let result = try worlds.simulated(run, nil)
        let finished = FinishedRun(run: run, outcome: .result(result), repetition: .none, wallTime: .zero)
        guard let document = Self.document(finished) else { throw Failure(description: "the run has no result") }
        return document
    }

    /// Runs the scenario over real sockets, and returns server-sent events: `entry` for each event of the history, and `end`
    /// with the run, or `failed` with a reason. The run ends with the stream.
    public func events(_ client: Client) -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(100_000))
        let task = Task {
            do {
                let run = try run(client, .live)
                let encoder = Encoder(run.scenario)
                let result = try await worlds.live(run) { entry in
                    continuation.yield(Self.event("entry", encoder.object(entry)))
                }
                let finished = FinishedRun(run: run, outcome: .result(result), repetition: .none, wallTime: .zero)
                if let document = Self.document(finished) { continuation.yield(Self.event("end", document)) }
            } catch {
                let reason = JSONText.object([("reason", JSONText.string("\(error)"))])
                continuation.yield(Self.event("failed", reason))
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    private static func event(_ type: String, _ data: String) -> String { "event: \(type)\ndata: \(data)\n\n" }

    /// Encodes the entries of a live run, whose threads take turns.
    private final class Encoder: @unchecked Sendable {
        private let lock = NSLock()
        private var history: HistoryJSON

        init(_ scenario: Scenario) { history = HistoryJSON(texts: TextDisplay(scenario, showsAll: true)) }

        func object(_ entry: History.Entry) -> String {
            lock.lock()
            defer { lock.unlock() }
            return history.object(entry)
        }
    }

    // MARK: Pages

    /// Returns a file of the page with its media type; `nil` if there is none.
    public static func page(_ name: String) -> (text: String, type: String)? {
        let (path, type): (String, String)
        switch name {
        case "": (path, type) = ("demo/demo.html", "text/html; charset=utf-8")
        case "demo.css": (path, type) = ("demo/demo.css", "text/css; charset=utf-8")
        case "demo.js": (path, type) = ("demo/demo.js", "text/javascript; charset=utf-8")
        case "history.js": (path, type) = ("report/history.js", "text/javascript; charset=utf-8")
        default: return nil
        }
        return EmbeddedFile.page(path).map { ($0, type) }
    }

    /// Returns a page with the runs of both clients in it, which needs no server.
    public func recordedPage() throws -> String {
        let documents = try Client.allCases.map { ($0.rawValue, try document($0)) }
        return RunDocument.page(
            title: "Slowlane: offline first in sixty seconds", json: JSONText.object(documents), folder: "demo",
            name: "demo")
    }
}
