import Client
import Determinism
import NotesContract
import NotesService
import TestSupport
import Wire

/// A random history of two devices and a browser under failures of every kind, checked by a ``HistoryModel``.
final class History {
    private let world: World
    private let model: HistoryModel
    private let devices: [Device]
    private var generator: SeededGenerator
    private var textCount = 0
    /// The last steps.
    private var trace: [String] = []
    let contract: APIContract
    let seed: UInt64

    /// - Parameter resolvesConflicts: Whether the behaviour resolves conflicts, so that texts of users may be lost or merged.
    init(
        _ contract: APIContract, seed: UInt64, _ behavior: SyncBehavior = SyncBehavior(),
        resolvesConflicts: Bool = false
    ) {
        self.contract = contract
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        world = World(contract, seed: seed)
        model = HistoryModel(world, resolvesConflicts: resolvesConflicts)
        devices = ["A", "B"].map { [world] in world.addDevice($0) }
        for device in devices {
            model.observe(device)
            device.adapt = { $0.behavior = behavior }
            // The original server executes whatever arrives, however late.
            device.link.discardsStalledBytes = contract == .orig
            device.start()
        }
    }

    /// Executes the history; returns the violations with the trace, or `nil`.
    func violations(steps: Int) -> String? {
        for _ in 0..<steps {
            step()
            wait()
        }
        rest()
        model.finish(devices)
        let all = model.violations + world.problems
        guard !all.isEmpty else { return nil }
        return "\(contract) seed \(seed): \(all.joined(separator: "; "))\n  "
            + trace.suffix(60).joined(separator: "\n  ")
    }

    // MARK: Randomness

    private func random(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    private func log(_ text: String) { trace.append("\(world.now.sinceStart.inSeconds) \(text)") }

    private func wait() {
        let milliseconds = [0, 3, 15, 30, 60, 200, 1500, 8000, 70_000][random(9)]
        world.run(for: .milliseconds(Int64(milliseconds)))
    }

    private func text(_ device: Device, _ id: RecordID?) -> String {
        // Sometimes both users write the same.
        if let id, random(12) == 0, let last = model.acts.last(where: { $0.id == id && $0.device != device.name })?.text
        {
            return last
        }
        textCount += 1
        return "\(device.name)\(textCount)"
    }

    // MARK: Steps

    private func step() {
        let device = devices[random(2)]
        switch random(100) {
        case 0..<14: create(device)
        case 14..<38: edit(device)
        case 38..<46: delete(device)
        case 46..<56: decide(device)
        case 56..<62: kill(device)
        case 62..<68:
            let bytes = random(3000)
            log("\(device.name) is cut after \(bytes) bytes")
            device.link.bytesUntilReset = bytes
        case 68..<76:
            let isUp = random(2) == 0
            log("\(device.name) interface \(isUp ? "up" : "down")")
            device.setInterface(isUp: isUp)
            // Bytes in flight arrive before the interface changes again.
            world.run(for: .milliseconds(100))
        case 76..<82:
            let mode = [Link.Mode.up, .up, .stalled, .refusing][random(4)]
            log("\(device.name) link \(mode)")
            device.link.set(mode)
        case 82..<92: addRule(device)
        case 92..<94:
            let seconds = (random(2) == 0 ? 1 : -1) * random(100_000)
            log("clock \(seconds) s")
            world.server.stepClock(seconds: seconds)
        case 94..<96:
            device.disk = device.disk == .full ? .works : .full
            log("\(device.name) disk \(device.disk)")
        case 96..<97: writeFromBrowser()
        case 97..<99: useAnotherProcess(device)
        default:
            log("\(device.name) sync")
            device.sync()
        }
    }

    private func create(_ device: Device) {
        guard device.isRunning else { return }
        let text = text(device, nil)
        let id = model.perform(.create, on: device, nil, text: text) { try device.tryCreate(nil, text) }
        log("\(device.name) creates \(text): \(id?.text ?? "no")")
    }

    private func pick(_ device: Device, _ isIncluded: (RecordRow) -> Bool) -> RecordRow? {
        let rows = device.rows.filter(isIncluded)
        return rows.isEmpty ? nil : rows[random(rows.count)]
    }

    private func edit(_ device: Device) {
        guard let row = pick(device, { !$0.isDeleted }) else { return create(device) }
        let text = text(device, row.id)
        let id = model.perform(.edit, on: device, row.id, text: text) {
            try device.tryEdit(row.id, text)
            return row.id
        }
        log("\(device.name) edits \(row.id) to \(text): \(id != nil)")
    }

    private func delete(_ device: Device) {
        guard let row = pick(device, { !$0.isDeleted }) else { return }
        let id = model.perform(.delete, on: device, row.id, text: nil) {
            try device.tryDelete(row.id)
            return row.id
        }
        log("\(device.name) deletes \(row.id): \(id != nil)")
    }

    /// The user resolves a conflict, or retries or discards a parked change.
    private func decide(_ device: Device) {
        // The user decides on what the device shows after the changes of another process.
        device.readStore()
        guard let row = pick(device, { $0.icon == .conflict || $0.icon == .error }) else { return edit(device) }
        decide(device, row)
    }

    private func decide(_ device: Device, _ row: RecordRow) {
        guard row.icon == .conflict else {
            if random(2) == 0 {
                log("\(device.name) retries \(row.id)")
                try? device.tryRetry(row.id)
            } else {
                let id = model.perform(.dismiss, on: device, row.id, text: nil) {
                    try device.tryDismiss(row.id)
                    return row.id
                }
                log("\(device.name) dismisses \(row.id): \(id != nil)")
            }
            return
        }
        let resolution: SyncEngine.Resolution
        let text: String?
        let theirs = device.engine.record(row.id)?.theirs?.content.flatMap { NoteContent($0).text }
        switch random(3) {
        case 0: (resolution, text) = (.mine, row.isDeleted ? nil : NoteContent(row.content).text)
        case 1: (resolution, text) = (.theirs, theirs)
        default:
            let new = self.text(device, nil)
            (resolution, text) = (.write(device.content(nil, new)), new)
        }
        let isTheirs = resolution == .theirs
        let id = model.perform(.resolve, on: device, row.id, text: isTheirs ? theirs : text) {
            try device.tryResolve(row.id, resolution)
        }
        log("\(device.name) resolves \(row.id) to \(text ?? "deleted"): \(id?.text ?? "no")")
    }

    private func kill(_ device: Device) {
        let delay = Nanoseconds.milliseconds(Int64([200, 1000, 20_000][random(3)]))
        let restart: () -> Void = { [weak self, weak device] in
            guard let self, let device else { return }
            self.world.time.schedule(at: self.world.now + delay) { [weak self, weak device] in
                guard let self, let device, !device.isRunning else { return }
                self.log("\(device.name) starts")
                device.start()
            }
        }
        guard device.isRunning else { return }
        if random(2) == 0 {
            log("\(device.name) is killed")
            device.kill()
            restart()
        } else {
            let plan = Device.KillPlan(step: 1 + random(20), isAfterAction: random(2) == 0)
            log("\(device.name) will be killed \(plan.isAfterAction ? "after" : "before") its action \(plan.step)")
            device.steps = 0
            device.killPlan = plan
            device.onKill = { [weak self, weak device] in
                self?.log("\(device?.name ?? "") is killed by the plan")
                restart()
            }
        }
    }

    private func addRule(_ device: Device) {
        let method = ["GET", "POST", "PUT", "DELETE", nil][random(5)]
        let effect: HostileRule.Effect
        let name: String
        switch random(17) {
        case 0: (effect, name) = (.cutRequest, "cut request")
        case 1: (effect, name) = (.cutResponse(after: random(400)), "cut response")
        case 2: (effect, name) = (.cutResponse(after: -1 - random(40)), "cut end of response")
        case 3: (effect, name) = (.endResponse(after: random(400)), "end response")
        case 4: (effect, name) = (.respond(.notes(500)), "500")
        case 5: (effect, name) = (.respond(.notes(503, headers: [("Retry-After", "\(random(20))")])), "503")
        case 6: (effect, name) = (.respond(.foreign(502)), "502")
        case 7: (effect, name) = (.respond(.foreign(200)), "portal")
        case 8: (effect, name) = (.respond(.notes(429)), "429")
        case 9: (effect, name) = (.respond(.notes(409)), "409")
        case 10: (effect, name) = (.respond(.notes(422)), "422")
        case 11: (effect, name) = (.silence(executes: random(2) == 0), "silence")
        case 12: (effect, name) = (.delay(.seconds(Int64(random(40)))), "delay")
        case 13:
            (effect, name) = (
                .replace { $0.with(body: String(decoding: $0.body.dropLast(3), as: UTF8.self)) }, "half body"
            )
        case 14: (effect, name) = (.replace { Self.withOtherNote($0) }, "another note")
        case 15: (effect, name) = (.respond(.notes(401)), "401")
        default: (effect, name) = (.replace { $0.with(NotesHTTP.markerName, nil) }, "no marker")
        }
        let count = random(3) == 0 ? 8 : 1
        log("\(count) \(method ?? "any") of \(device.name): \(name)")
        world.server.rules.append(HostileRule(method, from: [device.name], nth: 1...count, effect))
        if world.server.rules.count > 3 { world.server.rules.removeFirst() }
    }

    /// The user changes a note in a second process, such as a command, while the first one syncs.
    private func useAnotherProcess(_ device: Device) {
        let other = world.addDevice(device.name, store: device.store)
        model.observe(other)
        other.setInterface(isUp: false)
        other.start()
        log("another process of \(device.name)")
        switch random(4) {
        case 0: create(other)
        case 1: delete(other)
        case 2: decide(other)
        default: edit(other)
        }
        other.kill()
        if random(2) == 0 { device.readStore() }
    }

    /// Returns the response with another identifier in place of the note's.
    private static func withOtherNote(_ response: WireResponse) -> WireResponse {
        guard var note = Note(json: response.body) else { return response }
        note.uuid = "00000000-0000-4000-8000-0000000000ff"
        return response.with(body: note.json)
    }

    private func writeFromBrowser() {
        let ids = world.server.notes().keys.sorted()
        guard let id = ids.isEmpty ? nil : ids[random(ids.count)] else { return }
        if random(4) == 0 {
            log("web deletes \(id)")
            world.server.remove(id)
        } else {
            textCount += 1
            log("web writes web\(textCount) to \(id)")
            world.server.write(id, text: "web\(textCount)")
        }
    }

    // MARK: The end

    /// Removes all failures and lets the users decide until nothing is left to decide.
    private func rest() {
        world.server.rules = []
        for device in devices {
            device.killPlan = nil
            device.disk = .works
            device.link.bytesUntilReset = nil
            device.link.set(.up)
            if !device.isRunning { device.start() }
            device.setInterface(isUp: true)
            device.credentials()
        }
        log("rest")
        for _ in 0..<12 {
            for device in devices { device.readStore() }
            // A rejection may have been on its way.
            for device in devices where device.isRunning && device.status.pauseReason != nil { device.credentials() }
            if !world.settle(limit: .seconds(300)) {
                let waiting = devices.filter { !$0.isSettled }.map { "\($0.name) \($0.status)" }
                return model.report("I17: no rest: \(waiting.joined(separator: ", "))")
            }
            for device in devices {
                for row in device.rows where row.icon == .conflict || row.icon == .error { decide(device, row) }
            }
            if !world.settle(limit: .seconds(300)) { continue }
            for device in devices { device.sync() }
            if world.settle(limit: .seconds(300)), isAtRest { return }
        }
    }

    private var isAtRest: Bool {
        let texts = world.server.texts
        return devices.allSatisfy { $0.texts == texts && $0.rows.allSatisfy { $0.icon == .none } }
    }
}
