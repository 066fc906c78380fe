internal import ConfigFiles
internal import Foundation
internal import LiveWorld
internal import Scenario
internal import Synchronization
internal import Wire
internal import Worlds

/// The demonstration: one scenario of sixty seconds, in virtual time or over real sockets, and its page.
public struct Demo: Sendable {
    /// The client of the devices.
    public enum Client: String, CaseIterable, Sendable {
        /// The sync client.
        case current
        /// The sync client with eight known defects (`client: legacy`).
        case legacy
    }

    /// The demonstration cannot run.
    public struct Failure: Error, CustomStringConvertible {
        /// The reason.
        public let description: String
    }

    private let worlds: RunWorlds
    private let viewers = Viewers()

    /// Creates the demonstration.
    public init(worlds: RunWorlds = .standard) { self.worlds = worlds }

    private static let file = "demo/subway.yaml"

    private func run(_ client: Client, _ world: RunWorld) throws -> PlannedRun {
        let file = try ScenarioFile(parsing: EmbeddedFile.page(Self.file) ?? "", file: Self.file)
        guard let scenario = file.runs(ofVariant: client == .current ? "none" : client.rawValue).first else {
            throw Failure(description: "\(Self.file) has no variant '\(client.rawValue)'")
        }
        return PlannedRun(
            index: 0, source: Self.file, scenario: scenario, world: world, seed: nil, replay: [["slowlane", "demo"]])
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
    ///
    /// - Parameter viewer: The name under which ``act(_:by:)`` finds the run, chosen by the page.
    public func events(_ client: Client, viewer: String? = nil) -> AsyncStream<String> {
        let acts = viewer.map { self.viewers.add($0) }
        let viewers = viewers
        let (stream, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(100_000))
        let task = Task {
            do {
                let run = try run(client, .live)
                let encoder = Encoder(run.scenario)
                let result = try await LiveRun.run(run.scenario, seed: run.seed, acts: acts) { entry in
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
        continuation.onTermination = { _ in
            task.cancel()
            if let viewer { viewers.remove(viewer) }
        }
        return stream
    }

    /// Performs an act of the viewer in a run over real sockets: an object with `device`, `note`, and `text` (an edit) or
    /// `choice` (`mine` or `theirs`, in a conflict). Returns the reason if it cannot be performed.
    public func act(_ json: [UInt8], by viewer: String) -> String? {
        guard let value = JSONText.parse(json), let device = value["device"].text, let note = value["note"].text else {
            return "expected an object with device, note, and text or choice"
        }
        let action: Scenario.Action
        if let text = value["text"].text {
            guard text.utf8.count <= Self.textBytesMax else {
                return "the text is longer than \(Self.textBytesMax) bytes"
            }
            action = .edit(row: note, title: nil, text: text)
        } else if let choice = value["choice"].text.flatMap(Scenario.Choice.init(rawValue:)), choice != .delete {
            action = .choose(row: note, choice)
        } else {
            return "expected text, or a choice, which is mine or theirs"
        }
        let isRunning = viewers.send(LiveRun.UserAct(device: device, action: action), to: viewer)
        return isRunning ? nil : "no such run; it may have ended"
    }

    /// The longest text of an edit, in bytes.
    private static let textBytesMax = 2000

    /// The runs in which viewers act.
    private final class Viewers: Sendable {
        /// The largest number of acts that a run has not begun.
        private static let actsMax = 100
        private let streams = Mutex<[String: AsyncStream<LiveRun.UserAct>.Continuation]>([:])

        func add(_ viewer: String) -> AsyncStream<LiveRun.UserAct> {
            let (stream, continuation) = AsyncStream.makeStream(
                of: LiveRun.UserAct.self, bufferingPolicy: .bufferingOldest(Self.actsMax))
            streams.withLock { $0[viewer] = continuation }
            return stream
        }

        func remove(_ viewer: String) { streams.withLock { $0.removeValue(forKey: viewer) }?.finish() }

        func send(_ act: LiveRun.UserAct, to viewer: String) -> Bool {
            guard let stream = streams.withLock({ $0[viewer] }) else { return false }
            if case .enqueued = stream.yield(act) { return true }
            return false
        }
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

    /// Runs the scenario in virtual time, and returns its story as a moving picture in SVG.
    public func picture() throws -> String {
        let run = try run(.current, .simulated)
        return DemoPicture.svg(of: try worlds.simulated(run, nil).history, run.scenario)
    }

    // MARK: Pages

    /// Returns a file of the page with its media type; `nil` if there is none.
    public static func page(_ name: String) -> (text: String, type: String)? {
        let (path, type): (String, String)
        switch name {
        case "": (path, type) = ("demo/demo.html", "text/html; charset=utf-8")
        case "demo.css": (path, type) = ("demo/demo.css", "text/css; charset=utf-8")
        case "demo.js": (path, type) = ("demo/demo.js", "text/javascript; charset=utf-8")
        case "subway.yaml": (path, type) = (file, "text/plain; charset=utf-8")
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
