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
        ) { _ = $0.field.insert(.uploadRestarted) },
        .field(
            "download-restarted",
            "A download that was interrupted begins again at its first byte.",
            origin: "RFC 9110, section 14: a range request continues an interrupted transfer",
            by: .expectation(
                scenario: "field-interface-policy",
                "traffic: GET f1 from F, bytes down 300000 to 500000"),
            in: ["field-interface-policy", "field-large-file-over-edge"]
        ) { _ = $0.field.insert(.downloadRestarted) },
        .field(
            "cellular-used",
            "A cellular network is used although the policy allows Wi-Fi only.",
            origin: "the original app has used cellular networks since a commit of 2020, against its documentation",
            by: .expectation(
                scenario: "field-interface-policy",
                "traffic: any from F at the proxy between 8.0 s and 30.0 s, count 0"),
            in: ["field-interface-policy", "field-first-use (cellular)"]
        ) { _ = $0.field.insert(.cellularUsed) },
        .field(
            "late-by-device-clock",
            "An answer whose period is over by the device's clock is not sent.",
            origin: "the server's clock decides what is late",
            by: .expectation(
                scenario: "field-batches-by-period",
                "always: F a1 text 20, error none since first"),
            in: ["field-batches-by-period (clock)", "field-daily-cache"]
        ) { _ = $0.field.insert(.lateByDeviceClock) },
        .field(
            "pushed-row-deleted-early",
            "A pushed record is deleted before a payload that contains it was pulled.",
            origin: "a pushed record is stitched into the payload until a new one has been pulled",
            by: .expectation(
                scenario: "field-pushed-but-not-pulled",
                "always: F a1 text yes, error none since answered"),
            in: ["field-pushed-but-not-pulled", "field-stitching"]
        ) { _ = $0.field.insert(.pushedRowDeletedEarly) },
        .field(
            "files-in-parallel",
            "All files are transferred at once.",
            origin: "one file at a time, so that a slow network completes some of them",
            by: .expectation(
                scenario: "field-one-file-at-a-time",
                "traffic: GET f2 from F at the proxy between holding and released, count 0"),
            in: ["field-one-file-at-a-time", "field-quota"]
        ) { _ = $0.field.insert(.filesInParallel) },
        .field(
            "digest-not-checked",
            "A file counts as pulled although its digest is wrong.",
            origin: "RFC 9530: the digest of a file that arrived in parts is that of the whole",
            by: .expectation(
                scenario: "field-corrupt-file",
                "always: F f1 text missing until opened"),
            in: ["field-corrupt-file", "field-one-file-at-a-time"]
        ) { _ = $0.field.insert(.digestNotChecked) },
        .field(
            "poison-blocks-batch",
            "A record that the server has rejected blocks those that follow it.",
            origin: "the original app's push is all or nothing: one record that the server refuses blocks all",
            by: .expectation(
                scenario: "field-poison-record",
                "traffic: POST any from F between 0.0 s and 60.0 s, count 1"),
            in: ["field-poison-record", "field-late-answer"]
        ) { _ = $0.field.insert(.poisonBlocksBatch) },
        .field(
            "stale-payload-kept",
            "A payload of an earlier day is not refreshed.",
            origin: "the payload is pulled once a calendar day",
            by: .expectation(
                scenario: "field-daily-cache",
                "traffic: GET any from F at the proxy between morning and 130.0 s, count 1"),
            in: ["field-daily-cache", "field-overnight"]
        ) { _ = $0.field.insert(.stalePayloadKept) },
        .field(
            "partial-file-opened",
            "A file is opened before all of it has arrived.",
            origin: "a missing file is never opened: loading, no Wi-Fi, or failed",
            by: .expectation(
                scenario: "field-large-file-over-edge",
                "always: F screen f1, error loading since opened until 900.0 s"),
            in: ["field-large-file-over-edge", "field-interface-policy"]
        ) { _ = $0.field.insert(.partialFileOpened) },
        .field(
            "identity-per-attempt",
            "A record gets another identity with each attempt.",
            origin: "the original app's notes have no identity of their own, so a lost response doubles them",
            by: .expectation(
                scenario: "field-killed-anywhere",
                "finally: server i1 revision 2"),
            in: ["field-killed-anywhere", "field-pushed-but-not-pulled (lost)"]
        ) { _ = $0.field.insert(.identityPerAttempt) },
    ]
}
