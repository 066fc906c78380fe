import Testing

@testable import Impairment

@Suite struct ConnectionBudgetTests {
    private static let limits = BufferLimits(
        bytesMaxTotal: 1000, bytesMaxPerDirection: 400, bytesMinPerDirection: 10, socketBytesMax: 300)

    @Test func sharesAreEqualAndWithinTheirBounds() {
        let budget = ConnectionBudget(Self.limits)
        #expect(budget.streamShare(connections: 0) == 400)
        #expect(budget.streamShare(connections: 2) == 250)
        #expect(budget.streamShare(connections: 1000) == 10)
        #expect(budget.socketShare(connections: 1) == 300)
        #expect(budget.socketShare(connections: 2) == 250)
    }

    @Test func aShareIsNoMoreThanOtherStreamsLeave() {
        var budget = ConnectionBudget(Self.limits)
        budget.changeStreamBytes(by: 900)
        #expect(budget.streamShare(connections: 2) == 100)
        budget.changeStreamBytes(by: 99)
        #expect(budget.streamShare(connections: 2) == 10)
        // Bytes before toxics have a limit of their own.
        budget.changeStreamBytes(by: -999)
        budget.changeToxicBytes(by: 900)
        #expect(budget.bytesHeld == 900 && budget.streamShare(connections: 2) == 250)
    }

    @Test func negativeCountsTrap() async {
        await #expect(processExitsWith: .failure) {
            var budget = ConnectionBudget(BufferLimits())
            budget.changeToxicBytes(by: 5)
            budget.changeStreamBytes(by: -1)
        }
    }
}
