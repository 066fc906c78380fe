internal import Reader
internal import Scenario
internal import Worlds

/// Mutants of the network-first reader.
extension MutantGallery {
    /// Returns the entry of a mutant of the reader.
    static func entry(of mutant: ReaderMutant) -> Entry {
        func detected(
            _ defect: String, _ origin: String, by check: (scenario: String, check: String), in runs: [String]
        ) -> Entry {
            Entry(
                .reader(mutant), defect, origin: origin,
                by: .expectation(scenario: check.scenario, check.check), in: runs)
        }
        return switch mutant {
        case .cacheNeverExpires:
            detected(
                "Cached content is shown for ever without a request.",
                "the cache: after its lifetime, an entry is shown and read again",
                by: (
                    "reader-ttl-cache",
                    "traffic: GET p1 from N at the proxy between 302.0 s and 611.0 s, responses 200"
                ), in: ["reader-ttl-cache", "reader-commute"])
        case .cacheHiddenDuringRefresh:
            detected(
                "Cached content is not shown while it is read again.",
                "the cache: after its lifetime, an entry is shown and read again",
                by: (
                    "reader-ttl-cache",
                    "always: N field birthday=1990-05-01 since outside until 302.5 s"
                ), in: ["reader-ttl-cache", "reader-commute"])
        case .indicatorAtOnce:
            detected(
                "The loading indicator is shown at once.",
                "pages: a loading indicator that is shown at once flickers",
                by: (
                    "reader-page-load",
                    "always: N field not indicator=loading until 2.3 s"
                ), in: ["reader-page-load", "reader-user-started-get"])
        case .statusInMessage:
            detected(
                "A message contains the number of the status.",
                "errors: a message has no technical detail",
                by: (
                    "reader-page-load",
                    "always: N field 'message=Cannot get the profile. Try again later.' since 16.0 s until retried"
                ), in: ["reader-page-load (server-error)", "reader-bad-server"])
        case .pageErrorVanishes:
            detected(
                "The error of a page is a message that vanishes by itself.",
                "pages: the error of a page is permanent",
                by: (
                    "reader-cold-start-offline",
                    "always: N screen list, control retry, error no-connection since 0.1 s until retried"
                ), in: ["reader-cold-start-offline", "reader-page-load (signalled)"])
        case .pageRetriedByItself:
            detected(
                "A page is read again without the user when the connection returns.",
                "pages: the user tries again",
                by: (
                    "reader-cold-start-offline",
                    "traffic: any from N at the proxy between 0.0 s and 75.0 s, count 0"
                ), in: ["reader-cold-start-offline", "reader-page-load (signalled)"])
        case .buttonStaysActive:
            detected(
                "The button of an operation stays active during the operation.",
                "operations: the control is inert until the end",
                by: (
                    "reader-user-started-get",
                    "always: N control not recommend since tapped until 8.0 s"
                ), in: ["reader-user-started-get", "reader-bad-server"])
        case .errorAfterLeaving:
            detected(
                "The failure of an operation is shown after the user has left its page.",
                "operations: who has left the page hears nothing",
                by: (
                    "reader-user-started-get",
                    "always: N dialog none, toast none, error none"
                ), in: ["reader-user-started-get (leave)", "reader-bad-server"])
        case .rollbackWithoutDialog:
            detected(
                "A like that fails after the user has left the page is taken back without a word.",
                "states: who has left the page is told by a dialog",
                by: (
                    "reader-save-state",
                    "eventually: N dialog not-saved, within 12.0 s of liked"
                ), in: ["reader-save-state (leave)", "reader-bad-server"])
        case .rollbackToFirstState:
            detected(
                "A like that fails restores the state before the first of several taps.",
                "states: a failure restores the state before its own tap",
                by: (
                    "reader-save-state",
                    "always: N a1 text liked since 13.0 s until end"
                ), in: ["reader-save-state (twice)", "reader-bad-server"])
        case .likeWaitsForServer:
            detected(
                "A like is shown when the server has accepted it.",
                "states: a change is shown before its first byte is sent",
                by: (
                    "reader-save-state",
                    "always: N a1 text liked since liked until 9.0 s"
                ), in: ["reader-save-state", "reader-bad-server"])
        case .formNotStored:
            detected(
                "A form that is sent in the background is not stored before it closes.",
                "forms: a form is stored before it closes",
                by: (
                    "reader-non-blocking-form",
                    "finally: server has 3 notes"
                ), in: ["reader-non-blocking-form (kill)", "reader-commute"])
        case .formClearedOnFailure:
            detected(
                "Inputs are lost when a form fails.",
                "forms: after a failure the inputs are intact",
                by: (
                    "reader-blocking-form",
                    "always: N field name=ada since filled until again"
                ), in: ["reader-blocking-form", "reader-non-blocking-form"])
        case .passwordStored:
            detected(
                "A password is stored with the other inputs.",
                "forms: inputs survive a kill, passwords do not",
                by: (
                    "reader-blocking-form",
                    "always: N field not password=concealed since restarted until refilled"
                ), in: ["reader-blocking-form (kill)", "reader-bad-server"])
        case .retrySendsTwice:
            detected(
                "An attempt by the user sends two requests.",
                "pages: an attempt is one request",
                by: (
                    "reader-cold-start-offline",
                    "traffic: GET any from N at the proxy between retried and 80.0 s, responses 200"
                ), in: ["reader-cold-start-offline", "reader-page-load (silent)"])
        case .laterForgets:
            detected(
                "A form that the user wants to be sent later is forgotten.",
                "forms: what is sent later is sent by itself",
                by: (
                    "reader-non-blocking-form",
                    "always: N outbox 1, field sent-later=1 since chosen until 20.0 s"
                ), in: ["reader-non-blocking-form (later)", "reader-commute"])
        case .requiredNotChecked:
            detected(
                "Content without its required members is shown.",
                "received data: without its required members, a page is an error",
                by: (
                    "reader-received-data",
                    "always: N control retry, error received-data since 3.0 s until retried"
                ), in: ["reader-received-data (missing)", "reader-bad-server"])
        case .additionalFailsPage:
            detected(
                "An invalid additional member is an error of the whole page.",
                "received data: an additional member is an error at its place only",
                by: (
                    "reader-received-data",
                    "always: N dialog none, toast none, error none"
                ), in: ["reader-received-data (additional)", "reader-bad-server"])
        case .dataSaverIgnored:
            detected(
                "Pictures are loaded on metered interfaces, whatever the data saver says.",
                "the data saver: additional data are not loaded on metered interfaces",
                by: (
                    "reader-data-saver",
                    "traffic: GET any from N at the proxy between 0.0 s and 15.0 s, count 1"
                ), in: ["reader-data-saver", "reader-commute"])
        }
    }
}
