import Determinism
import Impairment
import LinkModel

@testable import Scenario

/// A world of simple clients and a simple server in virtual time, which executes the orders of a director.
///
/// A client sends one request at a time: its changes in order, then a fetch of all notes. A failure is retried after 1,
/// 2, 4 ... 60 s.
final class FakeWorld {
    /// Deviations from a world that works.
    struct Behaviour {
        var actTime = Nanoseconds.milliseconds(5)
        var latency = Nanoseconds.milliseconds(50)
        var timeout = Nanoseconds.seconds(10)
        /// Requests, starts, reads of the server, or preparations never end.
        var hangsRequests = false
        var hangsActs = false
        var hangsServer = false
        var hangsSetup = false
        /// Whether clients retry without a limit of the rate.
        var retriesAtOnce = false
        /// The times that each later time is rounded up to: a slow host.
        var granularity = Nanoseconds(1)
    }

    private struct Client {
        var epoch = 0
        var isRunning = false
        var isUp = true
        var conditions = Conditions.clear
        /// Texts of notes; a note with a pending change is also in the outbox.
        var notes: [(row: String, text: String)] = []
        var outbox: [(row: String, method: String)] = []
        var needsFetch = false
        var isBusy = false
        var failures = 0
    }

    private(set) var director: ScenarioDirector
    private(set) var recorder = HistoryRecorder()
    private(set) var now: Instant
    /// All orders, in order.
    private(set) var orders: [(time: Instant, action: ScenarioDirector.Action)] = []
    private(set) var hasEnded = false
    private(set) var setupFailure: String?
    var behaviour = Behaviour()

    private let scenario: Scenario
    private var queue: [(time: Instant, number: Int, run: () -> Void)] = []
    private var count = 0
    private var clients: [String: Client] = [:]
    private var server: [(row: String, text: String, revision: Int)] = []
    private var armed: [Int: (fault: Int, action: Scenario.Fault.Action, point: Scenario.Fault.Point)] = [:]
    private var nextRequest = 0
    private var nextConnection = 0

    /// - Parameter start: The time on the world's clock at which the server runs.
    init(_ scenario: Scenario, startingAt start: Instant = Instant(.seconds(7))) throws {
        self.scenario = scenario
        director = try ScenarioDirector(scenario)
        now = start
        server = scenario.notes.map { ($0.row, $0.text ?? "", $0.revision) }
        for device in scenario.devices { clients[device.name] = Client() }
    }

    /// Acts of a user that the scenario does not have, with their times; and whether each was accepted.
    func act(_ device: String, _ action: Scenario.Action, at span: Nanoseconds) {
        after(span) { [unowned self] in acceptedActs.append(director.userActs(device, action, at: now)) }
    }

    private(set) var acceptedActs: [Bool] = []

    /// Runs the scenario to its end and returns its verdict.
    @discardableResult
    func run() -> Verdict {
        director.begin(at: now)
        var rounds = 0
        while !hasEnded && rounds < 1_000_000 {
            rounds += 1
            drain()
            if queue.isEmpty && !hasEnded {
                director.idle(at: now)
                drain()
            }
            let deadline = director.nextDeadline
            if let first = queue.first, deadline.map({ first.time < $0 }) ?? true {
                queue.removeFirst()
                now = max(now, first.time)
                first.run()
            } else if let deadline {
                now = max(now, rounded(deadline))
                director.advance(to: now)
            } else if !hasEnded {
                break
            }
        }
        return Verdict(scenario, recorder.history)
    }

    private func rounded(_ time: Instant) -> Instant {
        let step = behaviour.granularity.count
        return Instant(Nanoseconds((time.sinceStart.count + step - 1) / step * step))
    }

    private func after(_ span: Nanoseconds, _ run: @escaping () -> Void) {
        let entry = (time: now + span, number: count, run: run)
        count += 1
        let index = queue.firstIndex { $0.time > entry.time } ?? queue.count
        queue.insert(entry, at: index)
    }

    func record(_ event: History.Event) {
        recorder.record(event, at: now)
        director.recorded(event, at: now)
    }

    // MARK: Orders

    private func drain() {
        while let action = director.takeAction() {
            orders.append((now, action))
            execute(action)
        }
    }

    private func execute(_ action: ScenarioDirector.Action) {
        switch action {
        case .prepare(let device):
            if behaviour.hangsSetup { return }
            after(.milliseconds(300)) { [self] in
                clients[device]?.notes = server.map { ($0.row, $0.text) }
                // A request of the setup, which belongs to no phase that counts.
                record(.request(-1, actor: device, method: "GET", row: nil, key: nil, bodyDigest: 0))
                director.prepared(device, at: now)
            }
        case .record(let event): record(event)
        case .setConditions(let device, let conditions, _):
            clients[device]?.conditions = conditions
            send(device)
        case .setInterface(let device, let isUp, _):
            clients[device]?.isUp = isUp
            send(device)
        case .startClient(let id, let device):
            if behaviour.hangsActs { return }
            let epoch = clients[device]?.epoch
            after(behaviour.actTime) { [self] in
                guard clients[device]?.epoch == epoch else { return }
                clients[device]?.isRunning = true
                clients[device]?.needsFetch = true
                recordView(device)
                director.actFinished(id, at: now)
                send(device)
            }
        case .killClient(let id, let device, atOnce: _):
            clients[device]?.isRunning = false
            clients[device]?.isBusy = false
            clients[device]?.epoch += 1
            director.actFinished(id, at: now)
        case .perform(let id, let actor, let action):
            if behaviour.hangsActs { return }
            if clients[actor] == nil { return write(id, actor, action) }
            let epoch = clients[actor]?.epoch
            after(behaviour.actTime) { [self] in
                if clients[actor]?.epoch == epoch { perform(id, actor, action) }
            }
        case .armFault(let index, let exchange, device: _, let point):
            if point != .stored { armed[exchange] = (index, scenario.faults[index].action, point) }
        case .closeConnection: break
        case .disarmFaults: armed = [:]
        case .readServer:
            if behaviour.hangsServer { return }
            record(
                .server(
                    server.map {
                        History.ServerRow(user: "ada", name: $0.row, revision: $0.revision, title: nil, text: $0.text)
                    }))
        case .end(let failure):
            hasEnded = true
            setupFailure = failure
        }
    }

    private func perform(_ id: ScenarioDirector.ActID, _ device: String, _ action: Scenario.Action) {
        switch action {
        case .create(let row, _, let text), .edit(let row, _, let text), .resolve(let row, _, let text):
            if case .create = action {
                clients[device]?.notes.append((row, text ?? ""))
                clients[device]?.outbox.append((row, "POST"))
            } else {
                guard let index = clients[device]?.notes.firstIndex(where: { $0.row == row }) else {
                    return director.actFailed(id, "no such note", at: now)
                }
                clients[device]?.notes[index].text = text ?? ""
                clients[device]?.outbox.append((row, "PUT"))
            }
            record(.accepted(device: device, row: row))
        case .delete(let row):
            clients[device]?.notes.removeAll { $0.row == row }
            clients[device]?.outbox.append((row, "DELETE"))
        case .sync: clients[device]?.needsFetch = true
        case .kill, .start: break
        default: return director.actFailed(id, "not supported", at: now)
        }
        recordView(device)
        director.actFinished(id, at: now)
        director.unsettled(device, at: now)
        send(device)
    }

    private func write(_ id: ScenarioDirector.ActID, _ writer: String, _ action: Scenario.Action) {
        let number = nextRequest
        nextRequest += 1
        guard case .edit(let row, _, let text) = action else { return director.actFinished(id, at: now) }
        record(.request(number, actor: writer, method: "PUT", row: row, key: nil, bodyDigest: 0))
        after(behaviour.latency) { [self] in
            accept(row, text ?? "", "PUT")
            record(.arrived(number))
            record(.serverResponded(number, status: 200))
            record(.responseReceived(number, status: 200))
            director.actFinished(id, at: now)
        }
    }

    // MARK: Clients and the server

    private func recordView(_ device: String) {
        guard let client = clients[device] else { return }
        let rows = client.notes.map { note in
            History.DeviceState.Row(
                name: note.row, title: nil, text: note.text,
                icon: client.outbox.contains { $0.row == note.row } ? .upload : .plain, isDeleted: false, kept: [])
        }
        record(.device(device, History.DeviceState(rows: rows, outbox: client.outbox.count)))
    }

    private func accept(_ row: String, _ text: String, _ method: String) {
        if method == "DELETE" { return server.removeAll { $0.row == row } }
        if let index = server.firstIndex(where: { $0.row == row }) {
            if server[index].text != text {
                server[index] = (row, text, server[index].revision + 1)
            }
        } else {
            server.append((row, text, 1))
        }
    }

    /// Returns the server's notes with a client's pending changes.
    private func merged(_ client: Client) -> [(row: String, text: String)] {
        let pending = client.outbox.map(\.row)
        return server.filter { !pending.contains($0.row) }.map { ($0.row, $0.text) }
            + client.notes.filter { pending.contains($0.row) }
    }

    /// Sends the next request of a client, if there is one.
    private func send(_ device: String) {
        guard let client = clients[device], client.isRunning, !client.isBusy, client.isUp else { return }
        guard let next = client.outbox.first ?? (client.needsFetch ? ("", "GET") : nil) else {
            return director.settled(device, at: now)
        }
        clients[device]?.isBusy = true
        let connection = nextConnection
        nextConnection += 1
        record(.connectionAttempt(connection, device: device))
        let epoch = client.epoch
        func later(_ span: Nanoseconds, _ run: @escaping () -> Void) {
            after(span) { [self] in if clients[device]?.epoch == epoch { run() } }
        }
        func retry() {
            let failures = min(clients[device]?.failures ?? 0, 6)
            clients[device]?.failures += 1
            let pause = behaviour.retriesAtOnce ? Nanoseconds.milliseconds(10) : .seconds(min(60, 1 << Int64(failures)))
            later(pause) { [self] in
                clients[device]?.isBusy = false
                send(device)
            }
        }
        if client.conditions.preventsExchanges && client.conditions.connectionPolicy != .portal {
            return later(client.conditions.connectionPolicy.refusesConnections ? .milliseconds(1) : behaviour.timeout) {
                [self] in
                record(.connectionEnded(connection, device: device))
                retry()
            }
        }
        let number = nextRequest
        nextRequest += 1
        record(
            .request(
                number, actor: device, method: next.method, row: next.row.isEmpty ? nil : next.row, key: nil,
                bodyDigest: 0, connection: connection))
        if behaviour.hangsRequests { return }
        let isPortal = client.conditions.connectionPolicy == .portal
        later(behaviour.latency) { [self] in
            record(.arrived(number))
            record(.serverResponded(number, status: 200))
            if !isPortal, next.method != "GET" {
                let text = clients[device]?.notes.first { $0.row == next.row }?.text ?? ""
                accept(next.row, text, next.method)
            }
            if let fault = armed.removeValue(forKey: number) {
                record(.fault(index: fault.fault, exchange: number, point: fault.point))
                return later(fault.action == .link(.reset) ? .zero : behaviour.timeout) { [self] in
                    record(.failed(number))
                    retry()
                }
            }
            record(.responseReceived(number, status: 200))
            if isPortal { return retry() }
            clients[device]?.failures = 0
            if next.method == "GET" {
                clients[device]?.needsFetch = false
                clients[device].map { clients[device]?.notes = merged($0) }
            } else {
                clients[device]?.outbox.removeFirst()
            }
            clients[device]?.isBusy = false
            recordView(device)
            send(device)
        }
    }
}
