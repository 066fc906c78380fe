import Scenario

extension WorldCase {
    // MARK: Fault points

    /// The effects that end within seconds; `stall` waits for the client's timeout of 30 s.
    private static let effects = [
        "reset", "close", "{ delay: 700ms }", "{ throttle: 2000 }",
        "{ respond: { status: 503, headers: { Retry-After: \"1\" }, body: later } }",
    ]

    private static let points = [
        "before-request", "mid-request", "before-request-end", "before-response", "after-response-head", "mid-response",
        "after-response", "stored",
    ]

    /// A kill at every point: whatever the server has executed, the write is executed once, and its retry is the same
    /// request.
    static let kills: [WorldCase] =
        points.map { point in
            // The server responds to the part of a request with 400.
            let isRepeated = point != "before-request" && point != "stored"
            return WorldCase(
                "kill-\(point)", .pass,
                """
                faults: [{ request: PUT n1, nth: 1, point: \(point), then: kill }]
                steps:
                  - { at: 300ms, A: { edit: n1, text: two }, mark: edited }
                  - { at: 1200ms, A: { start: again } }
                expect:
                  always:
                    - { A: { row: n1, icon: { not: conflict } } }
                    - { A: { row: n1, text: two, since: edited } }
                  traffic:
                    - { request: PUT n1, from: A, count: \(isRepeated ? "2, same: [body, idempotency-key]" : "1") }
                  eventually: [{ by: 40s, A: { row: n1, icon: none } }]
                  finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
                """)
        } + [
            // The exchange of A continues when B is killed.
            WorldCase(
                "kill-another-device", .pass,
                """
                devices: { A: { user: ada }, B: { user: ada } }
                network: { A: { 0s: wifi }, B: { 0s: wifi } }
                faults: [{ request: PUT n1, to: A, point: before-response, then: { kill: B } }]
                steps:
                  - { at: 300ms, A: { edit: n1, text: two } }
                  - { at: 1200ms, B: { start: again } }
                expect:
                  traffic: [{ request: PUT n1, from: A, responses: [200] }]
                  eventually: [{ by: 40s, B: { row: n1, text: two } }]
                  finally: { agree: [A, B, server] }
                """),
            // Without a start, the device is killed until the links are restored.
            WorldCase(
                "a-killed-device-starts-when-the-links-are-restored", .pass,
                """
                faults: [{ request: PUT n1, point: before-request-end, then: { kill: A } }]
                steps: [{ at: 300ms, A: { edit: n1, text: two } }]
                expect: { finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] } }
                """),
        ]

    /// Faults at points that the seed draws.
    static let drawn: [WorldCase] = ["reset", "close", "{ delay: 300ms }"].map { effect in
        WorldCase(
            "any-\(effect.filter(\.isLetter))", .pass,
            """
            faults: [{ request: PUT n1, times: { min: 1, max: 2 }, point: any, then: \(effect) }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect:
              always: [{ A: { row: n1, icon: { not: conflict } } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """)
    }

    /// Every point with every effect: the fault fires, nothing is lost or repeated.
    static let faults: [WorldCase] = points.flatMap { point in
        effects.enumerated().compactMap { index, effect in
            let isPossible =
                switch point {
                case "before-request", "mid-request", "before-request-end", "before-response": true
                case "after-response": index < 3
                case "stored": index < 2
                default: index < 4
                }
            guard isPossible else { return nil }
            // A client that has not read the response by the time of the RST may not get it.
            let hasParity = index != 3 && !(point == "after-response" && index == 0)
            return WorldCase(
                "fault-\(point)-\(index)", .pass, hasParity: hasParity,
                """
                faults: [{ request: PUT n1, nth: 1, point: \(point), then: \(effect) }]
                steps: [{ at: 300ms, A: { edit: n1, text: two }, mark: edited }]
                expect:
                  always: [{ A: { row: n1, icon: { not: conflict } } }]
                  eventually: [{ after: edited, within: 40s, A: { row: n1, text: two, icon: none } }]
                  finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
                """)
        }
    }

    static let repetitions: [WorldCase] = [
        WorldCase(
            "a-fault-applies-twice", .pass,
            """
            faults: [{ request: PUT n1, nth: 1, times: 2, point: before-response, then: reset }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect:
              traffic: [{ request: PUT n1, from: A, responses: [lost, lost, 200], same: [body, idempotency-key] }]
              eventually: [{ by: 60s, A: { row: n1, text: two, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """),
        WorldCase(
            "a-fault-with-a-probability", .pass,
            """
            faults: [{ request: PUT n1, probability: 100%, times: { min: 1, max: 1 }, point: before-request-end, then: reset }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] } }
            """),
        // The first responses are 304 and have no body; the fault applies to the first one that has.
        WorldCase(
            "a-fault-whose-point-is-not-reached", .pass,
            """
            writers: { W: { user: ada } }
            faults: [{ request: GET any, nth: 1, point: mid-response, then: reset }]
            steps:
              - { at: 400ms, A: { sync: now } }
              - { at: 800ms, W: { edit: n1, text: two } }
              - { at: 1200ms, A: { sync: now } }
            expect:
              eventually: [{ by: 40s, A: { row: n1, text: two, icon: none } }]
              finally: { agree: [A, server] }
            """),
        WorldCase(
            "a-fault-that-fires-too-rarely", .inconclusive, reason: "the fault fired 1 of 2 times",
            """
            faults: [{ request: PUT n1, times: { min: 2, max: 2 }, point: after-response, then: close }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { finally: { server: { n1: { revision: 2, text: two } } } }
            """),
    ]
}
