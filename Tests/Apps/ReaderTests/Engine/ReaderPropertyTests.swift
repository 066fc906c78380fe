import Client
import Determinism
import Reader
import TestSupport
import Testing

/// Random acts, failures and kills.
@Suite struct ReaderPropertyTests {
    private static let password = "correct horse"

    /// Performs a random act. Returns whether it was the submission of feedback.
    private static func act(_ client: inout ReaderClient, _ random: inout RandomStream) throws -> Bool {
        let article = random.bool(probability: 0.5) ? "a1" : "a2"
        switch random.integer(below: 14) {
        case 0: try client.open(nil)
        case 1: try client.open(article)
        case 2: try client.open(random.bool(probability: 0.5) ? "p1" : "p2")
        case 3, 4: try client.call("like", article)
        case 5: try client.call("unlike", article)
        case 6: try client.call("retry")
        case 7: try client.call("later")
        case 8: try client.call("cancel")
        case 9: try client.call("close")
        case 10: if client.screen.name == "list" { try client.call("recommend") }
        case 11:
            try client.call("feedback")
            if client.screen.name == "feedback" {
                try client.call("fill", nil, ["message": "More soup"])
                try client.call("submit")
                return true
            }
        case 12:
            try client.call("sign-up")
            if client.screen.name == "sign-up", client.screen.dialog == nil {
                try client.call("fill", nil, ["name": "ada", "password": Self.password])
                try client.call("submit")
            }
        default: try client.perform(.sync)
        }
        return false
    }

    private static func answer(_ client: inout ReaderClient, _ random: inout RandomStream) {
        switch random.integer(below: 8) {
        case 0: client.answer(.lostRequest)
        case 1: client.answer(.lostResponse)
        case 2: client.answer(.timeout)
        case 3: client.answer(.status(500))
        // The service responds so to no write.
        case 4 where client.inFlight.first?.method == "GET": client.answer(.body(#"{"key":5}"#))
        default: client.answer()
        }
    }

    @Test(arguments: randomSeeds(25, soak: 1200)) func theRulesHoldInRandomHistories(_ seed: UInt64) throws {
        var random = RandomStream(seed: seed, "test")
        var client = try ReaderClient(seed: seed)
        var submissions = 0
        for _ in 0..<120 {
            switch random.integer(below: 10) {
            case 0...3: if try Self.act(&client, &random) { submissions += 1 }
            case 4...6: Self.answer(&client, &random)
            case 7: client.advance(by: .milliseconds(random.integer(below: 20_000)))
            case 8: client.setInterface(random.bool(probability: 0.7))
            default:
                let (rows, outbox) = (client.engine.view.rows, client.engine.view.outbox)
                let isUp = random.bool(probability: 0.7)
                try client.restart(isOnline: isUp)
                // Without a connection, what was in flight has failed.
                if isUp {
                    #expect(client.engine.view.rows == rows && client.engine.view.outbox == outbox, "seed \(seed)")
                }
            }
            #expect(!client.stored.contains(Self.password), "seed \(seed)")
            let screen = client.screen
            for name in ["message", "dialog-message", "toast-message"] {
                #expect(screen.fields[name]?.contains(where: \.isNumber) != true, "seed \(seed)")
            }
            #expect(!screen.fields.sorted.contains { $0.value == Self.password }, "seed \(seed)")
            #expect(
                client.pastDeadlines == 0 && client.engine.nextDeadline.map { $0 > client.now } ?? true, "seed \(seed)")
            // A user can always go on: the only screen without controls is that of a form in flight.
            #expect(!screen.controls.isEmpty || screen.dialog == "sending", "seed \(seed)")
        }
        try client.settleReads()
        #expect(client.engine.isSettled, "seed \(seed)")
        for article in ["a1", "a2"] {
            #expect((client.text(article) == "liked") == client.isLikedOnServer(article), "seed \(seed)")
        }
        // No form is executed twice: each submission has its own operation.
        #expect(client.count(.feedback) <= submissions && client.count(.account) <= 1, "seed \(seed)")
        #expect(client.engine.view.outbox == 0, "seed \(seed)")
    }

    @Test func noMessageHasANumber() {
        for problem in ReaderProblem.allCases {
            let texts = [problem.message(about: "the page"), problem.rawValue]
            #expect(texts.allSatisfy { text in !text.contains { $0.isNumber } })
        }
    }
}
