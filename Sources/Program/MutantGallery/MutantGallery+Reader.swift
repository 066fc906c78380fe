internal import Client
internal import Determinism
internal import Reader
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the network-first reader.
extension MutantGallery {
    static let reader: [RunMutant] = [
        .reader(
            "cache-never-expires",
            "Cached content is shown for ever without a request.",
            origin: "the cache: after its lifetime, an entry is shown and read again",
            by: .expectation(
                scenario: "reader-ttl-cache",
                "traffic: GET p1 from N at the proxy between 302.0 s and 611.0 s, responses 200"),
            in: ["reader-ttl-cache", "reader-commute"]
        ) { $0.adapt(.reader) { configuration, _ in configuration.settings["life"] = "4000000000000ms" } },
        .reader(
            "cache-hidden-during-refresh",
            "Cached content is not shown while it is read again.",
            origin: "the cache: after its lifetime, an entry is shown and read again",
            by: .expectation(
                scenario: "reader-ttl-cache",
                "always: N field birthday=1990-05-01 since outside until 302.5 s"),
            in: ["reader-ttl-cache", "reader-commute"]
        ) { $0.reader.showsCacheDuringReads = false },
        .reader(
            "indicator-at-once",
            "The loading indicator is shown at once.",
            origin: "pages: a loading indicator that is shown at once flickers",
            by: .expectation(
                scenario: "reader-page-load",
                "always: N field not indicator=loading until 2.3 s"),
            in: ["reader-page-load", "reader-user-started-get"]
        ) { $0.reader.indicatorDelay = .zero },
        .reader(
            "status-in-message",
            "A message contains the number of the status.",
            origin: "errors: a message has no technical detail",
            by: .expectation(
                scenario: "reader-page-load",
                "always: N field 'message=Cannot get Bo's profile. Try again later.' since 16.0 s until retried"),
            in: ["reader-page-load (server-error)", "reader-bad-server"]
        ) {
            $0.reader.message = { [earlier = $0.reader.message] problem, subject, status in
                earlier(problem, subject, status) + (status.map { " (\($0))" } ?? "")
            }
        },
        .reader(
            "page-error-vanishes",
            "The error of a page is a message that vanishes by itself.",
            origin: "pages: the error of a page is permanent",
            by: .expectation(
                scenario: "reader-cold-start-offline",
                "always: N screen list, control retry, error no-connection since 0.1 s until retried"),
            in: ["reader-cold-start-offline", "reader-page-load (signalled)"]
        ) { $0.reader.keepsPageErrors = false },
        .reader(
            "page-retried-by-itself",
            "A page is read again without the user when the connection returns.",
            origin: "pages: the user tries again",
            by: .expectation(
                scenario: "reader-cold-start-offline",
                "traffic: any from N at the proxy between 0.0 s and 75.0 s, count 0"),
            in: ["reader-cold-start-offline", "reader-page-load (signalled)"]
        ) { $0.reader.rereadsPages = true },
        .reader(
            "button-stays-active",
            "The button of an operation stays active during the operation.",
            origin: "operations: the control is inert until the end",
            by: .expectation(
                scenario: "reader-user-started-get",
                "always: N control not recommend since tapped until 8.0 s"),
            in: ["reader-user-started-get", "reader-bad-server"]
        ) { $0.reader.recommendsInParallel = true },
        .reader(
            "error-after-leaving",
            "The failure of an operation is shown after the user has left its page.",
            origin: "operations: no message after the user has left the page",
            by: .expectation(
                scenario: "reader-user-started-get",
                "always: N dialog none, toast none, error none"),
            in: ["reader-user-started-get (leave)", "reader-bad-server"]
        ) {
            $0.reader.reportsAfterLeaving = { [earlier = $0.reader.reportsAfterLeaving] operation in
                operation == .recommendation || earlier(operation)
            }
        },
        .reader(
            "rollback-without-dialog",
            "A like that fails after the user has left the page is taken back without a word.",
            origin: "states: a dialog after the user has left the page",
            by: .expectation(
                scenario: "reader-save-state",
                "eventually: N dialog not-saved, within 12.0 s of liked"),
            in: ["reader-save-state (leave)", "reader-bad-server"]
        ) {
            $0.reader.reportsAfterLeaving = { [earlier = $0.reader.reportsAfterLeaving] operation in
                operation != .like && earlier(operation)
            }
        },
        .reader(
            "rollback-to-first-state",
            "A like that fails restores the state before the first of several taps.",
            origin: "states: a failure restores the state before its own tap",
            by: .expectation(
                scenario: "reader-save-state",
                "always: N a1 text liked since 13.0 s until end"),
            in: ["reader-save-state (twice)", "reader-bad-server"]
        ) { $0.reader.rollback = .first },
        .reader(
            "like-waits-for-server",
            "A like is shown when the server has accepted it.",
            origin: "states: a change is shown before its first byte is sent",
            by: .expectation(
                scenario: "reader-save-state",
                "always: N a1 text liked since liked until 9.0 s"),
            in: ["reader-save-state", "reader-bad-server"]
        ) { $0.reader.showsLikesAtOnce = false },
        .reader(
            "form-not-stored",
            "A form that is sent in the background is not stored before it closes.",
            origin: "forms: a form is stored before it closes",
            by: .expectation(
                scenario: "reader-non-blocking-form",
                "finally: server has 3 notes"),
            in: ["reader-non-blocking-form (kill)", "reader-commute"]
        ) { $0.adapt(.reader) { _, state in state = state.without("form/") } },
        .reader(
            "form-cleared-on-failure",
            "Inputs are lost when a form fails.",
            origin: "forms: after a failure the inputs are intact",
            by: .expectation(
                scenario: "reader-blocking-form",
                "always: N field name=ada since filled until again"),
            in: ["reader-blocking-form", "reader-non-blocking-form"]
        ) {
            $0.reader.keepsForm = { [earlier = $0.reader.keepsForm] waiting in waiting != .failed && earlier(waiting) }
        },
        .reader(
            "password-stored",
            "A password is stored with the other inputs.",
            origin: "forms: inputs survive a kill, passwords do not",
            by: .expectation(
                scenario: "reader-blocking-form",
                "always: N field not password=concealed since restarted until refilled"),
            in: ["reader-blocking-form (kill)", "reader-bad-server"]
        ) { $0.reader.storesSecrets = true },
        .reader(
            "retry-sends-twice",
            "An attempt by the user sends two requests.",
            origin: "pages: an attempt is one request",
            by: .expectation(
                scenario: "reader-cold-start-offline",
                "traffic: GET any from N at the proxy between retried and 80.0 s, responses 200"),
            in: ["reader-cold-start-offline", "reader-page-load (silent)"]
        ) { $0.reader.requestsPerRetry = 2 },
        .reader(
            "later-forgets",
            "A form that the user wants to be sent later is forgotten.",
            origin: "forms: a postponed form is sent automatically",
            by: .expectation(
                scenario: "reader-non-blocking-form",
                "always: N outbox 1, field sent-later=1 since chosen until 20.0 s"),
            in: ["reader-non-blocking-form (later)", "reader-commute"]
        ) {
            $0.reader.keepsForm = { [earlier = $0.reader.keepsForm] waiting in waiting != .later && earlier(waiting) }
        },
        .reader(
            "required-not-checked",
            "Content without its required members is shown.",
            origin: "received data: without its required members, a page is an error",
            by: .expectation(
                scenario: "reader-received-data",
                "always: N control retry, error received-data since 3.0 s until retried"),
            in: ["reader-received-data (missing)", "reader-bad-server"]
        ) { $0.reader.validation = .none },
        .reader(
            "additional-fails-page",
            "An invalid additional member is an error of the whole page.",
            origin: "received data: an additional member is an error at its place only",
            by: .expectation(
                scenario: "reader-received-data",
                "always: N dialog none, toast none, error none"),
            in: ["reader-received-data (additional)", "reader-bad-server"]
        ) { $0.reader.validation = .all },
        .reader(
            "data-saver-ignored",
            "Pictures are loaded on metered interfaces, whatever the data saver says.",
            origin: "the data saver: additional data are not loaded on metered interfaces",
            by: .expectation(
                scenario: "reader-data-saver",
                "traffic: GET any from N at the proxy between 0.0 s and 15.0 s, count 1"),
            in: ["reader-data-saver", "reader-commute"]
        ) { $0.adapt(.reader) { configuration, _ in configuration.settings["data-saver"] = nil } },
        .reader(
            "future-page-fresh",
            "A page that was read in the future, by the clock of the device, counts as fresh.",
            origin: "the cache: a clock that was set back says nothing about the age of a page",
            by: .expectation(
                scenario: "reader-clock-back",
                "traffic: GET p1 from N at the proxy between opened and 20.0 s, count 1"),
            in: ["reader-clock-back", "reader-clock-jumps"]
        ) { $0.reader.trustsFuturePages = true },
        .reader(
            "push-notice-missing",
            "The result of a form that has arrived while the app is closed is not shown before the next start.",
            origin: "a form that is the key mechanic of an app: also a push notice when the app is closed",
            by: .expectation(
                scenario: "reader-push-notice",
                "always: N field 'push-notice=Reader has your feedback.' since 4.0 s until 22.0 s"),
            in: ["reader-push-notice", "reader-non-blocking-form (closed)"]
        ) { $0.showsPushNotices = false },
    ]
}

extension RunMutant {
    /// Creates a mutant of the reader.
    fileprivate static func reader(
        _ name: String, _ defect: String, origin: String, by detector: Detector, in runs: [String],
        _ change: @escaping @Sendable (inout RunBehavior) -> Void
    ) -> RunMutant {
        RunMutant(
            name, of: .app(.reader), defect, origin: origin, by: detector, broken: .visibleState, in: runs,
            change: change)
    }
}
