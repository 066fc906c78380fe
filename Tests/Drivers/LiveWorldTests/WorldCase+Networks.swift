import Scenario

extension WorldCase {
    /// Networks, generated notes and the reactive workload.
    static let networks: [WorldCase] = [
        WorldCase(
            "outages-that-are-signalled-sometimes", .pass,
            """
            network:
              A: { 0s: wifi, 500ms: { flap: [{ 100-loss: 300ms }, { wifi: 300ms }], signalled: sometimes }, 3s: wifi }
            steps: [{ at: 600ms, A: { edit: n1, text: two } }]
            expect:
              eventually: [{ by: 60s, A: { row: n1, text: two, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
        WorldCase(
            "an-interface-that-changes", .pass,
            """
            network:
              A: { 0s: { link: wifi, interface: wifi }, 500ms: { link: lte, interface: cellular }, 1500ms: wifi }
            steps: [{ at: 800ms, A: { edit: n1, text: two } }]
            expect:
              traffic: [{ request: PUT n1, from: A, responses: [200] }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
        WorldCase(
            "generated-notes", .pass,
            """
            server: { notes: { n1: { text: one } }, fill: { notes: 30, bytes: 700 } }
            devices: { A: { user: ada }, B: { user: ada, starts: empty } }
            network: { A: { 0s: wifi }, B: { 0s: wifi } }
            steps: [{ at: 2s, A: { edit: f30, text: two } }]
            expect:
              traffic: [{ request: PUT f30, from: A, responses: [200] }]
              eventually: [{ by: 30s, B: { row: f1, title: f1 } }]
              finally: { server: { count: 31, f30: { revision: 2, text: two } }, agree: [A, B, server] }
            """),
        WorldCase(
            "every-conflict-is-resolved", .pass, hasParity: false,
            """
            server: { notes: { n1: { title: Milk, text: one }, n2: { title: Bread, text: one } } }
            writers: { W: { user: ada } }
            network: { A: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 500ms, A: { edit: n1, text: two } }
              - { at: 600ms, A: { edit: n2, text: two } }
              - { at: 700ms, W: { edit: n1, text: three } }
              - { at: 800ms, W: { edit: n2, text: three } }
              - { at: 5s, A: { sync: now } }
            workload: [{ when: { any: { icon: conflict } }, delay: 400ms, by: [A], mix: { resolve: 1 } }]
            expect:
              sometimes: [{ A: { row: n1, icon: conflict } }, { A: { row: n2, icon: conflict } }]
              eventually:
                - { by: 60s, A: { row: n1, icon: none, outbox: 0 } }
                - { by: 60s, A: { row: n2, icon: none, outbox: 0 } }
              finally: { agree: [A, server] }
            """),
        // The state holds once, and not any more after the delay.
        WorldCase(
            "a-state-that-has-ended-triggers-nothing", .pass,
            """
            network: { A: { 0s: wifi, 300ms: 100-loss, 1s: wifi } }
            steps: [{ at: 500ms, A: { edit: n1, text: two } }]
            workload: [{ when: { A: { row: n1, icon: upload } }, delay: 4s, by: [A], mix: { edit: 1 } }]
            expect:
              eventually: [{ by: 6s, A: { row: n1, icon: none } }]
              finally: { server: { n1: { revision: 2, text: two } }, agree: [A, server] }
            """),
    ]
}
