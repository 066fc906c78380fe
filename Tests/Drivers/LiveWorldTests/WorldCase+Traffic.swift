import Scenario

extension WorldCase {
    /// Order, repetitions, bytes, parts of the run, and what must be seen once.
    static let requests: [WorldCase] = [
        WorldCase(
            "bytes-of-bodies", .pass,
            """
            faults: [{ request: PUT n1, nth: 1, point: before-response, then: reset }]
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect:
              traffic:
                - { request: PUT n1, from: A, responses: [lost, 200], bytes-up: 322, bytes-down: 322 }
                - { request: PUT n1, from: A, duplicates: 0 }
              sometimes: [{ fault: { point: before-response, request: PUT n1 } }]
            """),
        WorldCase(
            "more-bytes-than-allowed", .fail, reason: "bytes down",
            """
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { traffic: [{ request: PUT n1, from: A, bytes-down: { max: 20 } }] }
            """),
        WorldCase(
            "requests-in-order", .pass,
            """
            network: { A: { 0s: 100-loss, 1s: wifi } }
            steps:
              - { at: 200ms, A: { create: n2, text: two } }
              - { at: 400ms, A: { create: n3, text: three } }
            expect: { traffic: [{ request: any, from: A, order: [POST n2, n3] }] }
            """),
        WorldCase(
            "requests-in-another-order", .fail, reason: "is not after",
            """
            steps:
              - { at: 300ms, A: { create: n2, text: two } }
              - { at: 900ms, A: { create: n3, text: three } }
            expect: { traffic: [{ request: POST any, from: A, order: [n3, n2] }] }
            """),
        WorldCase(
            "requests-during-a-flap", .pass,
            """
            network: { A: { 0s: wifi, 1s: { flap: [{ 3g: 1s }, { offline: 300ms }], signalled: false }, 4s: wifi } }
            steps:
              - { at: 300ms, A: { edit: n1, text: two } }
              - { at: 2400ms, A: { edit: n1, text: three } }
            expect:
              traffic:
                - { request: PUT n1, from: A, seen: proxy, during: wifi, count: 1 }
                - { request: PUT n1, from: A, seen: proxy, during: flap, count: { min: 1 } }
                - { request: PUT n1, from: A, during: offline, count: 0 }
              sometimes:
                - { request: any, responses: [2xx], during: flap }
                - { any: { outbox: 1 } }
              eventually: [{ by: 30s, A: { outbox: 0 } }]
            """),
        WorldCase(
            "requests-that-are-never-seen", .inconclusive, reason: "responses are 200",
            """
            steps: [{ at: 300ms, A: { edit: n1, text: two } }]
            expect: { sometimes: [{ request: PUT n1, responses: [409] }] }
            """),
        WorldCase(
            "a-revision-in-a-header-field", .pass,
            """
            writers: { R: { user: ada }, W: { user: ada } }
            network: { A: { 0s: wifi, 600ms: { link: offline, signalled: false }, 1500ms: wifi } }
            steps:
              - { at: 100ms, R: { raw: { method: GET, path: "/api/notes/{n1}/" } } }
              - { at: 200ms, R: { raw: { method: GET, path: "/api/notes/{n1}/", headers: { If-None-Match: '"{n1.revision}"' } } } }
              - { at: 300ms, W: { edit: n1, text: two } }
              - { at: 1s, R: { raw: { method: GET, path: "/api/notes/{n1}/", headers: { If-None-Match: '"{n1.revision}"' } } } }
            expect:
              traffic:
                - { request: GET n1, from: R, responses: [200, 304, 200] }
                - { request: any, from: A, between: [700ms, 1400ms], attempts: 0 }
                - { request: any, from: A, between: [0s, 600ms], attempts: { min: 1, max: 3 } }
            """),
        WorldCase(
            "a-note-restored-under-another-identifier", .pass, hasParity: false,
            """
            writers: { W: { user: ada } }
            steps:
              # After the first fetch, also on a busy machine.
              - { at: 2s, W: { delete: n1 } }
              - { at: 2800ms, A: { edit: n1, text: two }, mark: edited }
              - { when: { A: { row: n1, icon: conflict } }, within: 30s, A: { resolve: n1, with: mine } }
            expect:
              always: [{ A: { row: n1, text: two, since: edited } }]
              eventually: [{ by: 30s, A: { row: n1, icon: none } }]
            """),
        WorldCase(
            "any-device-in-conflict", .pass, hasParity: false,
            """
            devices: { A: { user: ada }, B: { user: ada } }
            network: { A: { 0s: wifi }, B: { 0s: wifi, 300ms: 100-loss, 1500ms: wifi } }
            steps:
              - { at: 600ms, A: { edit: n1, text: two } }
              - { at: 900ms, B: { edit: n1, text: three } }
              - { when: { any: { icon: conflict } }, within: 30s, B: { resolve: n1, with: mine }, mark: resolved }
            expect:
              sometimes: [{ any: { icon: conflict } }]
              always: [{ any: { icon: { not: error } } }]
              eventually: [{ after: resolved, within: 20s, any: { row: n1, text: three, icon: none } }]
            """),
    ]
}
