import Scenario

extension WorldCase {
    /// Screens, calls and versions of the reference client.
    static let screens: [WorldCase] = [
        WorldCase(
            "screens-are-drawn-from-the-store", .pass,
            """
            network: { A: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 500ms, A: { open: n1 }, mark: opened }
              - { at: 700ms, A: { delete: n1 }, mark: deleted }
            expect:
              traffic: [{ request: any, from: A, seen: proxy, between: [400ms, 1500ms], count: 0 }]
              always:
                - { A: { dialog: none } }
                - { A: { screen: n1, since: opened, until: 1500ms } }
                - { A: { row: n1, opacity: 0.5, strike: true, since: deleted, until: 1500ms } }
                - { A: { row: n1, opacity: 1.0, strike: false, until: deleted } }
                - { A: { toast: no-connection, since: 400ms, until: 1500ms } }
              eventually:
                - { by: 30s, A: { screen: list, control: create, toast: none } }
                - { by: 30s, A: { row: n1, present: false } }
            """),
        WorldCase(
            "a-missing-note-has-no-screen", .fail, reason: "A does not show n1",
            """
            steps:
              - { at: 300ms, A: { delete: n1 } }
              - { at: 1200ms, A: { open: n1 } }
            expect: { finally: { server: { count: 0 } } }
            """),
        WorldCase(
            "a-parked-change-is-sent-again-once-and-discarded", .pass,
            """
            faults:
              - request: PUT n1
                nth: 1
                times: 2
                point: before-request
                then: { respond: { status: 422, headers: { Slowlane-Notes: "1", Content-Type: application/json }, body: "{}" } }
            steps:
              - { at: 300ms, A: { edit: n1, text: two } }
              - { at: 600ms, A: { open: n1 }, mark: opened }
              - { at: 800ms, A: { call: retry, with: { note: n1 } }, mark: repeated }
              - { at: 1200ms, A: { call: dismiss, with: { note: n1 } }, mark: dismissed }
            expect:
              traffic: [{ request: PUT n1, from: A, seen: proxy, count: 2 }]
              always:
                - { A: { row: n1, text: one, icon: none, since: dismissed } }
                - { A: { control: retry, since: opened, until: repeated } }
              finally: { server: { n1: { revision: 1, text: one } }, A: { control: { not: retry } }, agree: [A, server] }
            """),
        WorldCase(
            "only-a-parked-change-is-sent-again", .fail, reason: "no change of the record was rejected",
            """
            steps: [{ at: 300ms, A: { call: retry, with: { note: n1 } } }]
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "a-new-version-migrates-the-queue", .pass,
            """
            network: { A: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: two } }
              - { at: 300ms, A: { pin: n1 }, mark: pinned }
              - { at: 600ms, A: { upgrade: 2 }, mark: upgraded }
            expect:
              traffic: [{ request: PUT n1, from: A, responses: [200] }]
              always:
                - { A: { row: n1, icon: upload, since: pinned, until: upgraded } }
                - { A: { row: n1, icon: error, text: two, since: upgraded } }
              finally: { server: { n1: { revision: 2, text: two } }, A: { outbox: 0 } }
            """),
        WorldCase(
            "an-old-version-erases-nothing", .pass, hasParity: false,
            """
            network: { A: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: two }, mark: edited }
              - { at: 400ms, A: { upgrade: 2 } }
              - { at: 800ms, A: { upgrade: 1 } }
              - { at: 1200ms, A: { upgrade: 2 } }
            expect:
              always: [{ A: { row: n1, text: two, since: edited } }]
              finally: { server: { n1: { revision: 2, text: two } }, A: { outbox: 0 }, agree: [A, server] }
            """),
        WorldCase(
            "an-old-version-stays-down", .fail, reason: "version 1 does not open the store of version 2",
            """
            steps:
              - { at: 200ms, A: { upgrade: 2 } }
              - { at: 600ms, A: { upgrade: 1 } }
            expect: { finally: { server: { count: 1 } } }
            """),
    ]
}
