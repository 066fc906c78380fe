internal import Determinism
internal import Foundation
internal import Impairment
internal import Proxy
internal import Scenario
internal import Synchronization
internal import Worlds

/// A device in real time whose client is a program: the proxy that is its link, and the program while it runs.
///
/// A thread owns the process and the protocol; orders reach the thread through a queue.
final class ProgramClient: LiveDevice {
    let name: String
    private let world: LiveRunWorld
    private let link: DeviceLink
    private let ledger: Mutex<ProgramLedger>
    private let loop: ProgramClientLoop

    init(
        _ device: Scenario.Device, in world: LiveRunWorld, _ folder: RunFolder, server: LiveServer.Address
    ) async throws {
        guard case .run(let program, let adapter) = device.client else {
            throw SetupError("\(device.name) has no program")
        }
        let name = device.name
        self.name = name
        self.world = world
        ledger = Mutex(ProgramLedger(name))
        let data = folder.url.appendingPathComponent(name, isDirectory: true)
        try FileManager.default.createDirectory(at: data, withIntermediateDirectories: false)
        // The loop and the proxy refer to each other.
        let relay = ExchangeRelay()
        link = try await DeviceLink(of: device, in: world, server: server) { event, _ in relay.report(event) }
        let origin = server.interception == nil ? "http://127.0.0.1" : "https://\(ServerInterception.host)"
        let variables =
            [
                ("SLOWLANE_URL", "\(origin):\(link.port)\(server.path)"), ("SLOWLANE_USER", device.user),
                ("SLOWLANE_PASSWORD", RunServer.password), ("SLOWLANE_SEED", "\(world.seed)"),
                ("SLOWLANE_DEVICE", name), ("SLOWLANE_DATA", data.path),
            ] + (server.interception?.variables ?? [])
        loop = try ProgramClientLoop(
            name, program, adapter, variables: variables.map { (name: $0.0, value: $0.1) }, seed: world.seed)
        relay.target = self
        loop.start(for: self)
    }

    /// Passes the events of the proxy on to the client, once there is one.
    private final class ExchangeRelay: Sendable {
        private let client = Mutex<Weak?>(nil)

        private struct Weak {
            weak var value: ProgramClient?
        }

        var target: ProgramClient? {
            get { client.withLock { $0?.value } }
            set { client.withLock { $0 = Weak(value: newValue) } }
        }

        func report(_ event: ExchangeEvent) -> ExchangeFault? { target?.exchange(event) }
    }

    private func exchange(_ event: ExchangeEvent) -> ExchangeFault? {
        let fault = world.exchange(event) { recorder in
            ledger.withLock { ledger in
                ledger.track(event)
                return recorder.start == nil ? [] : ledger.exchange(event, &recorder)
            }
        }
        loop.post(.exchanges(ledger.withLock(\.openCount)))
        return fault
    }

    /// Ends the program and the proxy.
    func stop() async {
        await loop.stop()
        await link.stop()
    }

    /// The last lines of the program's standard error.
    var output: ProgramOutput? {
        let lines = loop.errorLines
        return lines.isEmpty ? nil : ProgramOutput(name: name, lines: lines)
    }

    // MARK: Orders

    func execute(_ order: LiveRunWorld.Order) async {
        if await link.execute(order) { return }
        switch order.action {
        case .prepare:
            guard await loop.prepare() else { return }
            await link.reset()
            world.prepared(name)
        case .setInterface(_, let isUp, _):
            loop.post(.notify(.interface(isUp: isUp)))
            world.executed(order)
        case .startClient(let act, _): loop.post(.start(act, order))
        case .killClient(let act, _, atOnce: _): loop.post(.kill(act, order))
        case .perform(let act, actor: _, let action): loop.post(.perform(act, order, action))
        case .setConditions, .record, .closeConnection, .disarmFaults, .armFault, .readServer, .end: break
        }
    }

    // MARK: Facts from the thread

    func started(_ act: ScenarioDirector.ActID, _ order: LiveRunWorld.Order) {
        world.executed(order)
        ledger.withLock { $0.shows(nil) }
        world.finished(act)
    }

    func killed(_ act: ScenarioDirector.ActID, _ order: LiveRunWorld.Order) {
        world.withRecorder { _ in ((), ledger.withLock { $0.killed() }) }
        world.executed(order)
        world.finished(act)
    }

    func performing(_ order: LiveRunWorld.Order) { world.executed(order) }

    /// Returns an act as the program gets it; a note has its name before it is visible.
    func act(of action: Scenario.Action, newRecord: String) throws -> AdapterAct {
        try world.withRecorder { recorder in
            var events: [History.Event] = []
            if case .create(let row, _, _) = action { events = recorder.assign(row: row, to: Array(newRecord.utf8)) }
            let act = try AdapterAct(action) { row in
                recorder.record(of: row).map { String(decoding: $0, as: UTF8.self) }
            }
            return (act, events)
        }
    }

    func finished(_ act: ScenarioDirector.ActID, _ action: Scenario.Action, record: String?) {
        world.withRecorder { recorder in
            var events: [History.Event] = []
            if let row = action.row {
                if let record, recorder.record(of: row) != Array(record.utf8) {
                    events = recorder.assign(row: row, to: Array(record.utf8))
                    events += ledger.withLock { $0.viewEvents(&recorder) }
                }
                events.append(.accepted(device: name, row: row))
            }
            return ((), events)
        }
        world.finished(act)
    }

    func failed(_ act: ScenarioDirector.ActID, _ reason: String) { world.finished(act, ActionError(reason)) }

    func shows(_ view: AdapterView) {
        world.withRecorder { recorder in
            ledger.withLock { ledger in
                ledger.shows(view)
                return ((), recorder.start == nil ? [] : ledger.viewEvents(&recorder))
            }
        }
    }

    func settled(_ isSettled: Bool) { world.settled(name, isSettled) }

    /// Ends the run without a verdict.
    func failed(_ error: ProgramError) { world.fail(error) }

    /// Ends the run with a verdict, because the program has ended by itself.
    func ended(_ reason: String) { world.abort(reason) }
}
