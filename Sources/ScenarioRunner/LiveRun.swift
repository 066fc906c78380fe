//  ScenarioRunner: runs scenarios.
//
//  Owns: live runs: one server, and a proxy and a client per device, on free ports of the loopback interface, in real
//  time; the history of the run.
//
//  Does not own: the meaning of scenarios and verdicts (ScenarioModel), files (ConfigFiles), arguments (the command).

internal import Determinism
internal import Foundation
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import NotesContract
internal import NotesServer
internal import NotesService
internal import ProxyServer
public import ScenarioModel
internal import SyncClient
public import SyncEngine
internal import Synchronization

/// A run of a scenario in real time: one notes server, and one proxy and one client per device, on free ports of the
/// loopback interface, with all files in a temporary folder.
public final class LiveRun: Sendable {
    /// The reason why a scenario could not be run.
    public struct SetupError: Error, CustomStringConvertible {
        /// What failed, where and why.
        public let description: String
    }

    private let scenario: Scenario
    private let mutant: Mutant?
    private let seed: UInt64
    private let recorder: HistoryRecorder
    private let folder: URL
    private let clients = Mutex<[String: SyncClient]>([:])
    private let proxies = Mutex<[String: Proxy]>([:])
    /// Devices for which the server's host name currently does not resolve.
    private let devicesWithoutDNS = Mutex<Set<String>>([])

    private static let pollInterval = Duration.milliseconds(5)
    /// The time for devices and server to converge at the end.
    private static let convergenceMax = Duration.seconds(60)
    /// The time for the first sync of each device before the scenario starts.
    private static let firstSyncMax = Duration.seconds(30)

    private init(_ scenario: Scenario, mutant: Mutant?, seed: UInt64, onLine: @escaping @Sendable (String) -> Void) {
        self.scenario = scenario
        self.mutant = mutant
        self.seed = seed
        recorder = HistoryRecorder(onLine: onLine)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "slowlane-run-\(UUID().uuidString.prefix(8))")
    }

    /// Runs a scenario and returns its verdict and history.
    ///
    /// - Parameters:
    ///   - mutant: A deliberate defect of the clients.
    ///   - seed: The random seed; the scenario's by default.
    ///   - onLine: Called with a line per event, on any thread.
    public static func run(
        _ scenario: Scenario, mutant: Mutant? = nil, seed: UInt64? = nil,
        onLine: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> (verdict: Verdict, history: History) {
        let seed = seed ?? scenario.seed
        let scenario = scenario.materialized(seed: seed)
        let run = LiveRun(scenario, mutant: mutant, seed: seed, onLine: onLine)
        try FileManager.default.createDirectory(at: run.folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: run.folder) }
        try await run.run()
        let history = run.recorder.history
        return (Verdict(scenario, history), history)
    }

    private func run() async throws {
        let store = try NotesStore(
            path: folder.appendingPathComponent("server.db").path,
            contract: APIContract.named[scenario.contract] ?? .compat)
        let users = Set(scenario.devices.map(\.user) + scenario.writers.map(\.user)).sorted()
        for note in scenario.notes {
            let uuid = UUID().uuidString.lowercased()
            recorder.assign(row: note.row, to: uuid)
            for user in users {
                try store.seed(
                    Note(
                        uuid: uuid, revision: Revision(number: note.revision, suffix: UUID().uuidString.lowercased()),
                        date: "2026-01-01T00:00:00.000Z", title: note.title, text: note.text), owner: user)
            }
        }
        let service = NotesService(
            store: store, users: Dictionary(uniqueKeysWithValues: users.map { ($0, Self.password) }))
        let server = try await NotesServer.start(service, host: "127.0.0.1", port: 0)
        do {
            try await run(server, store, users)
        } catch {
            await stop(server)
            throw error
        }
        await stop(server)
    }

    private func run(_ server: NotesServer, _ store: NotesStore, _ users: [String]) async throws {
        for device in scenario.devices {
            try await startProxy(device, server)
            try await startClient(device.name)
        }
        for writer in scenario.writers {
            let client = try await SyncClient.start(
                configuration(user: writer.user, port: server.port, store: nil, mutant: nil)
            ) { [recorder] event, _ in recorder.recordWriter(writer.name, event) }
            clients.withLock { $0[writer.name] = client }
        }
        for name in scenario.devices.filter(\.startsSynced).map(\.name) + scenario.writers.map(\.name) {
            guard try await settle(name, within: Self.firstSyncMax) else {
                throw SetupError(
                    description: "\(scenario.name): \(name) did not complete its first sync within "
                        + "\(Self.firstSyncMax.components.seconds) s")
            }
        }
        recorder.begin()
        let monitor = HostPauseMonitor(folder) { [recorder] in recorder.recordHostPause($0) }
        defer { monitor.stop() }
        for device in scenario.devices { recorder.recordView(of: device.name) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in scenario.devices { group.addTask { try await self.driveNetwork(of: device) } }
            try await self.runSteps()
            try await self.waitForEnd()
            group.cancelAll()
        }
        try await converge()
        var rows: [History.ServerRow] = []
        for user in users {
            for note in try store.notes(of: user) {
                rows.append(
                    History.ServerRow(
                        user: user, name: recorder.row(of: note.uuid) ?? String(note.uuid.prefix(8)),
                        revision: note.revision.number, title: note.title, text: note.text))
            }
        }
        recorder.record(.server(rows))
        recorder.end()
    }

    private func stop(_ server: NotesServer) async {
        recorder.end()
        for client in clients.withLock({ Array($0.values) }) { await client.stop() }
        for proxy in proxies.withLock({ Array($0.values) }) { await proxy.stop(grace: .zero) }
        await server.stop()
    }

    // MARK: Clients and proxies

    private static let password = "secret"

    private func configuration(user: String, port: Int, store: String?, mutant: Mutant?) -> SyncClientConfiguration {
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: port, user: user, password: Self.password, storePath: store)
        configuration.mutant = mutant
        return configuration
    }

    private func startProxy(_ device: Scenario.Device, _ server: NotesServer) async throws {
        // For each rule of this device, the index of its fault in the scenario.
        let faults = scenario.faults.indices.filter {
            scenario.faults[$0].device == nil || scenario.faults[$0].device == device.name
        }
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: server.port))
        configuration.seed = seed
        configuration.linkName = "link/\(device.name)"
        let recorder = recorder
        configuration.exchangeTracking = ExchangeTracking(
            rules: faults.map { index in
                let fault = scenario.faults[index]
                return FaultRule(
                    method: fault.request.method, subject: fault.request.row, nth: fault.nth,
                    action: fault.action == .cut ? .abort : .mute)
            }, subject: { recorder.subject($0, $1) })
        configuration.onExchange = { recorder.recordExchange(device.name, $0, faults: faults) }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        proxies.withLock { $0[device.name] = proxy }
    }

    private func startClient(_ name: String) async throws {
        guard let device = scenario.devices.first(where: { $0.name == name }),
            let port = proxies.withLock({ $0[name]?.address.port })
        else { return }
        let path = folder.appendingPathComponent("\(name).db").path
        var configuration = configuration(user: device.user, port: port, store: path, mutant: mutant)
        configuration.isHostResolvable = { [weak self] in
            self?.devicesWithoutDNS.withLock { !$0.contains(name) } ?? true
        }
        recorder.beginView(of: name)
        let client = try await SyncClient.start(configuration) { [recorder] event, _ in
            if case .view(let change) = event { recorder.recordView(change, of: name) }
        }
        clients.withLock { $0[name] = client }
    }

    private func client(_ name: String) -> SyncClient? { clients.withLock { $0[name] } }

    // MARK: The network

    private func driveNetwork(of device: Scenario.Device) async throws {
        let timeline: Timeline
        do {
            timeline = try Timeline(device.network.map { Timeline.Entry(at: $0.start, $0.phase) })
        } catch {
            throw SetupError(description: "\(scenario.name): \(device.name): \(error.message)")
        }
        var run = TimelineRun(timeline, startingAt: .start, seed: seed, name: "link/\(device.name)/timeline")
        var isFirst = true
        while !Task.isCancelled {
            if isFirst || run.advance(to: Instant(recorder.time)) {
                isFirst = false
                try await apply(run.conditions, named: run.name, to: device)
            }
            guard let next = run.nextDeadline else { return }
            try? await Task.sleep(for: .nanoseconds((next.sinceStart - recorder.time).count))
        }
    }

    private func apply(_ conditions: Conditions, named name: String, to device: Scenario.Device) async throws {
        let time = recorder.time
        let isSignalled = device.network.last { $0.start <= time }?.isSignalled ?? true
        let isOnline = !(conditions.isOutage && isSignalled)
        devicesWithoutDNS.withLock { names in
            if conditions.connectionPolicy == .dns { names.insert(device.name) } else { names.remove(device.name) }
        }
        await proxies.withLock { $0[device.name] }?.setConditions(conditions)
        recorder.recordNetwork(device.name, link: name, isOnline: isOnline)
        try await client(device.name)?.setInterface(NetworkInterface(isUp: isOnline))
    }

    // MARK: Steps

    private func runSteps() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            var schedule = StepSchedule(scenario)
            var count = 0
            while true {
                let entries = recorder.history.entries.dropFirst(count)
                count += entries.count
                for entry in entries {
                    switch entry.event {
                    case .mark(let mark): schedule.markSet(mark, at: entry.time)
                    case .device(let device, let state): schedule.stateChanged(device, state, at: entry.time)
                    default: break
                    }
                }
                schedule.advance(to: recorder.time)
                while let step = schedule.takeAction() {
                    // A mark is set when its action starts, not when the action has its effect.
                    if let mark = step.mark { recorder.record(.mark(mark), line: "mark \(mark)") }
                    if step.action != nil { group.addTask { try await self.run(step) } }
                }
                if schedule.isFinished { break }
                try await Task.sleep(for: Self.pollInterval)
            }
            try await group.waitForAll()
        }
    }

    /// Waits until the plan has ended and no expectation is open, or until the limit.
    private func waitForEnd() async throws {
        while recorder.time < scenario.limit {
            let now = recorder.time
            if now >= scenario.plannedEnd && !scenario.hasOpenExpectations(recorder.history, at: now) { return }
            try await Task.sleep(for: Self.pollInterval * 4)
        }
        recorder.record(.aborted("exceeded the \(TimeFormat.short(scenario.limit)) limit"))
    }

    private func run(_ step: Scenario.Step) async throws {
        guard let (actor, action) = step.action else { return }
        recorder.record(.action(actor: actor, action.description), line: "\(actor)  \(action)")
        do {
            try await run(action, by: actor)
        } catch let error as SyncEngine.RecordError {
            let reason = error == .unknown ? "no such note" : "\(error)"
            recorder.record(.aborted("\(step.location): '\(actor) \(action)' failed: \(reason)"))
        }
    }

    private func run(_ action: Scenario.Action, by actor: String) async throws {
        if case .start = action { return try await startClient(actor) }
        guard let client = client(actor) else { return }
        switch action {
        case .create(let row, let title, let text):
            // The name is assigned before the note is visible.
            let uuid = UUID().uuidString.lowercased()
            recorder.assign(row: row, to: uuid)
            _ = try await client.create(title: title, text: text, uuid: uuid)
        case .edit(let row, let title, let text):
            try await client.edit(uuid(row), title: title, text: text)
        case .delete(let row): try await client.delete(uuid(row))
        case .resolve(let row, let title, let text):
            let kept = try await client.resolve(uuid(row), title: title, text: text)
            recorder.assign(row: row, to: kept)
        case .choose(let row, let choice):
            let id = RecordID(try uuid(row))
            if choice == .delete, try await client.row(id)?.isDeleted == false { try await client.delete(id) }
            let kept = try await client.resolve(id, choice == .theirs ? .theirs : .mine)
            recorder.assign(row: row, to: kept.text)
        case .sync: try await client.sync()
        case .editStale, .deleteStale, .keep, .pin, .open, .send, .upgrade, .clock, .call:
            recorder.record(.aborted("'\(actor) \(action)' is not supported in real time"))
        case .kill:
            clients.withLock { $0[actor] = nil }
            await client.stop()
        case .start: break
        }
    }

    private func uuid(_ row: String) throws -> String {
        guard let uuid = recorder.uuid(of: row) else { throw SyncEngine.RecordError.unknown }
        return uuid
    }

    // MARK: The end

    /// Restores all links and waits until each device has completed two syncs.
    private func converge() async throws {
        recorder.record(
            .action(actor: "runner", "restores all links"),
            line: "plan finished; all links restored, waiting for convergence")
        for device in scenario.devices {
            try await apply(.clear, named: "clear", to: device)
            if client(device.name) == nil { try await startClient(device.name) }
        }
        for _ in 0..<2 {
            for device in scenario.devices {
                try await client(device.name)?.sync()
                if try await !settle(device.name, within: Self.convergenceMax) {
                    recorder.record(
                        .aborted(
                            "\(device.name) did not converge within \(Self.convergenceMax.components.seconds) s after "
                                + "its link was restored"))
                }
            }
        }
    }

    /// Waits until a client has nothing left to send or fetch; returns `false` if that exceeds the duration.
    private func settle(_ name: String, within duration: Duration) async throws -> Bool {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            guard let client = client(name) else { return true }
            if try await client.status().isSettled { return true }
            try await Task.sleep(for: Self.pollInterval)
        }
        return false
    }
}
