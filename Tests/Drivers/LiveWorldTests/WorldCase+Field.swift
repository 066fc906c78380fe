import Scenario

extension WorldCase {
    /// Records of the field app, and a device F with it.
    private static let field = """
        server:
          records:
            q1: { kind: question, title: Is the door locked? }
            q2: { kind: question, title: Which door?, with: { choices: "front,back" } }
            i1: { kind: issue, title: Lamp, text: flickers }
            f1: { kind: file, title: Plan, with: { bytes: "30000" } }
        """

    /// Rules of the field app.
    static let fieldApp: [WorldCase] = [
        WorldCase(
            "local-records-look-like-those-of-the-server", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field } }
            network: { F: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 200ms, F: { open: q1 } }
              - { at: 300ms, F: { create: a1, text: "yes" }, mark: answered }
              - { at: 500ms, F: { open: i1 } }
              - { at: 600ms, F: { create: p1, title: lamp.jpg, text: "100000" }, mark: photographed }
              - { at: 800ms, F: { call: resolve, with: { note: i1 } }, mark: resolved }
              - { at: 1200ms, F: { kill: now } }
              - { at: 1500ms, F: { start: now } }
            expect:
              traffic:
                - { request: any, from: F, seen: proxy, between: [0s, 2s], count: 0 }
                - { request: POST any, from: F, responses: [200] }
                - { request: PATCH any, from: F, responses: [204, 204] }
              always:
                - { F: { row: a1, text: "yes", icon: none, error: none, since: answered } }
                - { F: { row: p1, text: "100000", icon: none, since: photographed } }
                - { F: { row: i1, text: resolved, since: resolved } }
              eventually: [{ by: 10s, F: { outbox: 0 } }]
              finally: { server: { count: 6, i1: { revision: 2 } }, agree: [F, server] }
            """),
        WorldCase(
            "a-rejected-answer-blocks-no-other", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field } }
            network: { F: { 0s: 100-loss, 1s: wifi } }
            steps:
              - { at: 100ms, F: { open: q2 } }
              - { at: 200ms, F: { create: a1, text: side } }
              - { at: 300ms, F: { open: q1 } }
              - { at: 400ms, F: { create: a2, text: "yes" }, mark: answered }
              - { when: { F: { row: a1, error: "expected front or back" } }, within: 20s, mark: rejected }
              - { after: rejected, delay: 300ms, F: { edit: a1, text: front }, mark: corrected }
            expect:
              traffic: [{ request: POST any, from: F, responses: [200, 200] }]
              always:
                - { F: { row: a2, error: none, since: answered } }
                - { F: { row: a1, text: front, error: none, since: corrected } }
              finally: { server: { a1: { text: front }, a2: { text: "yes", revision: 1 } }, agree: [F, server] }
            """),
        WorldCase(
            "a-file-continues-after-an-outage", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field, starts: empty } }
            network: { F: { 0s: wifi } }
            faults: [{ request: GET f1, nth: 1, point: mid-response, then: reset }]
            steps: [{ at: 5s, F: { open: f1 }, mark: opened }]
            expect:
              traffic:
                - { request: GET f1, from: F, count: 2 }
                - { request: GET f1, from: F, bytes-down: { max: 46000 } }
              eventually: [{ after: opened, within: 10s, F: { screen: f1, error: none, field: bytes=30000 } }]
              finally: { F: { row: f1, text: available }, agree: [F, server] }
            """),
        WorldCase(
            "a-run-begins-at-midnight", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field } }
            network: { F: { 0s: wifi } }
            steps:
              - { at: 200ms, F: { clock: { wall: +23h59m57s } } }
              - { at: 500ms, F: { open: list } }
              - { at: 2s, F: { open: list }, mark: evening }
              - { at: 4s, F: { open: list }, mark: morning }
            expect:
              traffic:
                - { request: GET any, from: F, between: [evening, morning], count: 0 }
                - { request: GET any, from: F, between: [morning, 5s], count: { min: 1 } }
            """),
        WorldCase(
            "a-cellular-network-is-not-used", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field, starts: empty } }
            network: { F: { 0s: { link: wifi, interface: cellular }, 2s: { link: wifi, interface: wifi } } }
            expect:
              traffic: [{ request: any, from: F, between: [0s, 2s], attempts: { max: 0 } }]
              always: [{ F: { screen: no-wifi, until: 2s } }]
              eventually: [{ by: 7s, F: { row: f1, text: available } }]
              finally: { agree: [F, server] }
            """),
        WorldCase(
            "a-lost-response-to-a-push-leads-to-no-second-note", .pass,
            """
            \(field)
            devices: { F: { user: ada, client: field } }
            network: { F: { 0s: wifi } }
            faults: [{ request: POST any, point: before-response, then: reset }]
            steps: [{ at: 300ms, F: { call: note, with: { note: i1, text: again } } }]
            expect:
              traffic: [{ request: POST any, from: F, responses: [lost, 200] }]
              eventually: [{ by: 10s, F: { outbox: 0 } }]
              finally: { server: { i1: { revision: 2 } }, agree: [F, server] }
            """),
    ]
}
