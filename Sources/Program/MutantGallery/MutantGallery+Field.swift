internal import Client
internal import Field
internal import Scenario
internal import ScenarioRunner
internal import Worlds

/// Mutants of the field app.
extension MutantGallery {
    static let field: [RunMutant] = [
        .field(
            "upload-restarted",
            "An upload that was interrupted begins again at its first byte.",
            origin: "draft-ietf-httpbis-resumable-upload: the client asks for the offset and continues there",
            by: .expectation(
                scenario: "field-photo-resumes",
                "traffic: DELETE any from F, count 0"),
            in: ["field-photo-resumes", "field-killed-anywhere"]
        ) { $0.field.resumesUploads = false },
        .field(
            "download-restarted",
            "A download that was interrupted begins again at its first byte.",
            origin: "RFC 9110, section 14: a range request continues an interrupted transfer",
            by: .expectation(
                scenario: "field-interface-policy",
                "traffic: GET f1 from F, bytes down 300000 to 550000"),
            in: ["field-interface-policy", "field-large-file-over-edge"]
        ) { $0.field.resumesDownloads = false },
        .field(
            "cellular-used",
            "A cellular network is used although the policy allows Wi-Fi only.",
            origin: "the original app has used cellular networks since a commit of 2020, against its documentation",
            by: .expectation(
                scenario: "field-interface-policy",
                "traffic: any from F at the proxy between 8.0 s and 30.0 s, count 0"),
            in: ["field-interface-policy", "field-first-use (cellular)"]
        ) { $0.adapt(.field) { configuration, _ in configuration.settings["network"] = "any" } },
        .field(
            "late-by-device-clock",
            "An answer whose period is over by the device's clock is not sent.",
            origin: "the server's clock decides whether an answer is late",
            by: .expectation(
                scenario: "field-batches-by-period",
                "always: F a1 text 20, error none since first"),
            in: ["field-batches-by-period (clock)", "field-daily-cache"]
        ) { $0.field.judgesPeriods = true },
        .field(
            "pushed-row-deleted-early",
            "A pushed record is deleted before a payload that contains it was pulled.",
            origin: "a pushed record is stitched into the payload until a new one has been pulled",
            by: .expectation(
                scenario: "field-pushed-but-not-pulled",
                "always: F a1 text yes, error none since answered"),
            in: ["field-pushed-but-not-pulled", "field-stitching"]
        ) { $0.field.keepsPushedAnswers = false },
        .field(
            "files-in-parallel",
            "All files are transferred at once.",
            origin: "one file at a time, so that a slow network completes some of them",
            by: .expectation(
                scenario: "field-one-file-at-a-time",
                "traffic: GET f2 from F at the proxy between holding and released, count 0"),
            in: ["field-one-file-at-a-time", "field-quota"]
        ) { $0.field.filesAtOnce = 6 },
        .field(
            "digest-not-checked",
            "A file counts as pulled although its digest is wrong.",
            origin: "RFC 9530: the digest covers the whole file, also if it arrived in parts",
            by: .expectation(
                scenario: "field-corrupt-file",
                "always: F f1 text missing until opened"),
            in: ["field-corrupt-file", "field-one-file-at-a-time"]
        ) { $0.field.checksDigests = false },
        .field(
            "poison-blocks-batch",
            "A record that the server has rejected blocks those that follow it.",
            origin: "the original app's push is all or nothing: one record that the server refuses blocks all",
            by: .expectation(
                scenario: "field-poison-record",
                "traffic: POST any from F between 0.0 s and 60.0 s, count 1"),
            in: ["field-poison-record", "field-late-answer"]
        ) { $0.field.results = .allOrNothing },
        .field(
            "stale-payload-kept",
            "A payload of an earlier day is not refreshed.",
            origin: "the payload is pulled once a calendar day",
            by: .expectation(
                scenario: "field-daily-cache",
                "traffic: GET any from F at the proxy between morning and 130.0 s, count 1"),
            in: ["field-daily-cache", "field-overnight"]
        ) { $0.field.pullsDaily = false },
        .field(
            "partial-file-opened",
            "A file is opened before all of it has arrived.",
            origin: "a missing file is never opened: loading, no Wi-Fi, or failed",
            by: .expectation(
                scenario: "field-large-file-over-edge",
                "always: F screen f1, error loading since opened until 900.0 s"),
            in: ["field-large-file-over-edge", "field-interface-policy"]
        ) { $0.field.opensPartialFiles = true },
        .field(
            "identity-per-attempt",
            "A record gets another identity with each attempt.",
            origin: "the original app's notes have no identity of their own, so a lost response doubles them",
            by: .expectation(
                scenario: "field-killed-anywhere",
                "finally: server i1 revision 2"),
            in: ["field-killed-anywhere", "field-pushed-but-not-pulled (lost)"]
        ) { $0.field.keepsIdentities = false },
        .field(
            "failed-commit-trusted",
            "A commit that has failed counts as one that has succeeded.",
            origin: "a full disk: what is shown is stored",
            by: .expectation(
                scenario: "disk-full-during-pull",
                "always: F f1 text missing until space"),
            in: ["disk-full-during-pull", "disk-full-with-answer"]
        ) { $0.field.repeatsFailedCommits = false },
        .field(
            "zone-ignored",
            "A day begins at midnight of Greenwich, wherever the user is.",
            origin: "the payload is pulled once a calendar day of the place",
            by: .expectation(
                scenario: "field-midnight-abroad",
                "traffic: GET any from F at the proxy between midnight and 140.0 s, count 1"),
            in: ["field-midnight-abroad", "field-summer-time"]
        ) { $0.field.followsZones = false },
        .field(
            "changed-file-not-noticed",
            "A file that was replaced on the server fails until the payload is pulled on another day.",
            origin: "RFC 9110, section 13.1.5: If-Range tells the client that the representation has changed",
            by: .expectation(
                scenario: "field-file-changes",
                "eventually: F f1 text available, title 'Plan B', within 60.0 s of changed"),
            in: ["field-file-changes", "field-file-replaced"]
        ) { $0.field.noticesChangedFiles = false },
        .field(
            "ended-period-fresh",
            "A payload of an ended submission period counts as fresh until the end of the day.",
            origin: "the cache of the payload expires with its submission period",
            by: .expectation(
                scenario: "field-period-cache",
                "traffic: GET any from F at the proxy between next and 605.0 s, count 1"),
            in: ["field-period-cache", "field-batches-by-period"]
        ) { $0.field.pullsEachPeriod = false },
        .field(
            "pull-before-sign-in",
            "The first payload is requested before the user has signed in.",
            origin: "the first use needs a sign-in before the first pull",
            by: .expectation(
                scenario: "field-sign-in",
                "traffic: GET any from F at the proxy between 0.0 s and returned, count 0"),
            in: ["field-sign-in", "field-first-use"]
        ) { $0.field.signsInFirst = false },
        .field(
            "files-at-root-only",
            "Files are found at one place of the payload only.",
            origin: "files are found by a scan of the payload",
            by: .expectation(
                scenario: "field-payload-tree",
                "always: F f3 present true since deleted"),
            in: ["field-payload-tree", "field-interface-policy"]
        ) { $0.field.scansTree = false },
        .field(
            "file-url-kept",
            "A file is requested at its first URL, also when the payload has another one for the same content.",
            origin: "there is one file for each digest, and its URL is updated",
            by: .expectation(
                scenario: "field-payload-tree",
                "eventually: F f2 text available, by 40.0 s"),
            in: ["field-payload-tree", "field-file-changes (moved)"]
        ) { $0.field.updatesURLs = false },
        .field(
            "language-ignored",
            "The payload is requested in the language of the server after the device has another one.",
            origin: "a new language of the device is shown after the next pull",
            by: .expectation(
                scenario: "field-language",
                "eventually: F q1 title 'Ist die Tür abgeschlossen?', within 5.0 s of pulled"),
            in: ["field-language", "field-overnight (language)"]
        ) { $0.field.languageChange = .ignored },
        .field(
            "language-pulls-at-once",
            "Another language of the device leads to a pull.",
            origin: "a new language of the device is shown after the next pull, and is no reason for one",
            by: .expectation(
                scenario: "field-language",
                "traffic: any from F at the proxy between 0.0 s and pulled, count 0"),
            in: ["field-language", "field-overnight (language)"]
        ) { $0.field.languageChange = .pull },
    ]
}

extension RunMutant {
    /// Creates a mutant of the field app.
    fileprivate static func field(
        _ name: String, _ defect: String, origin: String, by detector: Detector, in runs: [String],
        _ change: @escaping @Sendable (inout RunBehavior) -> Void
    ) -> RunMutant {
        RunMutant(
            name, of: .app(.field), defect, origin: origin, by: detector, broken: .noLostWrite, in: runs,
            change: change)
    }
}
