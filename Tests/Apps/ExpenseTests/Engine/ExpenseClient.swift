import Client
import Determinism
import HTTPTypes
import TestSupport
import Wire

@testable import Expense

/// The expense app.
typealias ExpenseClient = FakeClient<ExpenseEngine, ExpenseService>

extension FakeClient where Engine == ExpenseEngine, Service == ExpenseService {
    init(seed: UInt64 = 1, isOnline: Bool = true) throws {
        let service = ExpenseService()
        service.seed(ExpenseRecord(key: "r1", kind: .report, fields: [("title", "Trip")]), owner: "ada")
        service.seed(
            ExpenseRecord(key: "e1", kind: .expense, parent: "r1", fields: [("title", "Taxi"), ("amount", "12.00")]),
            owner: "ada")
        service.seed(ExpenseRecord(key: "c1", kind: .chat, fields: [("title", "Bo")]), owner: "ada")
        try self.init(
            AppConfiguration(seed: seed), NetworkInterface(isUp: true), service: service,
            makeEngine: { try ExpenseEngine($0, restoring: $1) },
            execute: { service, http, body, _ in
                let response = service.respond(to: http, user: "ada", body: body)
                return (response.head, Array(response.body.utf8))
            })
        answerAll()
        if !isOnline { setInterface(false) }
    }

    mutating func act(_ act: ExpenseEngine.Act) throws {
        try engine.perform(act, at: now)
        take()
    }

    /// What is stored, decoded.
    var stored: ExpenseState { get throws { try ExpenseState(state) } }

    /// The operation id of the first request in flight.
    var operation: String? { inFlight.first?.fields.first { $0.name == "Idempotency-Key" }?.value }

    func record(_ key: String) -> ExpenseRecord? { service.records(of: "ada").first { $0.key == key } }
}
