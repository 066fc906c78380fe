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

/// Plays a scenario in real time: a real server, a real proxy and a real client a device, on free ports of the loopback,
/// with everything in a temporary folder.
public final class LiveRun: Sendable {
    /// Why a scenario cannot be played.
    public struct Refusal: Error, CustomStringConvertible {
        /// What is wrong, and where.
        public let description: String
    }

    private let scenario: Scenario
    private let mutant: Mutant?
    private let seed: UInt64
    private let record: LiveRecord
    private let folder: URL
    private let clients = Mutex<[String: SyncClient]>([:])
    private let proxies = Mutex<[String: Proxy]>([:])
    /// Devices for which the server's name is unknown at present.
    private let nameless = Mutex<Set<String>>([])
    /// Marks that will never be set, because their step's moment never came.
    private let missedMarks = Mutex<Set<String>>([])

    /// How often what is waited for is looked at.
    private static let lookEvery = Duration.milliseconds(5)
    /// How long devices and server may take to agree at the end.
    private static let quiesceMax = Duration.seconds(60)
    /// How long devices may take to get their notes before the beginning.
    private static let startMax = Duration.seconds(30)

    private init(_ scenario: Scenario, mutant: Mutant?, seed: UInt64, onLine: @escaping @Sendable (String) -> Void) {
        self.scenario = scenario
        self.mutant = mutant
        self.seed = seed
        record = LiveRecord(onLine: onLine)
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "slowlane-run-\(UUID().uuidString.prefix(8))")
    }

    /// Plays a scenario from its beginning to its end.
    ///
    /// - Parameters:
    ///   - mutant: A deliberate defect of the clients.
    ///   - onLine: Told of what happens, a line each; called on any thread.
    public static func play(
        _ scenario: Scenario, mutant: Mutant? = nil, seed: UInt64? = nil,
        onLine: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> (verdict: Verdict, history: History) {
        let run = LiveRun(scenario, mutant: mutant, seed: seed ?? scenario.seed, onLine: onLine)
        try FileManager.default.createDirectory(at: run.folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: run.folder) }
        try await run.play()
        let history = run.record.history
        return (Verdict(scenario, history), history)
    }

    private func play() async throws {
        let store = try NotesStore(
            path: folder.appendingPathComponent("server.db").path,
            dialect: NotesDialect.named[scenario.contract] ?? .compat)
        let users = Set(scenario.devices.map(\.user) + scenario.writers.map(\.user)).sorted()
        for note in scenario.notes {
            let uuid = UUID().uuidString.lowercased()
            record.name(uuid, note.row)
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
            try await play(server, store, users)
        } catch {
            await stop(server)
            throw error
        }
        await stop(server)
    }

    private func play(_ server: NotesServer, _ store: NotesStore, _ users: [String]) async throws {
        for device in scenario.devices {
            try await startProxy(device, server)
            try await startClient(device.name)
        }
        for writer in scenario.writers {
            let client = try await SyncClient.start(
                configuration(user: writer.user, port: server.port, store: nil, mutant: nil)
            ) { [record] event in record.writer(writer.name, event) }
            clients.withLock { $0[writer.name] = client }
        }
        for name in scenario.devices.filter(\.startsSynced).map(\.name) + scenario.writers.map(\.name) {
            guard try await settle(name, within: Self.startMax) else {
                throw Refusal(description: "\(scenario.name): \(name) did not get its notes before the beginning")
            }
        }
        record.begin()
        let stalls = StallWatch(folder) { [record] in record.stall($0) }
        defer { stalls.stop() }
        for device in scenario.devices { try await show(device.name) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in scenario.devices { group.addTask { try await self.driveNetwork(of: device) } }
            try await self.playSteps()
            group.cancelAll()
        }
        try await quiesce()
        var rows: [History.ServerRow] = []
        for user in users {
            for note in try store.notes(of: user) {
                rows.append(
                    History.ServerRow(
                        user: user, name: record.row(of: note.uuid) ?? String(note.uuid.prefix(8)),
                        revision: note.revision.number, title: note.title, text: note.text))
            }
        }
        record.add(.server(rows))
        record.end()
    }

    private func stop(_ server: NotesServer) async {
        record.end()
        for client in clients.withLock({ Array($0.values) }) { await client.stop() }
        for proxy in proxies.withLock({ Array($0.values) }) { await proxy.stop(grace: .zero) }
        await server.stop()
    }

    // MARK: Who is there

    private static let password = "secret"

    private func configuration(user: String, port: Int, store: String?, mutant: Mutant?) -> SyncClientConfiguration {
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: port, user: user, password: Self.password, storePath: store)
        configuration.mutant = mutant
        return configuration
    }

    private func startProxy(_ device: Scenario.Device, _ server: NotesServer) async throws {
        // The places of the rules in the scenario.
        let faults = scenario.faults.indices.filter {
            scenario.faults[$0].device == nil || scenario.faults[$0].device == device.name
        }
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: server.port))
        configuration.seed = seed
        configuration.linkName = "link/\(device.name)"
        let record = record
        configuration.exchangeTracking = ExchangeTracking(
            rules: faults.map { index in
                let fault = scenario.faults[index]
                return FaultRule(
                    method: fault.request.method, subject: fault.request.row, nth: fault.nth,
                    action: fault.isCut ? .abort : .mute)
            }, subject: { record.subject($0, $1) })
        configuration.onExchange = { record.exchange(device.name, $0, faults: faults) }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        proxies.withLock { $0[device.name] = proxy }
    }

    private func startClient(_ name: String) async throws {
        guard let device = scenario.devices.first(where: { $0.name == name }),
            let port = proxies.withLock({ $0[name]?.address.port })
        else { return }
        let path = folder.appendingPathComponent("\(name).db").path
        var configuration = configuration(user: device.user, port: port, store: path, mutant: mutant)
        configuration.nameIsKnown = { [weak self] in self?.nameless.withLock { !$0.contains(name) } ?? true }
        let client = try await SyncClient.start(configuration) { [record] event in
            if case .view(let view) = event { record.device(name, view) }
        }
        clients.withLock { $0[name] = client }
    }

    private func client(_ name: String) -> SyncClient? { clients.withLock { $0[name] } }

    /// Enters what a device shows now.
    private func show(_ name: String) async throws {
        if let view = try await client(name)?.view() { record.device(name, view) }
    }

    // MARK: The network

    private func driveNetwork(of device: Scenario.Device) async throws {
        let timeline: Timeline
        do {
            timeline = try Timeline(device.network.map { Timeline.Entry(at: $0.start, $0.phase) })
        } catch {
            throw Refusal(description: "\(scenario.name): \(device.name): \(error.message)")
        }
        var run = TimelineRun(timeline, startingAt: .start, seed: seed, name: "link/\(device.name)/timeline")
        var isFirst = true
        while !Task.isCancelled {
            if isFirst || run.advance(to: Instant(record.time)) {
                isFirst = false
                try await put(run.current, as: run.name, on: device)
            }
            guard let next = run.nextChange else { return }
            try? await Task.sleep(for: .nanoseconds((next.sinceStart - record.time).count))
        }
    }

    private func put(_ conditions: Conditions, as name: String, on device: Scenario.Device) async throws {
        let time = record.time
        let isSignalled = device.network.last { $0.start <= time }?.isSignalled ?? true
        let isOnline = !(conditions.isDead && isSignalled)
        nameless.withLock { names in
            if conditions.access == .dns { names.insert(device.name) } else { names.remove(device.name) }
        }
        await proxies.withLock { $0[device.name] }?.setConditions(conditions)
        record.network(device.name, link: name, isOnline: isOnline)
        try await client(device.name)?.setInterface(isUp: isOnline)
    }

    // MARK: What people do

    private func playSteps() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for step in scenario.steps { group.addTask { try await self.play(step) } }
            try await group.waitForAll()
        }
        // What is yet to come, or may yet come true, is waited for.
        let end = scenario.knownEnd(record.history)
        while record.time < scenario.limit {
            let now = record.time
            if now >= end && !scenario.awaits(record.history, at: now) { return }
            try await Task.sleep(for: Self.lookEvery * 4)
        }
        record.add(.gaveUp("it was not over after \(Moment.text(scenario.limit)) (limit)"))
    }

    private func play(_ step: Scenario.Step) async throws {
        guard try await waitFor(step.trigger) else {
            if let mark = step.mark { missedMarks.withLock { _ = $0.insert(mark) } }
            return
        }
        // A mark is the moment at which something is done, not the one at which it shows.
        if let mark = step.mark { record.add(.mark(mark), line: "mark \(mark)") }
        if let (actor, act) = step.doing {
            record.add(.act(actor: actor, act.description), line: "\(actor)  \(act)")
            do {
                try await play(act, by: actor)
            } catch let refusal as SyncEngine.Refusal {
                record.add(.gaveUp("\(step.place): \(actor) cannot do that: \(refusal)"))
            }
        }
    }

    /// Waits for a step's moment; `false` if it never came.
    private func waitFor(_ trigger: Scenario.Step.Trigger) async throws -> Bool {
        while record.time < scenario.limit {
            switch trigger {
            case .at(let time): if record.time >= time { return true }
            case .after(let mark, let delay):
                if let time = record.history.time(of: mark), record.time >= time + delay { return true }
                if missedMarks.withLock({ $0.contains(mark) }) { return false }
            case .when(let device, let condition, let within):
                if record.history.isNow(device, condition) { return true }
                if record.time > within { return false }
            }
            try await Task.sleep(for: Self.lookEvery)
        }
        return false
    }

    private func play(_ act: Scenario.Act, by actor: String) async throws {
        if case .start = act { return try await startClient(actor) }
        guard let client = client(actor) else { return }
        switch act {
        case .create(let row, let title, let text):
            // Named before anybody can see it.
            let uuid = UUID().uuidString.lowercased()
            record.name(uuid, row)
            _ = try await client.create(title: title, text: text, uuid: uuid)
        case .edit(let row, let title, let text):
            try await client.edit(uuid(row), title: title, text: text)
        case .delete(let row): try await client.delete(uuid(row))
        case .resolve(let row, let title, let text):
            let kept = try await client.resolve(uuid(row), .write(title: title, text: text))
            record.name(kept, row)
        case .sync: try await client.sync()
        case .kill:
            clients.withLock { $0[actor] = nil }
            await client.stop()
        case .start: break
        }
    }

    private func uuid(_ row: String) throws -> String {
        guard let uuid = record.uuid(of: row) else { throw SyncEngine.Refusal.unknownNote }
        return uuid
    }

    // MARK: The end

    /// Lets everybody have the network until nothing is left to do and two looks at the server agree.
    private func quiesce() async throws {
        record.add(.act(actor: "everybody", "has the network"), line: "everybody has the network until they agree")
        for device in scenario.devices {
            try await put(.clear, as: "clear", on: device)
            if client(device.name) == nil { try await startClient(device.name) }
        }
        for _ in 0..<2 {
            for device in scenario.devices {
                try await client(device.name)?.sync()
                if try await !settle(device.name, within: Self.quiesceMax) {
                    record.add(.gaveUp("\(device.name) was not done \(Self.quiesceMax) after it had the network back"))
                }
            }
        }
    }

    /// Waits until a client has nothing left to do; gives whether that came in time.
    private func settle(_ name: String, within span: Duration) async throws -> Bool {
        let end = ContinuousClock.now + span
        while ContinuousClock.now < end {
            guard let client = client(name) else { return true }
            if try await client.progress().isSettled { return true }
            try await Task.sleep(for: Self.lookEvery)
        }
        return false
    }
}
