import Determinism
import Scenario
import Testing

@testable import Impairment
@testable import LiveWorld
@testable import Wire

/// The exchanges of a program, of which only the proxy reports events.
@Suite struct ProgramLedgerTests {
    private static let id = ExchangeID(number: 0)

    /// A ledger with a request in flight.
    private static func started() throws -> (ledger: ProgramLedger, recorder: HistoryRecorder) {
        var (ledger, recorder) = (ProgramLedger("ada"), HistoryRecorder())
        recorder.record(.phase(.script), at: .start)
        let head = try HTTPRequestHead(method: "GET", target: "/")
        let events = ledger.exchange(.requested(id, head, body: [], subject: nil), &recorder)
        #expect(events.count == 2)
        return (ledger, recorder)
    }

    @Test func aResponseIsReceivedWhenTheProxyHasDeliveredIt() throws {
        var (ledger, recorder) = try Self.started()
        let events = ledger.exchange(.responseDelivered(Self.id, status: 200, end: 100), &recorder)
        #expect(events.map { "\($0)" } == ["request 0 response received 200"])
        #expect(ledger.killed().isEmpty)
    }

    /// The proxy reports the end of the connection after the end of the process.
    @Test func anExchangeOfAKilledProgramFailsOnce() throws {
        var (ledger, recorder) = try Self.started()
        #expect(ledger.killed().map { "\($0)" } == ["request 0 failed"])
        #expect(ledger.exchange(.interrupted(Self.id), &recorder).isEmpty)
    }
}
