internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Foundation
internal import Proxy
internal import Synchronization

/// The report of `slowlane with`: the events of the control API, the HTTP exchanges as a HAR file, and the summary.
final class CommandReport: Sendable {
    private let folder: URL
    private let console: Console
    private let events: Mutex<FileHandle>
    private let reading = Mutex<(task: Task<Void, Never>, api: ForegroundDashboard)?>(nil)
    private let archiving = Mutex<TrafficRecording?>(nil)

    /// The time in which the last events arrive: they are collected ten times per second.
    private static let lastEventsTime = Duration.milliseconds(250)

    /// Creates the folder and the file of events; throws an exit status, after an error message, if that fails.
    init(folder: String, _ console: Console) throws {
        self.folder = URL(filePath: folder, directoryHint: .isDirectory)
        self.console = console
        let path = self.folder.appending(path: "events.jsonl")
        do {
            try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
            try Data().write(to: path)
            events = Mutex(try FileHandle(forWritingTo: path))
        } catch {
            throw Self.failed(folder, error, console)
        }
    }

    /// Records the events of a proxy from now on.
    func start(_ proxy: Proxy, _ configuration: ProxyConfiguration, _ conditions: LinkSource) async throws {
        do {
            let recording = try await TrafficRecording(of: proxy, path: folder.appending(path: "traffic.har"))
            archiving.withLock { $0 = recording }
        } catch {
            throw Self.failed(folder.relativePath, error, console)
        }
        guard
            let api = try? await ForegroundDashboard.start(
                port: 0, portOption: "--report", seed: configuration.seed, Dashboard()),
            let client = APIClient(url: api.url, token: nil, userAgent: "slowlane")
        else { return }
        _ = await api.api.adopt(
            proxy, named: "command", upstream: "any server", conditions: configuration.conditions,
            profile: conditions.profile, timeline: conditions.timeline, seed: configuration.seed)
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task { [self] in
            try? await client.readEvents(proxy: nil, after: nil) { [self] event in
                continuation.finish()
                guard let line = EventLine.json(event) else { return }
                events.withLock { try? $0.write(contentsOf: Data((line + "\n").utf8)) }
            }
            continuation.finish()
        }
        reading.withLock { $0 = (task, api) }
        // The first event is the state at the start.
        for await _ in started {}
    }

    /// Writes the summary; throws an exit status, after an error message, if that fails. The proxy has stopped.
    func finish(_ summary: String) async throws {
        if let (task, api) = reading.withLock({ $0 }) {
            try? await Task.sleep(for: Self.lastEventsTime)
            task.cancel()
            await task.value
            await api.stop()
        }
        do {
            try await archiving.withLock({ $0 })?.end()
            try events.withLock { try $0.close() }
            try Data((summary + "\n").utf8).write(to: folder.appending(path: "summary.json"))
        } catch {
            throw Self.failed(folder.relativePath, error, console)
        }
    }

    private static func failed(_ folder: String, _ error: any Error, _ console: Console) -> ExitCode {
        console.error("--report \(folder): cannot write: \(FileFailure.reason(error, writing: folder))")
        return ExitStatus.unavailable
    }
}
