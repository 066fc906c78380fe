/// A deliberate defect of the field app. A scenario must fail with it.
public enum FieldMutant: String, CaseIterable, Sendable {
    /// An upload that was interrupted begins again at its first byte.
    case uploadRestarted = "upload-restarted"
    /// A download that was interrupted begins again at its first byte.
    case downloadRestarted = "download-restarted"
    /// A cellular network is used although the policy allows Wi-Fi only.
    case cellularUsed = "cellular-used"
    /// An answer is late if its period is over by the device's clock, and is not sent.
    case lateByDeviceClock = "late-by-device-clock"
    /// A pushed record is deleted before a payload that contains it was pulled.
    case pushedRowDeletedEarly = "pushed-row-deleted-early"
    /// All files are transferred at once.
    case filesInParallel = "files-in-parallel"
    /// A file counts as pulled although its digest is wrong.
    case digestNotChecked = "digest-not-checked"
    /// A record that the server has rejected blocks those that follow it.
    case poisonBlocksBatch = "poison-blocks-batch"
    /// A payload of an earlier day is not refreshed.
    case stalePayloadKept = "stale-payload-kept"
    /// A file is opened before all of it has arrived.
    case partialFileOpened = "partial-file-opened"
    /// A record gets another identity with each attempt.
    case identityPerAttempt = "identity-per-attempt"
}
