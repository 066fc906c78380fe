import Scenario

extension WorldCase {
    /// Thresholds, invariants, and acts of devices other than changes.
    static let acts: [WorldCase] = [
        WorldCase(
            "a-legacy-client-keeps-deleted-notes", .fail, reason: "A shows n1 at the end, unlike the server",
            """
            devices: { A: { user: ada, client: legacy }, B: { user: ada } }
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            steps:
              - { at: 300ms, W: { delete: n1 } }
              - { at: 600ms, A: { sync: now } }
              - { at: 600ms, B: { sync: now } }
            expect:
              eventually: [{ by: 5s, B: { row: n1, present: false } }]
              finally: { server: { count: 0 } }
            """),
        WorldCase(
            "times-and-attempts", .pass,
            """
            network: { A: { 0s: wifi, 500ms: { link: 100-loss, signalled: true }, 3s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: two } }
              - { at: 1s, A: { edit: n1, text: three } }
            expect:
              eventually: [{ by: 30s, A: { outbox: 0 } }]
              thresholds:
                save-to-screen: { max: 500ms }
                save-to-synced: { p50: 1s, max: 20s }
                attempts-per-write: { max: 1 }
            """),
        WorldCase(
            "a-change-that-takes-too-long", .fail, reason: "max is ",
            """
            network: { A: { 0s: 100-loss, 2s: wifi } }
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect:
              eventually: [{ by: 30s, A: { outbox: 0 } }]
              thresholds: { save-to-synced: { max: 1s } }
            """),
        WorldCase(
            "a-threshold-without-changes", .inconclusive, reason: "there is no sample",
            """
            steps: [{ at: 300ms, A: { sync: now } }]
            expect: { thresholds: { save-to-synced: { max: 1s } } }
            """),
        WorldCase(
            "invariants-are-added-and-dropped", .pass,
            """
            writers: { W: { user: ada } }
            steps:
              - { at: 300ms, A: { edit: n1, text: two } }
              - { at: 900ms, W: { delete: n1 } }
            expect: { finally: { server: { count: 0 }, agree: [A, server] } }
            invariants: { add: [deletes-stick, order], drop: [convergence] }
            """),
        WorldCase(
            "a-deletion-is-taken-back", .pass, hasParity: false,
            """
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 600ms, A: { delete: n1 } }
              - { at: 900ms, W: { edit: n1, text: three } }
              - { when: { A: { row: n1, icon: conflict } }, within: 30s, A: { keep: n1 }, mark: kept }
            expect:
              traffic: [{ request: DELETE n1, from: A, between: [kept, 60s], count: 0 }]
              finally: { server: { n1: { revision: 2, text: three } }, A: { row: n1, icon: none }, agree: [A, server] }
            """),
        WorldCase(
            "only-a-deletion-in-conflict-is-taken-back", .fail, reason: "the deletion is not in conflict",
            """
            steps: [{ at: 600ms, A: { keep: n1 } }]
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "a-shifted-wall-clock", .pass,
            """
            steps:
              - { at: 300ms, A: { clock: { wall: +6h } } }
              - { at: 600ms, A: { edit: n1, text: two } }
              - { at: 900ms, A: { clock: { wall: -12h } } }
              - { at: 1200ms, A: { edit: n1, text: three }, mark: edited }
            expect:
              traffic: [{ request: PUT n1, from: A, responses: [200, 200] }]
              eventually: [{ after: edited, within: 5s, A: { row: n1, text: three, icon: none } }]
              finally: { server: { n1: { revision: 3, text: three } }, agree: [A, server] }
            """),
        WorldCase(
            "a-device-sends-requests-as-given", .pass,
            """
            steps:
              - { at: 300ms, A: { send: { method: GET, path: "/api/notes/{n1}/" } } }
              - { at: 600ms, A: { send: { method: PUT, path: "/api/notes/{n1}/", body: "text=x" } } }
              - { at: 900ms, A: { send: { method: DELETE, path: "/api/notes/{n1}/", headers: { Authorization: none } } } }
              - { at: 1200ms, A: { edit: n1, text: two }, mark: edited }
            expect:
              traffic:
                - { request: GET n1, from: A, between: [0s, 500ms], responses: [200] }
                - { request: PUT n1, from: A, responses: [4xx, 200] }
                - { request: DELETE n1, from: A, responses: [403] }
              eventually: [{ after: edited, within: 5s, A: { row: n1, text: two, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } } }
            """),
        WorldCase(
            "a-request-is-sent-over-the-link", .pass,
            """
            network: { A: { 0s: wifi, 500ms: { link: offline, signalled: false }, 1500ms: wifi } }
            faults: [{ request: GET n1, nth: 1, point: before-response, then: reset }]
            steps:
              - { at: 200ms, A: { send: { method: GET, path: "/api/notes/{n1}/" } } }
              - { at: 900ms, A: { send: { method: GET, path: "/api/notes/{n1}/" } }, mark: refused }
              - { at: 2s, A: { send: { method: GET, path: "/api/notes/{n1}/" } } }
            expect:
              traffic: [{ request: GET n1, from: A, responses: [lost, 200] }]
              sometimes: [{ fault: { point: before-response } }]
            """),
        WorldCase(
            "a-kill-ends-a-request", .inconclusive, reason: "A was killed before the action had taken effect",
            """
            faults: [{ request: GET n1, nth: 1, point: before-response, then: stall }]
            steps:
              - { at: 200ms, A: { send: { method: GET, path: "/api/notes/{n1}/" } } }
              - { at: 700ms, A: { kill: now } }
              - { at: 900ms, A: { start: again } }
            expect:
              traffic: [{ request: GET n1, from: A, responses: [lost] }]
              finally: { agree: [A, server] }
            """),
    ]
}
