import Scenario

extension WorldCase {
    /// Records of the expense app, and a device X with it.
    private static let app = """
        server:
          records:
            r1: { kind: report, title: Trip }
            e1: { kind: expense, in: r1, title: Taxi, text: "12.00", approved: true }
            c1: { kind: chat, title: Bo }
        devices: { X: { user: ada, client: expense } }
        """

    /// Offline patterns of the expense app.
    static let patterns: [WorldCase] = [
        WorldCase(
            "a-pin-is-kept-across-a-kill", .pass,
            """
            \(app)
            network: { X: { 0s: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 300ms, X: { pin: c1 }, mark: pinned }
              - { at: 600ms, X: { kill: now } }
              - { at: 900ms, X: { start: now } }
            expect:
              traffic:
                - { request: any, from: X, seen: proxy, between: [0s, 1500ms], count: 0 }
                - { request: PATCH c1, from: X, responses: [200] }
              always:
                - { X: { row: c1, text: pinned, opacity: 1, icon: none, error: none, since: pinned } }
              finally: { server: { c1: { revision: 2, text: pinned } }, agree: [X, server] }
            """),
        WorldCase(
            "a-rejected-expense-has-a-red-path", .pass,
            """
            \(app)
            network: { X: { 0s: 100-loss, 1s: wifi } }
            steps:
              - { at: 100ms, X: { open: r1 } }
              - { at: 300ms, X: { create: e2, title: Hotel, text: "800" }, mark: added }
              - { when: { X: { row: e2, icon: error } }, within: 20s, mark: rejected }
              - { after: rejected, delay: 500ms, X: { call: dismiss, with: { note: e2 } }, mark: dismissed }
            expect:
              traffic: [{ request: PUT e2, from: X, responses: [422] }]
              always:
                - { X: { row: e2, opacity: 0.5, pending: true, since: added, until: 1s } }
                - { X: { row: e2, opacity: 0.5, error: "amount: exceeds the limit of 500.00", since: rejected, until: dismissed } }
                - { X: { row: r1, marker: red, since: rejected, until: dismissed } }
                - { X: { row: e1, marker: none } }
                - { X: { marker: none, since: dismissed } }
              finally: { server: { count: 3 }, X: { row: e2, present: false }, agree: [X, server] }
            invariants: { drop: [no-lost-write] }
            """),
        WorldCase(
            "a-rejected-deletion-comes-back", .pass,
            """
            \(app)
            network: { X: { 0s: wifi } }
            faults: [{ request: DELETE e1, point: before-response, then: { delay: 1s } }]
            steps: [{ at: 500ms, X: { delete: e1 }, mark: deleted }]
            expect:
              traffic: [{ request: DELETE e1, from: X, responses: [422] }]
              always: [{ X: { row: e1, present: false, since: deleted, until: 1400ms } }]
              eventually:
                - { after: deleted, within: 5s, X: { row: e1, opacity: 1, strike: false, error: "approved, cannot be deleted" } }
              finally: { server: { count: 3 } }
            invariants: { drop: [no-lost-write] }
            """),
        WorldCase(
            "a-form-is-not-sent-by-the-end-of-an-outage", .pass,
            """
            \(app)
            network: { X: { 0s: 100-loss, 1s: wifi } }
            steps:
              - { at: 100ms, X: { call: transfer }, mark: opened }
              - { at: 200ms, X: { call: fill, with: { to: Bo, amount: "20" } } }
              - { at: 300ms, X: { call: submit } }
              - { at: 2500ms, X: { call: submit }, mark: submitted }
            expect:
              traffic:
                - { request: POST any, from: X, seen: proxy, between: [0s, 2500ms], count: 0 }
                - { request: POST any, from: X, responses: [201] }
              always: [{ X: { error: offline, control: { not: submit }, since: opened, until: 1s } }]
              eventually: [{ after: submitted, within: 5s, X: { screen: list, toast: sent } }]
              finally: { server: { count: 4 }, agree: [X, server] }
            """),
        WorldCase(
            "a-lost-response-to-a-form-is-asked-for", .pass,
            """
            \(app)
            network: { X: { 0s: wifi } }
            faults: [{ request: POST any, point: before-response, then: reset }]
            steps:
              - { at: 300ms, X: { call: transfer } }
              - { at: 400ms, X: { call: fill, with: { to: Bo, amount: "20" } } }
              - { at: 500ms, X: { call: submit }, mark: submitted }
            expect:
              traffic: [{ request: POST any, from: X, responses: [lost] }]
              sometimes: [{ X: { dialog: unknown-result } }]
              eventually: [{ after: submitted, within: 10s, X: { screen: list, dialog: none } }]
              finally: { server: { count: 4 }, agree: [X, server] }
            """),
        WorldCase(
            "a-page-is-not-stale", .pass,
            """
            \(app)
            network: { X: { 0s: wifi, 1s: 100-loss, 2500ms: wifi } }
            steps: [{ at: 300ms, X: { call: balance }, mark: opened }]
            expect:
              traffic: [{ request: any, from: X, seen: proxy, between: [1s, 2500ms], count: 0 }]
              always: [{ X: { error: offline, field: { not: balance=100.00 }, since: 1200ms, until: 2500ms } }]
              eventually: [{ after: opened, within: 700ms, X: { field: balance=100.00 } }]
              finally: { X: { screen: balance, field: balance=100.00, error: none } }
            """),
        WorldCase(
            "an-act-on-a-closed-form", .fail, reason: "no form is open",
            """
            \(app)
            network: { X: { 0s: wifi } }
            steps: [{ at: 300ms, X: { call: submit } }]
            expect: { finally: { server: { count: 3 } } }
            """),
    ]
}
