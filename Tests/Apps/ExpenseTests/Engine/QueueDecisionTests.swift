import Client
import Expense
import TestSupport
import Testing

@Suite struct QueueDecisionTests {
    private static let key = RecordKey("e1")!

    private func write(
        _ sequence: Int, _ action: PendingAction, _ fields: RecordFields = [:], isTried: Bool = false,
        of key: RecordKey = Self.key
    ) -> QueuedWrite {
        QueuedWrite(
            sequence: sequence, operation: "o\(sequence)", action: action, record: key, kind: "expense", parent: nil,
            pattern: .optimisticWithPendingUI, fields: fields, wasTried: isTried)
    }

    @Test func anUpdateReplacesAnUnsentUpdate() {
        let queue = [write(1, .update, ["title": "Taxi", "amount": "1"])]
        let decision = QueueDecision(
            adding: write(2, .update, ["amount": "2"]), to: queue, confirmed: ["title": "Bus", "amount": "0"])
        #expect(decision == .replace(1, ["title": "Taxi", "amount": "2"]))
    }

    @Test func anUpdateIsMergedIntoAnUnsentAddition() {
        let decision = QueueDecision(
            adding: write(2, .update, ["amount": "2"]), to: [write(1, .add, ["amount": "1"])], confirmed: nil)
        #expect(decision == .replace(1, ["amount": "2"]))
    }

    @Test func aChangeAndItsOppositeCancelOut() {
        let decision = QueueDecision(
            adding: write(2, .update, ["pinned": "false"]), to: [write(1, .update, ["pinned": "true"])],
            confirmed: ["pinned": "false", "title": "Ada"])
        #expect(decision == .remove([1], appends: false))
    }

    @Test func aDeletionRemovesAnUnsentAddition() {
        let decision = QueueDecision(adding: write(3, .delete), to: [write(1, .add)], confirmed: nil)
        #expect(decision == .remove([1], appends: false))
    }

    @Test func aDeletionFollowsAnAdditionThatWasTried() {
        let decision = QueueDecision(adding: write(3, .delete), to: [write(1, .add, isTried: true)], confirmed: nil)
        #expect(decision == .append)
    }

    @Test func aDeletionReplacesUnsentUpdates() {
        let queue = [write(1, .update, isTried: true), write(2, .update)]
        let decision = QueueDecision(adding: write(3, .delete), to: queue, confirmed: [:])
        #expect(decision == .remove([2], appends: true))
    }

    @Test func aTriedWriteAndThoseOfOtherRecordsStay() {
        let queue = [write(1, .update, isTried: true), write(2, .update, of: RecordKey("e2")!)]
        #expect(QueueDecision(adding: write(3, .update), to: queue, confirmed: [:]) == .append)
    }

    /// The fields of a record on a server that executes the writes in order; `nil` if there is none.
    private func result(of queue: [QueuedWrite], on confirmed: RecordFields?) -> RecordFields? {
        queue.reduce(confirmed) { fields, write in
            switch write.action {
            case .add: write.fields
            case .update: fields.map { $0.merging(write.fields) }
            case .delete: nil
            }
        }
    }

    @Test(arguments: randomSeeds(200)) func theCollapsedQueueHasTheSameResult(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let confirmed: RecordFields? = Bool.random(using: &random) ? ["a": "0", "b": "0"] : nil
        var all: [QueuedWrite] = []
        var queue: [QueuedWrite] = []
        for sequence in 1...12 {
            let exists = result(of: all, on: confirmed) != nil
            // A deleted record is never added again.
            if !exists && all.contains(where: { $0.action == .delete }) { break }
            let action: PendingAction = !exists ? .add : Int.random(in: 0..<5, using: &random) == 0 ? .delete : .update
            let name = Bool.random(using: &random) ? "a" : "b"
            let fields: RecordFields = action == .delete ? [:] : [name: "\(Int.random(in: 0..<3, using: &random))"]
            let next = write(sequence, action, fields)
            all.append(next)
            switch QueueDecision(adding: next, to: queue, confirmed: confirmed) {
            case .append: queue.append(next)
            case .replace(let sequence, let fields):
                let index = queue.firstIndex { $0.sequence == sequence }!
                #expect(!queue[index].wasTried)
                queue[index].fields = fields
            case .remove(let sequences, let appends):
                #expect(queue.allSatisfy { !$0.wasTried || !sequences.contains($0.sequence) })
                queue.removeAll { sequences.contains($0.sequence) }
                if appends { queue.append(next) }
            }
            if !queue.isEmpty, Int.random(in: 0..<4, using: &random) == 0 { queue[0].wasTried = true }
            #expect(result(of: queue, on: confirmed) == result(of: all, on: confirmed), "seed \(seed)")
        }
    }
}
