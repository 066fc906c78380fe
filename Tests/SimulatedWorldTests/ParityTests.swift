import ConfigFiles
import Determinism
import LiveWorld
import ScenarioModel
import ScenarioWorld
import SimulatedWorld
import Testing

/// The same scenarios in virtual time and over real sockets.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ParityTests {
    /// The first exchanges are those of the setup in real time, and of the start of the client in virtual time.
    private static let start = Nanoseconds.milliseconds(200)

    /// The exchanges of a device in the script phase: method, note and statuses.
    private static func exchanges(_ history: History, of device: String) -> [String] {
        var order: [Int] = []
        var isHealed = false
        var texts: [Int: String] = [:]
        for entry in history.entries {
            switch entry.event {
            // In real time a request may still be in flight.
            case .action("runner", _): isHealed = true
            case .request(let id, actor: device, let method, let row, _, _, _)
            where entry.time >= start && !isHealed:
                order.append(id)
                texts[id] = "\(method) \(row ?? "index")"
            case .responseReceived(let id, let status): texts[id]? += " \(status)"
            case .fault(_, let id): texts[id]? += " lost"
            default: break
            }
        }
        return order.compactMap { texts[$0] }
    }

    @Test(arguments: [
        """
        steps: [{ at: 300ms, A: { edit: n1, text: three }, mark: edited }]
        expect: { eventually: [{ after: edited, within: 10s, A: { row: n1, icon: none, text: three } }] }
        """,
        """
        faults: [{ request: POST n2, point: committed, then: cut }]
        steps: [{ at: 300ms, A: { create: n2, text: three }, mark: created }]
        expect: { eventually: [{ after: created, within: 10s, A: { row: n2, icon: none, outbox: 0 } }] }
        """,
        """
        writers: { W: { user: ada } }
        steps:
          - { at: 300ms, W: { edit: n1, text: three } }
          - { at: 600ms, A: { edit: n1, text: four } }
        expect: { eventually: [{ by: 10s, A: { row: n1, icon: conflict } }] }
        """,
    ])
    func theExchangesAreTheSame(_ text: String) async throws {
        let scenario = try ScenarioFile(
            parsing: """
                scenario: 1
                name: parity
                limit: 20s
                server: { notes: { n1: { title: Milk, text: two } } }
                devices: { A: { user: ada } }
                network: { A: { 0s: wifi } }
                \(text)
                """, file: "parity.yaml"
        ).scenario
        let simulated = try SimulatedRun.run(scenario)
        let (verdict, history) = try await LiveRun.run(scenario)
        #expect(simulated.verdict.result == .pass)
        // A host pause makes a verdict inconclusive and may repeat requests.
        guard verdict.result != .inconclusive else { return }
        #expect(verdict.result == .pass, "\(verdict.checks)")
        let expected = Self.exchanges(history, of: "A")
        #expect(!expected.isEmpty)
        #expect(Self.exchanges(simulated.history, of: "A") == expected)
    }
}
