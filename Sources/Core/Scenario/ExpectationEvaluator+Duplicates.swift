extension ExpectationEvaluator {
    /// A write of an actor. Requests with the same `Idempotency-Key`, or without a key with the same body, are attempts of
    /// the same write.
    struct Write: Hashable {
        let actor: String
        let method: String
        let row: String?
        let key: String?
        /// The digest of the body; `nil` if there is a key.
        let body: UInt64?

        init(_ exchange: History.Exchange) {
            actor = exchange.actor
            method = exchange.method
            row = exchange.row
            key = exchange.key
            body = exchange.key == nil ? exchange.bodyDigest : nil
        }
    }

    static let writeMethods: Set<String> = ["POST", "PUT", "PATCH", "DELETE"]

    /// Returns the numbers of the requests with which the server has executed a write of the scenario once more, in one
    /// of these ways:
    ///
    /// - It has executed an earlier attempt of the same write: both responses are successful (2xx). The second is a
    ///   repetition of the first result, and no execution, if it names the same revision; that of a DELETE always is.
    /// - A device has created a note that no action has created.
    ///
    /// The server is the built-in one; ``WriteEffects`` has those of another server.
    static func duplicates(_ exchanges: [History.Exchange], _ scenario: Scenario) -> Set<Int> {
        var executed: [Write: Set<Int?>] = [:]
        var found: Set<Int> = []
        for exchange in exchanges.sorted(by: { $0.arrivedIndex < $1.arrivedIndex }) {
            guard isAttempt(exchange, scenario) else { continue }
            let write = Write(exchange)
            if let revisions = executed[write] {
                let isResultRepeated =
                    exchange.method == "DELETE" || (exchange.revision != nil && revisions.contains(exchange.revision))
                if !isResultRepeated { found.insert(exchange.id) }
            } else if isUnnamedCreation(exchange, scenario) {
                found.insert(exchange.id)
            }
            executed[write, default: []].insert(exchange.revision)
        }
        return found
    }

    /// Returns whether the server has executed a request that may be an attempt of a write.
    static func isAttempt(_ exchange: History.Exchange, _ scenario: Scenario) -> Bool {
        guard writeMethods.contains(exchange.method), RunFacts.isExecuted(exchange) else { return false }
        // A fault that responds does so in place of the server.
        if let fault = exchange.fault, scenario.faults.indices.contains(fault.index),
            scenario.faults[fault.index].action.response != nil
        {
            return false
        }
        if exchange.key != nil { return true }
        // Two requests without key and body, such as pins, need not be the same write.
        if exchange.bytesUp == 0 && exchange.method != "DELETE" { return false }
        // A request for another access token: a creation of a device has a key.
        return exchange.row != nil || !isCreation(of: exchange.actor, scenario)
    }

    /// Returns whether a request creates a note that no action has created.
    static func isUnnamedCreation(_ exchange: History.Exchange, _ scenario: Scenario) -> Bool {
        exchange.method == "POST" && exchange.row == nil && isCreation(of: exchange.actor, scenario)
    }

    /// Returns whether a POST of an actor for a note without a name creates a note that no action has created: those of a
    /// device do, because its actions name the notes that they create, unless it sends requests of its own, its client is
    /// a program, or it is an app, whose forms create records without names.
    private static func isCreation(of actor: String, _ scenario: Scenario) -> Bool {
        scenario.devices.contains { $0.name == actor && !$0.client.isProgram && $0.client.app == nil }
            && !scenario.steps.contains { step in
                if case (actor, .send)? = step.action { true } else { false }
            }
    }
}
