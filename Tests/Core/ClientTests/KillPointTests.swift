import Client
import Determinism
import Foundation
import NotesContract
import NotesService
import TestSupport
import Testing
import Wire

/// The end of the process at every point of every operation: the end state is the same, and nothing is executed twice.
///
/// The points are generated: a run without a kill counts the actions of the machine; then each point has a run of its
/// own.
@Suite struct KillPointTests {
    /// An operation by the user, and the state that it starts from.
    struct Operation: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Returns the notes of the operation.
        let prepare: @Sendable (World, Device) throws -> [RecordID]
        let perform: @Sendable (Device, [RecordID]) throws -> Void

        init(
            _ name: String, prepare: @escaping @Sendable (World, Device) throws -> [RecordID] = { _, _ in [] },
            perform: @escaping @Sendable (Device, [RecordID]) throws -> Void
        ) {
            testDescription = name
            self.prepare = prepare
            self.perform = perform
        }
    }

    private static func synchronised(_ world: World, _ device: Device) -> [RecordID] {
        let ids = [device.create("n", "a"), device.create("m", "other")]
        world.settle()
        return ids
    }

    /// A conflict: both sides edited, theirs deleted, or mine deleted.
    @Sendable private static func conflict(_ world: World, _ device: Device, mine: String?, theirs: String?)
        -> [RecordID]
    {
        let ids = synchronised(world, device)
        device.setInterface(isUp: false)
        if let theirs { world.server.write(ids[0], text: theirs) } else { world.server.remove(ids[0]) }
        if let mine { device.edit(ids[0], mine) } else { device.delete(ids[0]) }
        device.setInterface(isUp: true)
        world.settle()
        precondition(device.icon(ids[0]) == .conflict)
        return ids
    }

    @Sendable private static func parked(_ world: World, _ device: Device) -> [RecordID] {
        let ids = synchronised(world, device)
        // The change is executed, its response is lost, and its repetition is rejected.
        world.server.rules = [
            HostileRule("PUT", nth: 1...1, .cutResponse(after: 0)), HostileRule("PUT", .respond(.notes(422))),
        ]
        device.edit(ids[0], "b")
        world.run(for: .seconds(30))
        if device.icon(ids[0]) != .error { world.problems.append("the change is not parked") }
        world.server.rules = []
        return ids
    }

    static let operations: [Operation] = [
        Operation("create") { device, _ in _ = try device.tryCreate("n", "a") },
        Operation("edit", prepare: synchronised) { device, ids in try device.tryEdit(ids[0], "b") },
        Operation("edit without a change", prepare: synchronised) { device, ids in
            try device.tryEdit(ids[0], "a", title: "n")
        },
        Operation("delete", prepare: synchronised) { device, ids in try device.tryDelete(ids[0]) },
        Operation(
            "edit that conflicts",
            prepare: { world, device in
                let ids = synchronised(world, device)
                world.server.write(ids[0], text: "theirs")
                return ids
            }
        ) { device, ids in try device.tryEdit(ids[0], "mine") },
        Operation(
            "delete that conflicts",
            prepare: { world, device in
                let ids = synchronised(world, device)
                world.server.write(ids[0], text: "theirs")
                return ids
            }
        ) { device, ids in try device.tryDelete(ids[0]) },
        Operation("resolve to mine", prepare: { conflict($0, $1, mine: "m", theirs: "t") }) { device, ids in
            try device.tryResolve(ids[0], .mine)
        },
        Operation("resolve to theirs", prepare: { conflict($0, $1, mine: "m", theirs: "t") }) { device, ids in
            try device.tryResolve(ids[0], .theirs)
        },
        Operation("resolve to both", prepare: { conflict($0, $1, mine: "m", theirs: "t") }) { device, ids in
            try device.tryResolve(ids[0], .write(device.content("n", "m t")))
        },
        Operation("resolve their deletion to mine", prepare: { conflict($0, $1, mine: "m", theirs: nil) }) {
            device, ids in
            try device.tryResolve(ids[0], .mine)
        },
        Operation("resolve their deletion to theirs", prepare: { conflict($0, $1, mine: "m", theirs: nil) }) {
            device, ids in
            try device.tryResolve(ids[0], .theirs)
        },
        Operation("resolve my deletion to mine", prepare: { conflict($0, $1, mine: nil, theirs: "t") }) { device, ids in
            try device.tryResolve(ids[0], .mine)
        },
        Operation("resolve my deletion to theirs", prepare: { conflict($0, $1, mine: nil, theirs: "t") }) {
            device, ids in
            try device.tryResolve(ids[0], .theirs)
        },
        Operation("retry", prepare: parked) { device, ids in try device.tryRetry(ids[0]) },
        Operation("dismiss", prepare: parked) { device, ids in try device.tryDismiss(ids[0]) },
        Operation("edit of a parked change", prepare: parked) { device, ids in try device.tryEdit(ids[0], "c") },
        Operation("delete of a parked change", prepare: parked) { device, ids in try device.tryDelete(ids[0]) },
        Operation(
            "adopt",
            prepare: { world, device in
                let empty = try world.server.store.snapshot()
                let ids = synchronised(world, device)
                device.setInterface(isUp: false)
                device.edit(ids[0], "b")
                _ = device.create("new", "new")
                try world.server.store.restore(empty)
                if world.server.contract == .orig {
                    // Without a history only the address shows that the server is another one.
                    device.kill()
                    var state = device.store.state
                    state.account?.server = "elsewhere:80"
                    device.store.replace(with: state)
                    device.start()
                }
                device.setInterface(isUp: true)
                world.run(for: .seconds(10))
                return ids
            }
        ) { device, _ in
            // A process that was killed after the commit has adopted.
            if device.status.mismatch != nil { try device.change { engine, now in engine.adopt(at: now) } }
        },
        Operation(
            "pull",
            prepare: { world, device in
                let ids = synchronised(world, device)
                world.server.write(ids[0], text: "theirs")
                world.server.remove(ids[1])
                for number in 1...3 { world.server.write(HostileServerTests.id(number), text: "\(number)") }
                return ids
            }
        ) { device, _ in device.sync() },
    ]

    /// What is compared. Identifiers and suffixes of revisions are random.
    private struct Outcome: Equatable {
        var server: [String] = []
        var rows: [String] = []
        var entries = 0
        var writes = 0
        var problems: [String] = []
    }

    private static func run(
        _ operation: Operation, _ contract: APIContract, _ plan: Device.KillPlan?
    ) throws -> (outcome: Outcome, steps: Int, commitSteps: [Int]) {
        let world = World(contract)
        let device = world.startDevice()
        world.settle()
        let ids = try operation.prepare(world, device)
        world.run(for: .seconds(1))
        device.steps = 0
        device.commitSteps = []
        device.killPlan = plan
        device.onKill = { [unowned world, unowned device] in
            world.time.schedule(at: world.now + .seconds(1)) { device.start() }
        }
        let isAtRest = { device.isRunning && world.devices.allSatisfy(\.isSettled) }
        do {
            try operation.perform(device, ids)
        } catch is Device.NotRunning {
            // The change has not happened, and the user repeats it.
            world.run { device.isRunning }
            try operation.perform(device, ids)
        }
        world.run(until: isAtRest)
        device.sync()
        if !device.isRunning { world.run { device.isRunning } }
        world.run(until: isAtRest)
        device.readStore()
        var outcome = Outcome()
        outcome.server = world.server.notes().values.map { "\($0.revision.number) \($0.text ?? "-")" }.sorted()
        outcome.rows = device.rows.map { row in
            let revision = row.revision?.prefix { $0 != "-" } ?? "-"
            return "\(revision) \(NoteContent(row.content).text ?? "-") \(row.icon) \(row.isDeleted)"
        }.sorted()
        outcome.entries = device.store.entries.count
        outcome.writes = world.server.writes.count
        outcome.problems = world.problems
        return (outcome, device.steps, device.commitSteps)
    }

    /// `SLOWLANE_SEEDS` adds contracts.
    static let contracts: [APIContract] = TestSettings.isSoak ? [.orig, .compat, .strict] : [.compat]

    @Test(arguments: operations, contracts)
    func aKillAtAnyPointLeadsToTheSameEnd(_ operation: Operation, _ contract: APIContract) throws {
        let (expected, steps, commitSteps) = try Self.run(operation, contract, nil)
        #expect(expected.problems == [] && steps > 0 && !commitSteps.isEmpty)
        var plans = (1...steps).map { Device.KillPlan(step: $0, isAfterAction: false) }
        // After an action that is no commit, the state is the one before the next action.
        plans += commitSteps.map { Device.KillPlan(step: $0, isAfterAction: true) }
        for plan in plans {
            let outcome = try Self.run(operation, contract, plan).outcome
            #expect(
                outcome == expected, "killed \(plan.isAfterAction ? "after" : "before") action \(plan.step) of \(steps)"
            )
        }
    }

    /// The connection is reset after each of the bytes of an operation, in turn of both directions.
    @Test(arguments: [0, 1, 3], contracts)
    func aConnectionLostAtAnyByteLeadsToTheSameEnd(_ number: Int, _ contract: APIContract) throws {
        let operation = Self.operations[number]
        func run(_ bytes: Int?) throws -> (outcome: Outcome, bytes: Int) {
            let world = World(contract)
            let device = world.startDevice()
            world.settle()
            let ids = try operation.prepare(world, device)
            world.run(for: .seconds(30))
            device.link.bytesUntilReset = bytes ?? .max
            try operation.perform(device, ids)
            world.settle()
            let used = Int.max - (device.link.bytesUntilReset ?? .max)
            device.link.bytesUntilReset = nil
            device.sync()
            world.settle()
            var outcome = Outcome()
            outcome.server = world.server.notes().values.map { "\($0.revision.number) \($0.text ?? "-")" }.sorted()
            outcome.rows = device.rows.map { "\(NoteContent($0.content).text ?? "-") \($0.icon) \($0.isDeleted)" }
                .sorted()
            outcome.entries = device.store.entries.count
            outcome.writes = world.server.writes.count
            outcome.problems = world.problems
            return (outcome, used)
        }
        let (expected, byteCount) = try run(nil)
        #expect((200...5000).contains(byteCount))
        for bytes in stride(from: 1, through: byteCount, by: 23) {
            #expect(try run(bytes).outcome == expected, "reset after \(bytes) of \(byteCount) bytes")
        }
    }
}
