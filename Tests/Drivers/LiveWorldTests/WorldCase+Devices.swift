import Scenario

extension WorldCase {
    /// Records of the expense app, and a device X with it.
    private static let expense = """
        server:
          records:
            r1: { kind: report, title: Trip }
            e1: { kind: expense, in: r1, title: Taxi, text: "12.00" }
        devices: { X: { user: ada, client: expense } }
        writers: { W: { user: ada } }
        """

    /// Accounts, disks and clocks of devices, backups of the server, and changes by writers.
    static let devicesAndServer: [WorldCase] = [
        WorldCase(
            "an-account-keeps-its-queue", .pass,
            """
            \(expense)
            network: { X: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, X: { open: r1 } }
              - { at: 300ms, X: { create: e2, title: Hotel, text: "80.00" }, mark: added }
              - { at: 600ms, X: { sign-out: now }, mark: left }
              - { at: 900ms, X: { sign-in: bo }, mark: switched }
              - { at: 3500ms, X: { sign-in: ada }, mark: returned }
            expect:
              traffic: [{ request: PUT e2, from: X, between: [0s, returned], count: 0 }]
              always: [{ X: { row: e2, present: false, since: switched, until: returned } }]
              eventually: [{ after: returned, within: 5s, X: { outbox: 0 } }]
              finally: { X: { row: e2, text: "80.00" }, agree: [X, server] }
            """),
        WorldCase(
            "a-restored-server-is-noticed", .pass,
            """
            \(expense)
            network: { X: { 0s: wifi } }
            steps:
              - { at: 300ms, W: { server: backup } }
              - { at: 400ms, X: { open: r1 } }
              - { at: 500ms, X: { create: e2, title: Hotel, text: "80.00" } }
              - { at: 1500ms, W: { server: restore }, mark: restored }
              - { at: 2s, X: { edit: e1, text: "15.00" }, mark: edited }
            expect:
              eventually: [{ after: edited, within: 5s, X: { row: e2, present: false } }]
              finally: { server: { count: 2, e1: { text: "15.00" } }, agree: [X, server] }
            """),
        WorldCase(
            "a-restoration-needs-a-backup", .fail, reason: "the server has no backup",
            """
            writers: { W: { user: ada } }
            steps: [{ at: 200ms, W: { server: restore } }]
            expect: { finally: { server: { count: 1 } } }
            """),
        WorldCase(
            "a-writer-changes-records-of-an-app", .pass,
            """
            \(expense)
            network: { X: { 0s: wifi } }
            steps:
              - { at: 300ms, W: { edit: e1, title: Train, text: "20.00" } }
              - { at: 600ms, X: { sync: now }, mark: first }
              - { at: 1500ms, W: { delete: e1 } }
              - { at: 1800ms, X: { sync: now }, mark: second }
            expect:
              eventually:
                - { after: first, within: 3s, X: { row: e1, title: Train, text: "20.00" } }
                - { after: second, within: 3s, X: { row: e1, present: false } }
              finally: { server: { count: 1 }, agree: [X, server] }
            """),
        WorldCase(
            "an-app-shows-nothing-that-a-full-disk-has-refused", .pass, hasParity: false,
            """
            \(expense)
            network: { X: { 0s: 100-loss, 3s: wifi } }
            steps:
              - { at: 200ms, X: { open: r1 } }
              - { at: 300ms, X: { disk: full } }
              - { at: 400ms, X: { create: e2, title: Hotel, text: "80.00" }, mark: added }
              - { at: 2s, X: { disk: normal }, mark: space }
            expect:
              always: [{ X: { row: e2, present: false, since: added, until: space } }]
              eventually: [{ after: space, within: 5s, X: { row: e2, text: "80.00", outbox: 0 } }]
              finally: { agree: [X, server] }
            """),
        WorldCase(
            "a-change-of-a-note-fails-on-a-full-disk", .fail, reason: "the disk is full",
            """
            steps:
              - { at: 200ms, A: { disk: full } }
              - { at: 400ms, A: { edit: n1, text: two } }
              - { at: 600ms, A: { disk: normal } }
            expect: { always: [{ A: { row: n1, text: one } }], finally: { agree: [A, server] } }
            """),
        WorldCase(
            "a-slow-disk-delays-a-write", .pass, hasParity: false,
            """
            \(expense)
            network: { X: { 0s: wifi } }
            steps:
              - { at: 500ms, X: { disk: { delay: 500ms } } }
              - { at: 600ms, X: { edit: e1, text: "15.00" }, mark: edited }
            expect:
              traffic: [{ request: PATCH e1, from: X, seen: proxy, between: [0s, 1s], count: 0 }]
              eventually: [{ after: edited, within: 10s, X: { outbox: 0 } }]
              finally: { server: { e1: { text: "15.00" } }, agree: [X, server] }
            """),
        WorldCase(
            "a-clock-jumps-by-days", .pass,
            """
            server: { records: { p1: { kind: profile, title: Bo, text: Cook }, a1: { kind: article, in: p1, title: Tea, text: Boil. } } }
            devices: { N: { user: ada, client: reader } }
            network: { N: { 0s: wifi } }
            steps:
              - { at: 300ms, N: { open: a1 } }
              - { at: 800ms, N: { open: list } }
              - { at: 1s, N: { clock: { wall: +40d } } }
              - { at: 1200ms, N: { open: a1 }, mark: later }
            expect:
              traffic: [{ request: GET a1, from: N, between: [later, 3s], count: 1 }]
              eventually: [{ after: later, within: 3s, N: { screen: a1, error: none } }]
            """),
        WorldCase(
            "a-state-counts-from-a-mark", .pass,
            """
            network: { A: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, A: { edit: n1, text: two }, mark: first }
              - { when: { A: { outbox: 0 } }, since: first, within: 20s, mark: sent }
              - { after: sent, delay: 100ms, A: { edit: n1, text: three } }
            expect:
              traffic: [{ request: PUT n1, from: A, between: [first, sent], count: 1 }]
              finally: { server: { n1: { revision: 3, text: three } }, agree: [A, server] }
            """),
    ]

    /// The notes client has no step that adopts a restored server. Not one of the cases in both worlds: in real time, the run
    /// waits for 120 s.
    static let notAdopted = WorldCase(
        "the-notes-client-does-not-adopt-a-restored-server-by-itself", .fail, reason: "has not converged",
        hasParity: false,
        """
        devices: { A: { user: ada } }
        writers: { W: { user: ada } }
        steps:
          - { at: 200ms, W: { server: backup } }
          - { at: 400ms, W: { edit: n1, text: two } }
          - { at: 600ms, A: { sync: now } }
          - { at: 1500ms, W: { server: restore } }
          - { at: 2s, A: { sync: now } }
        expect: { finally: { server: { n1: { text: one, revision: 1 } }, agree: [A, server] } }
        invariants: { drop: [monotonic-revision, no-lost-write] }
        """)
}
