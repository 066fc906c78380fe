import Scenario

extension WorldCase {
    /// Articles of the reader, and a device N with it.
    private static let reader = """
        server:
          records:
            p1: { kind: profile, title: Bo, text: Cook, with: { birthday: "1990-05-01", picture: a pan } }
            a1: { kind: article, in: p1, title: Tea, text: Boil water. }
        devices: { N: { user: ada, client: reader, settings: { life: 2s } } }
        """

    /// A response of the reader's service with an error.
    private static let error = """
        { respond: { status: 500, headers: { Content-Type: application/json, Slowlane-Reader: "1" }, body: "{}" } }
        """

    /// The network-first reader.
    static let networkFirst: [WorldCase] = [
        WorldCase(
            "a-profile-is-cached-for-its-life", .pass,
            """
            \(reader)
            network: { N: { 0s: wifi } }
            steps:
              - { at: 200ms, N: { open: p1 }, mark: first }
              - { at: 1500ms, N: { open: p1 }, mark: inside }
              - { at: 3s, N: { open: p1 }, mark: outside }
            expect:
              traffic:
                - { request: GET p1, from: N, seen: proxy, between: [0s, 3s], responses: [200] }
                - { request: GET p1, from: N, seen: proxy, between: [outside, 10s], responses: [304] }
              always: [{ N: { field: birthday=1990-05-01, error: none, since: inside } }]
              eventually: [{ after: first, within: 1s, N: { screen: p1, field: picture=a pan } }]
            """),
        WorldCase(
            "a-page-error-waits-for-the-user", .pass,
            """
            \(reader)
            network: { N: { 0s: wifi, 200ms: 100-loss, 1s: wifi } }
            steps:
              - { at: 500ms, N: { open: p1 }, mark: opened }
              - { at: 2s, N: { call: retry }, mark: retried }
            expect:
              traffic:
                - { request: any, from: N, seen: proxy, between: [200ms, 2s], count: 0 }
                - { request: GET p1, from: N, seen: proxy, between: [retried, 10s], responses: [200] }
              always: [{ N: { screen: p1, error: no-connection, field: name=Bo, control: retry, since: opened, until: retried } }]
              eventually: [{ after: retried, within: 1s, N: { error: none, field: birthday=1990-05-01 } }]
            """),
        WorldCase(
            "a-like-that-fails-is-taken-back", .pass,
            """
            \(reader)
            network: { N: { 0s: edge } }
            faults: [{ request: PUT a1, point: before-request, then: \(error) }]
            steps:
              - { at: 300ms, N: { call: like, with: { note: a1 } }, mark: liked }
              - { at: 600ms, N: { call: feedback } }
            expect:
              traffic: [{ request: any a1, from: N, seen: proxy, responses: [500] }]
              always: [{ N: { row: a1, text: liked, pending: false, since: liked, until: 900ms } }, { N: { toast: none } }]
              eventually: [{ after: liked, within: 5s, N: { row: a1, text: not liked, dialog: not-saved } }]
              finally: { server: { a1: { revision: 1, text: not liked } } }
            """),
        WorldCase(
            "a-form-is-sent-later-after-a-kill", .pass,
            """
            \(reader)
            network: { N: { 0s: 100-loss, 2s: wifi } }
            steps:
              - { at: 100ms, N: { call: feedback } }
              - { at: 200ms, N: { call: fill, with: { message: More soup } } }
              - { at: 300ms, N: { call: submit }, mark: submitted }
              - { at: 600ms, N: { call: later }, mark: chosen }
              - { at: 900ms, N: { kill: now } }
              - { at: 1200ms, N: { start: now }, mark: restarted }
            expect:
              traffic: [{ request: POST any, from: N, responses: [201] }]
              always: [{ N: { dialog: not-sent, since: submitted, until: chosen } }, { N: { outbox: 1, since: restarted, until: 2s } }]
              eventually: [{ after: restarted, within: 5s, N: { outbox: 0, toast: sent, dialog: none } }]
              finally: { server: { count: 3 } }
            """),
        WorldCase(
            "a-password-does-not-survive-a-kill", .pass,
            """
            \(reader)
            network: { N: { 0s: wifi } }
            steps:
              - { at: 100ms, N: { call: sign-up } }
              - { at: 200ms, N: { call: fill, with: { name: ada, password: long enough } }, mark: filled }
              - { at: 500ms, N: { kill: now } }
              - { at: 800ms, N: { start: now }, mark: restarted }
              - { at: 1200ms, N: { call: fill, with: { password: long enough } }, mark: refilled }
              - { at: 1500ms, N: { call: submit }, mark: submitted }
            expect:
              traffic: [{ request: POST any, from: N, responses: [201] }]
              always:
                - { N: { field: password=concealed, since: filled, until: 500ms } }
                - { N: { screen: sign-up, field: name=ada, since: restarted, until: submitted } }
                - { N: { field: { not: password=concealed }, since: restarted, until: refilled } }
              eventually: [{ after: submitted, within: 2s, N: { screen: welcome } }]
              finally: { server: { count: 3 } }
            """),
    ]
}
