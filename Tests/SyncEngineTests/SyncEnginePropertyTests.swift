import Determinism
import NotesContract
import TestSupport
import Testing

@testable import SyncEngine

/// Random sequences of changes, failures and kills: no change is lost or duplicated, and client and server converge.
@Suite(.timeLimit(.minutes(2))) struct SyncEnginePropertyTests {
    @Test(arguments: 0..<400) func clientAndServerConvergeWithoutLoss(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        let world = EngineWorld()
        world.server.supportsOperationIDs = seed % 4 != 0
        /// The last local text of each note.
        var localTexts: [String: String] = [:]
        var created = 0

        func step(_ number: Int) {
            world.now = world.now + .milliseconds(.random(in: 0...4000, using: &generator))
            let rows = world.engine.view.rows.filter { !$0.isDeleted }
            let row = rows.randomElement(using: &generator)
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<10:
                let uuid = world.create("note \(created)", "text \(number)")
                created += 1
                localTexts[uuid] = "text \(number)"
            case 10..<25:
                guard let row else { break }
                world.edit(row.uuid, "text \(number)")
                localTexts[row.uuid] = "text \(number)"
            case 25..<29:
                guard let row, row.icon != .conflict else { break }
                world.delete(row.uuid)
                localTexts[row.uuid] = nil
            case 29..<36:
                let alive = world.server.notes.filter { !$0.value.isDeleted }.keys.sorted()
                guard let uuid = alive.randomElement(using: &generator) else { break }
                world.server.write(uuid, title: "theirs", text: "theirs \(number)")
            case 36..<38: world.restart()
            case 38..<44: world.setInterface(isUp: Bool.random(using: &generator))
            case 44..<50: world.loseResponse()
            case 50..<55: world.fail()
            case 55..<60:
                guard world.pending != nil else { break }
                let status = [500, 503, 200].randomElement(using: &generator)!
                world.respond(with: TestServer.response(status, "<html>"))
            case 60..<64:
                guard let row = rows.first(where: { $0.icon == .conflict }) else { break }
                world.resolve(row.uuid, .mine)
            default: if world.pending != nil { world.respond() } else { world.advance() }
            }
            // The local text stays visible until the user accepts the server's.
            for row in world.engine.view.rows where !row.isDeleted {
                guard let mine = localTexts[row.uuid] else { continue }
                let isTheirs = row.text?.hasPrefix("theirs") ?? false
                #expect(row.text == mine || isTheirs, note)
                if isTheirs { #expect(row.icon == .none, note) }
            }
        }
        for number in 0..<120 { step(number) }

        world.setInterface(isUp: true)
        for _ in 0..<10 {
            world.sync()
            world.settle()
            for row in world.engine.view.rows {
                if row.icon == .conflict { world.resolve(row.uuid, .mine) }
                if row.icon == .error {
                    if row.isDeleted { world.delete(row.uuid) } else { world.edit(row.uuid, row.text ?? "") }
                }
            }
        }
        #expect(world.engine.view.outbox == 0, note)
        #expect(world.texts == world.serverTexts, note)
        #expect(world.engine.view.rows.filter { $0.icon != .none }.isEmpty, note)
        // Each creation made at most one note.
        #expect(world.server.notes.count <= created + world.renamed, note)
        let titles = world.engine.view.rows.compactMap(\.title).filter { $0.hasPrefix("note") }
        #expect(Set(titles).count == titles.count, note)
        // The committed state equals the engine's.
        #expect(world.store.state.notes.count == world.engine.view.rows.count, note)
        #expect(world.store.entries.isEmpty, note)
    }
}
