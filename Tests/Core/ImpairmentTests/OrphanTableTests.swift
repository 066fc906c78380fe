import Determinism
import LinkModel
import TCPModel
import Testing

@testable import Impairment

@Suite struct OrphanTableTests {
    @Test func theOldestOrphanIsDueFirstAndAbortedBeyondTheLimit() {
        var tcp = TCPLink(.clear, seed: 1)
        var conduits = ConduitTable()
        let ids = (0..<3).map { _ in tcp.open(at: .start) }
        for id in ids { conduits.insert(Conduit(), id) }
        var orphans = OrphanTable(OrphanLimits(timeMax: .seconds(10), countMax: 2))
        let first = orphans.insert(ids[0], at: .start, in: conduits)
        let second = orphans.insert(ids[1], at: Instant(.seconds(1)), in: conduits)
        #expect(first == nil && second == nil)
        #expect(orphans.nextDeadline == Instant(.seconds(10)))
        #expect(orphans.due(at: Instant(.seconds(9))) == nil && orphans.due(at: Instant(.seconds(10))) == ids[0])
        let third = orphans.insert(ids[2], at: Instant(.seconds(2)), in: conduits)
        #expect(third == ids[0])

        conduits.remove(ids[0])
        orphans.removeEnded(in: conduits)
        let count = orphans.count(in: conduits)
        #expect(count == 2 && orphans.nextDeadline == Instant(.seconds(11)))
    }

    @Test func endedOrphansMakeRoomForOthers() {
        var tcp = TCPLink(.clear, seed: 1)
        var conduits = ConduitTable()
        let ids = (0..<3).map { _ in tcp.open(at: .start) }
        for id in ids { conduits.insert(Conduit(), id) }
        var orphans = OrphanTable(OrphanLimits(countMax: 2))
        _ = orphans.insert(ids[0], at: .start, in: conduits)
        _ = orphans.insert(ids[1], at: .start, in: conduits)
        conduits.remove(ids[1])
        let third = orphans.insert(ids[2], at: .start, in: conduits)
        let count = orphans.count(in: conduits)
        #expect(third == nil && count == 2)
    }
}
