import ConfigFiles
import Determinism
import Scenario
import TestSupport
import Testing
import Worlds

/// A small scenario whose verdict is the same in both worlds.
struct WorldCase: Sendable, Identifiable, CustomTestStringConvertible {
    let name: String
    let text: String
    let result: Verdict.Result
    /// A part of the reason of a check that does not pass.
    var reason: String?
    /// Whether requests and times may be compared between the worlds.
    var hasParity = true

    var id: String { name }

    var testDescription: String { name }

    init(_ name: String, _ result: Verdict.Result, reason: String? = nil, hasParity: Bool = true, _ text: String) {
        self.name = name
        self.text = text
        self.result = result
        self.reason = reason
        self.hasParity = hasParity
    }

    /// The scenario. Unless its text has them, the server has one note, and A is on Wi-Fi.
    func scenario() throws -> Scenario {
        var text = "scenario: 1\nname: \(name)\n"
        func has(_ key: String) -> Bool { ("\n" + self.text).contains("\n\(key):") }
        if !has("limit") { text += "limit: 90s\n" }
        if !has("server") { text += "server: { notes: { n1: { title: Milk, text: one } } }\n" }
        if !has("devices") { text += "devices: { A: { user: ada } }\n" }
        if !has("network") { text += "network: { A: { 0s: wifi } }\n" }
        return try ScenarioFile(parsing: text + self.text, file: "\(name).yaml").scenario
    }

    /// The checks of a verdict that do not pass.
    static func reasons(_ verdict: Verdict) -> String {
        verdict.checks.compactMap { check in
            switch check.outcome {
            case .pass: nil
            case .fail(let reason): "\(check.description): FAIL \(reason)"
            case .inconclusive(let reason, _): "\(check.description): ? \(reason)"
            }
        }.joined(separator: "\n")
    }

    /// Records an issue if a verdict is not the expected one.
    func expect(_ verdict: Verdict, sourceLocation: Testing.SourceLocation = #_sourceLocation) {
        let reasons = Self.reasons(verdict)
        #expect(verdict.result == result, "\(reasons)", sourceLocation: sourceLocation)
        if let reason { #expect(reasons.contains(reason), "\(reasons)", sourceLocation: sourceLocation) }
    }

    // MARK: Phases

    static let phases: [WorldCase] = [
        // Requests of the setup do not count, and no fault applies to them: the first one that a fault can match is
        // that of the start.
        WorldCase(
            "setup-has-no-faults", .pass,
            """
            faults: [{ request: GET any, nth: 1, point: before-response, then: reset }]
            steps: [{ at: 500ms, A: { edit: n1, text: two } }]
            expect:
              always: [{ A: { row: n1, present: true } }]
              traffic: [{ request: GET n1, from: A, count: 0 }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """),
        WorldCase(
            "setup-requests-do-not-count", .pass,
            """
            network: { A: { 0s: 100-loss, 1s: wifi } }
            expect:
              traffic:
                - { request: any, from: A, seen: proxy, between: [0s, 1s], count: 0 }
                - { request: GET any, from: A, count: { max: 6 } }
              eventually: [{ by: 20s, A: { row: n1, text: one } }]
            """),
        WorldCase(
            "an-empty-device-has-fetched-nothing", .pass,
            """
            devices: { A: { user: ada, starts: empty } }
            network: { A: { 0s: 100-loss, 1s: wifi } }
            expect:
              always: [{ A: { row: n1, present: false, until: 1s } }]
              eventually: [{ by: 20s, A: { row: n1, text: one } }]
              finally: { agree: [A, server] }
            """),
        WorldCase(
            "a-device-starts-in-the-state-of-its-network", .pass,
            """
            network: { A: { 0s: 100-loss, 1500ms: wifi } }
            steps: [{ at: 200ms, A: { edit: n1, text: two } }]
            expect:
              traffic: [{ request: any, from: A, seen: proxy, between: [0s, 1500ms], count: 0 }]
              always: [{ A: { row: n1, icon: upload, since: 300ms, until: 1500ms } }]
              eventually: [{ by: 20s, A: { row: n1, text: two, icon: none } }]
            """),
        // The script ends with the step; the request that follows is completed on the link of the file.
        WorldCase(
            "requests-finish-on-the-link-of-the-file", .pass,
            """
            network: { A: { 0s: edge } }
            steps: [{ at: 2s, A: { edit: n1, text: two } }]
            expect: { finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] } }
            """),
        WorldCase(
            "restore-at-a-time-of-the-file", .pass,
            """
            restore: 3s
            network: { A: { 0s: wifi, 1s: { link: 100-loss, signalled: false } } }
            steps: [{ at: 1500ms, A: { edit: n1, text: two } }]
            expect:
              always: [{ A: { row: n1, icon: upload, since: 2s, until: 3s } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
    ]

    // MARK: Steps and windows

    static let steps: [WorldCase] = [
        WorldCase(
            "a-state-that-never-comes", .inconclusive, reason: "did not reach",
            """
            steps: [{ when: { A: { row: n1, icon: conflict } }, within: 1s, mark: shown }]
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "a-mark-that-never-comes", .inconclusive, reason: "mark 'shown' was never set",
            """
            steps:
              - { when: { A: { row: n1, icon: conflict } }, within: 1s, mark: shown }
              - { after: shown, A: { edit: n1, text: two } }
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "a-failure-is-worse-than-a-missed-step", .fail, reason: "revision is 1",
            """
            steps: [{ when: { A: { row: n1, icon: conflict } }, within: 1s, mark: shown }]
            expect: { finally: { server: { n1: { revision: 2 } } } }
            """),
        WorldCase(
            "an-act-on-a-killed-device", .fail, reason: "an-act-on-a-killed-device.yaml:",
            """
            steps:
              - { when: { A: { row: n1, icon: upload } }, within: 5s, A: { kill: now } }
              - { at: 1s, A: { edit: n1, text: two } }
              - { at: 2s, A: { edit: n1, text: three } }
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "an-act-on-a-missing-note", .fail, reason: "an-act-on-a-missing-note.yaml:",
            """
            steps:
              - { at: 100ms, A: { delete: n1 } }
              - { at: 200ms, A: { edit: n1, text: two } }
            expect: { finally: { server: { count: 0 } } }
            """),
        // At the mark the edit is visible, so nothing before it counts.
        WorldCase(
            "windows-begin-when-the-act-has-taken-effect", .pass,
            """
            network: { A: { 0s: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 300ms, A: { edit: n1, text: two }, mark: edited }
              - { at: 800ms, A: { edit: n1, text: three }, mark: again }
            expect:
              always:
                - { A: { row: n1, text: two, since: edited, until: again } }
                - { A: { row: n1, text: three, since: again } }
              eventually: [{ after: again, within: 20s, A: { outbox: 0 } }]
            """),
        WorldCase(
            "a-state-before-the-mark-does-not-count", .fail, reason: "outbox is '1'",
            """
            network: { A: { 0s: 100-loss, 3s: wifi } }
            steps: [{ at: 300ms, A: { edit: n1, text: two }, mark: edited }]
            expect: { eventually: [{ after: edited, within: 500ms, A: { outbox: 0 } }] }
            """),
        WorldCase(
            "a-note-that-vanishes-fails", .fail, reason: "n1",
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, W: { delete: n1 } }
              - { at: 600ms, A: { sync: now } }
            expect:
              always: [{ A: { row: n1, text: one } }]
              eventually: [{ by: 20s, A: { row: n1, present: false } }]
            """),
        WorldCase(
            "presence-is-a-state", .pass,
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, W: { delete: n1 }, mark: deleted }
              - { after: deleted, delay: 300ms, A: { sync: now } }
            expect:
              always: [{ A: { row: n1, present: true, until: deleted } }]
              eventually: [{ by: 20s, A: { row: n1, present: false } }]
            """),
        WorldCase(
            "a-window-does-not-prolong-a-run", .pass,
            """
            limit: 1h
            steps: [{ at: 200ms, A: { edit: n1, text: two } }]
            expect:
              traffic: [{ request: PUT n1, from: A, between: [100ms, 50m], count: 1 }]
              finally: { server: { n1: { revision: 2 } } }
            """),
        WorldCase(
            "the-limit-ends-a-run", .fail, reason: "exceeded the 2 s limit",
            """
            limit: 2s
            network: { A: { 0s: 100-loss } }
            steps: [{ at: 200ms, A: { edit: n1, text: two } }]
            expect: { eventually: [{ by: 60s, A: { row: n1, text: two, icon: none } }] }
            """),
        WorldCase(
            "a-kill-keeps-what-is-committed", .pass,
            """
            network: { A: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: two } }
              - { at: 600ms, A: { kill: now } }
              - { at: 1s, A: { start: again } }
            expect:
              always: [{ A: { row: n1, text: two, since: 400ms } }]
              eventually: [{ by: 30s, A: { row: n1, text: two, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
        // The request has been sent and its response is on the way when the client is killed.
        WorldCase(
            "a-kill-in-mid-request", .pass,
            """
            network: { A: { 0s: edge } }
            steps:
              - { at: 4s, A: { edit: n1, text: two } }
              - { at: 4300ms, A: { kill: now } }
              - { at: 5s, A: { start: again } }
            expect:
              traffic: [{ request: PUT n1, from: A, count: 2, same: [body, idempotency-key] }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
    ]

    // MARK: Faults and names

    static let traffic: [WorldCase] = [
        // One of both devices loses its response, and the other does not.
        WorldCase(
            "a-fault-counts-over-all-devices", .pass,
            """
            devices: { A: { user: ada }, B: { user: bo } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            faults: [{ request: POST any, nth: 2, point: before-response, then: reset }]
            steps:
              - { at: 300ms, A: { create: n2, text: two } }
              - { at: 900ms, B: { create: n3, text: three } }
            expect:
              traffic:
                - { request: POST n2, from: A, responses: [201] }
                - { request: POST n3, from: B, responses: [lost, 2xx] }
              finally: { A: { outbox: 0 }, B: { outbox: 0 } }
            """),
        WorldCase(
            "a-fault-of-one-device", .pass,
            """
            devices: { A: { user: ada }, B: { user: bo } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            faults: [{ request: POST any, to: B, nth: 1, point: before-response, then: reset }]
            steps:
              - { at: 300ms, A: { create: n2, text: two } }
              - { at: 900ms, B: { create: n3, text: three } }
            expect:
              traffic:
                - { request: POST n2, from: A, responses: [201] }
                - { request: POST n3, from: B, responses: [lost, 2xx] }
            """),
        WorldCase(
            "a-fault-that-never-fires", .inconclusive, reason: "the fault never fired",
            """
            faults: [{ request: PUT n1, nth: 2, point: before-response, then: reset }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { finally: { server: { n1: { revision: 2 } } } }
            """),
        WorldCase(
            "a-fault-that-may-not-fire", .pass,
            """
            faults: [{ request: PUT n1, nth: 2, point: before-response, then: reset, times: { min: 0 } }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { finally: { server: { n1: { revision: 2 } } } }
            """),
        WorldCase(
            "a-portal-is-not-the-server", .pass,
            """
            network: { A: { 0s: portal, 2s: wifi } }
            steps: [{ at: 300ms, A: { edit: n1, text: two }, mark: edited }]
            expect:
              traffic:
                - { request: any, from: A, between: [0s, 2s], count: 0 }
                - { request: any, from: A, seen: proxy, between: [0s, 2s], count: { min: 1 } }
              eventually: [{ after: edited, within: 10s, A: { row: n1, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """),
        WorldCase(
            "every-request-has-the-name-of-its-note", .pass,
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, W: { create: n2, text: two } }
              - { at: 600ms, A: { sync: now } }
              - { at: 1200ms, A: { edit: n2, text: three } }
            expect:
              traffic:
                - { request: POST n2, from: W, responses: [201] }
                - { request: GET n2, from: A, count: { min: 1 } }
                - { request: PUT n2, from: A, responses: [200] }
              finally: { server: { n2: { revision: 2, text: three } } }
            """),
        // The name of the note is in the first bytes of the body.
        WorldCase(
            "a-large-note-has-its-name", .pass,
            """
            steps: [{ at: 300ms, A: { create: n2, text: "\(String(repeating: "large ", count: 15_000))" } }]
            expect:
              traffic: [{ request: POST n2, from: A, responses: [201] }]
              finally: { server: { count: 2 }, agree: [A, server] }
            """),
        // Notes that a deletion on the server has removed get a new identifier when they are restored.
        WorldCase(
            "a-restored-note-has-its-name", .pass, hasParity: false,
            """
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 600ms, A: { edit: n1, text: two } }
              - { at: 900ms, W: { delete: n1 } }
              - { when: { A: { row: n1, icon: conflict } }, within: 30s, A: { resolve: n1, text: three }, mark: resolved }
            expect:
              traffic: [{ request: POST n1, from: A, between: [resolved, 90s], responses: [201] }]
              finally: { server: { count: 1, n1: { revision: 1, text: three } }, agree: [A, server] }
            """),
        WorldCase(
            "writers-read-before-they-write", .pass,
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, A: { edit: n1, text: two } }
              - { at: 1500ms, W: { edit: n1, text: three } }
              - { at: 2s, W: { create: n2, text: four } }
              - { at: 2300ms, W: { delete: n2 } }
            expect:
              traffic:
                - { request: PUT n1, from: W, responses: [200] }
                - { request: GET n1, from: W, count: 1 }
                - { request: DELETE n2, from: W, responses: [2xx] }
              finally: { server: { count: 1, n1: { revision: 3, title: Milk, text: three } }, agree: [A, server] }
            """),
        WorldCase(
            "writers-change-notes-on-an-old-base", .pass,
            """
            writers: { W: { user: ada }, V: { user: ada } }
            steps:
              - { at: 300ms, W: { edit: n1, text: two } }
              - { at: 800ms, V: { edit: n1, text: three } }
              - { at: 1300ms, W: { edit: n1, text: four, stale: true } }
              - { at: 1800ms, W: { delete: n1, stale: true } }
            expect:
              traffic:
                - { request: PUT n1, from: W, responses: [200, 409] }
                - { request: DELETE n1, from: W, responses: [409] }
              finally: { server: { n1: { revision: 3, text: three } }, agree: [A, server] }
            """),
        WorldCase(
            "writers-send-requests-as-given", .pass,
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, W: { raw: { method: PUT, path: "/api/notes/{n1}/", body: "text=x" } } }
              - { at: 600ms, W: { raw: { method: GET, path: "/api/notes/{n1}/" } } }
              - { at: 900ms, W: { raw: { method: GET, path: "/api/notes/{n1}/", headers: { Authorization: none } } } }
            expect:
              traffic:
                - { request: PUT n1, from: W, responses: [4xx] }
                - { request: GET n1, from: W, responses: [200, 403] }
              finally: { server: { n1: { revision: 1, text: one } } }
            """),
        WorldCase(
            "a-writer-does-not-choose-the-framing", .fail, reason: "'Content-Length' cannot be given",
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, W: { raw: { method: PUT, path: "/", headers: { Content-Length: 7 } } } }
            expect:
              finally: { server: { count: 1 } }
            """),
        WorldCase(
            "a-choice-ends-a-conflict", .pass, hasParity: false,
            """
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 600ms, A: { edit: n1, text: two } }
              - { at: 900ms, W: { edit: n1, text: three } }
              - { when: { A: { row: n1, icon: conflict } }, within: 30s, A: { resolve: n1, with: theirs } }
            expect:
              finally: { server: { n1: { revision: 2, text: three } }, A: { row: n1, icon: none }, agree: [A, server] }
            """),
    ]

    // MARK: Budgets

    /// Each kind of outage, and a flap: the attempts are within the budget, and there are some where the client cannot
    /// know better.
    static let budgets: [WorldCase] = [
        ("{ link: offline, signalled: false }", 1), ("offline", 0), ("dns", 1), ("portal", 1), ("uplink-loss", 1),
        ("downlink-loss", 1),
        ("{ link: 100-loss, signalled: false }", 1), ("100-loss", 0),
        ("{ flap: [{ offline: 700ms }, { wifi: 300ms }], signalled: false }", 1),
    ].enumerated().map { index, kind in
        WorldCase(
            "budget-\(index)", .pass, hasParity: false,
            """
            network: { A: { 0s: wifi, 500ms: \(kind.0), 4s: wifi } }
            steps: [{ at: 1s, A: { edit: n1, text: two } }]
            expect:
              traffic:
                - { request: any, from: A, seen: proxy, between: [500ms, 4s], count: { min: \(kind.1), max: budget } }
              eventually: [{ by: 60s, A: { row: n1, text: two, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """)
    }

    static let all =
        phases + steps + traffic + budgets + networks + faults + kills + drawn + repetitions + requests + acts
        + screens + patterns + networkFirst + fieldApp + devicesAndServer

    /// The cases that `SLOWLANE_CASE` names; all without it.
    static let selected: [WorldCase] = {
        guard let names = TestSettings.cases else { return all }
        return names.map { name in
            guard let found = all.first(where: { $0.name == name }) else {
                fatalError(
                    "SLOWLANE_CASE: there is no case '\(name)'; Tests/LiveWorldTests/WorldCase*.swift have the names")
            }
            return found
        }
    }()
}
