import Testing

@testable import Scenario

@Suite struct ServerKnowledgeTests {
    /// A device that has settled, and has polled since.
    private static func current() -> ServerKnowledge {
        var knowledge = ServerKnowledge(devices: 1)
        knowledge.settled(0)
        poll(&knowledge, 0)
        return knowledge
    }

    private static func poll(_ knowledge: inout ServerKnowledge, _ exchange: Int, isSuccess: Bool = true) {
        knowledge.requested(exchange, by: 0, method: "GET", row: nil)
        knowledge.ended(exchange, of: 0, isSuccess: isSuccess)
        if isSuccess { knowledge.settled(0) }
    }

    @Test func aPollMakesADeviceCurrent() {
        var knowledge = ServerKnowledge(devices: 1)
        #expect(!knowledge.isCurrent(0))
        knowledge.settled(0)
        #expect(!knowledge.isCurrent(0), "the server may have changed since the device has read the index")
        knowledge.requested(1, by: 0, method: "GET", row: nil)
        knowledge.ended(1, of: 0, isSuccess: true)
        #expect(!knowledge.isCurrent(0), "notes may have to be fetched")
        knowledge.settled(0)
        #expect(knowledge.isCurrent(0))
        Self.poll(&knowledge, 2)
        #expect(knowledge.isCurrent(0))
    }

    @Test func aFailedPollTeachesNothing() {
        var knowledge = ServerKnowledge(devices: 1)
        knowledge.settled(0)
        Self.poll(&knowledge, 1, isSuccess: false)
        knowledge.settled(0)
        #expect(!knowledge.isCurrent(0))
        Self.poll(&knowledge, 2)
        #expect(knowledge.isCurrent(0))
    }

    @Test func aChangeOnTheServerIsNews() {
        var knowledge = Self.current()
        // By a writer.
        knowledge.requested(7, by: nil, method: "PUT", row: "n1")
        #expect(knowledge.isCurrent(0))
        knowledge.responded(to: 7) { _ in true }
        #expect(!knowledge.isCurrent(0))
        Self.poll(&knowledge, 8)
        #expect(knowledge.isCurrent(0))
        // A read changes nothing.
        knowledge.requested(9, by: nil, method: "GET", row: "n1")
        knowledge.responded(to: 9) { _ in true }
        #expect(knowledge.isCurrent(0))
    }

    /// The response to a poll that was sent before the change may lack it.
    @Test func aPollDuringTheChangeDoesNotCount() {
        var knowledge = Self.current()
        knowledge.requested(7, by: nil, method: "POST", row: "n1")
        knowledge.requested(8, by: 0, method: "GET", row: nil)
        knowledge.responded(to: 7) { _ in false }
        knowledge.ended(8, of: 0, isSuccess: true)
        knowledge.settled(0)
        #expect(!knowledge.isCurrent(0))
        Self.poll(&knowledge, 9)
        #expect(knowledge.isCurrent(0))
    }

    @Test func aStoppedClientHasToPollAgain() {
        var knowledge = Self.current()
        knowledge.stopped(0)
        knowledge.settled(0)
        #expect(!knowledge.isCurrent(0))
    }
}
