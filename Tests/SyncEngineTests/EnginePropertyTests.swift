import LinkModel
import NotesContract
import TestSupport
import Testing

@testable import SyncEngine

/// Whatever is lost, delayed or killed: nothing the user saved is lost or doubled, and everybody ends up with the same.
@Suite(.timeLimit(.minutes(2))) struct EnginePropertyTests {
    @Test(arguments: 0..<400) func everythingConvergesAndNothingIsLost(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        let world = World()
        world.server.knowsOperations = seed % 4 != 0
        /// What each note was last made to say, here or there.
        var lastHere: [String: String] = [:]
        var created = 0

        func step(_ number: Int) {
            world.now = world.now + .milliseconds(.random(in: 0...4000, using: &generator))
            let rows = world.engine.view.rows.filter { !$0.isDeleted }
            let row = rows.randomElement(using: &generator)
            switch Int.random(in: 0..<100, using: &generator) {
            case 0..<10:
                let uuid = world.create("note \(created)", "text \(number)")
                created += 1
                lastHere[uuid] = "text \(number)"
            case 10..<25:
                guard let row else { break }
                world.edit(row.uuid, "text \(number)")
                lastHere[row.uuid] = "text \(number)"
            case 25..<29:
                guard let row, row.icon != .conflict else { break }
                world.delete(row.uuid)
                lastHere[row.uuid] = nil
            case 29..<36:
                let alive = world.server.notes.filter { !$0.value.isDeleted }.keys.sorted()
                guard let uuid = alive.randomElement(using: &generator) else { break }
                world.server.write(uuid, title: "theirs", text: "theirs \(number)")
            case 36..<38: world.restart()
            case 38..<44: world.take(.interface(isUp: Bool.random(using: &generator)))
            case 44..<50: world.loseAnswer()
            case 50..<55: world.fail()
            case 55..<60:
                guard let request = world.pending else { break }
                world.pending = nil
                let status = [500, 503, 200].randomElement(using: &generator)!
                world.take(.answered(request.id, PlainServer.answer(status, "<html>")))
            case 60..<64:
                guard let row = rows.first(where: { $0.icon == .conflict }) else { break }
                world.resolve(row.uuid, .mine)
            default: if world.pending != nil { world.answer() } else { world.wake() }
            }
            // What the user last wrote stays on the screen until they decide otherwise.
            for row in world.engine.view.rows where !row.isDeleted {
                guard let mine = lastHere[row.uuid] else { continue }
                let isTheirs = row.text?.hasPrefix("theirs") ?? false
                #expect(row.text == mine || isTheirs, note)
                if isTheirs { #expect(row.icon == .none, note) }
            }
        }
        for number in 0..<120 { step(number) }

        world.take(.interface(isUp: true))
        for _ in 0..<10 {
            world.take(.sync)
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
        // Every creation made one note at most; none is there that nobody made.
        #expect(world.server.notes.count <= created + world.renamed, note)
        let titles = world.engine.view.rows.compactMap(\.title).filter { $0.hasPrefix("note") }
        #expect(Set(titles).count == titles.count, note)
        // The committed state is the engine's.
        #expect(world.store.state.notes.count == world.engine.view.rows.count, note)
        #expect(world.store.entries.isEmpty, note)
    }
}
