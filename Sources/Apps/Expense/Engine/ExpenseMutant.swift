/// A deliberate defect of the expense app. A scenario must fail with it.
public enum ExpenseMutant: String, CaseIterable, Sendable {
    /// A record with a pending change looks finished while the device is offline.
    case noPendingLook = "no-pending-look"
    /// A record with a pending change is grey while the device is online, too.
    case pendingLookOnline = "pending-look-online"
    /// A record that was added stays pending after the server has accepted it.
    case pendingActionKept = "pending-action-kept"
    /// All queued writes are sent at once.
    case queueDrainedInParallel = "queue-drained-in-parallel"
    /// After an outage the client reads before it has sent the queued writes.
    case readsBeforeWrites = "reads-before-writes"
    /// The original value of a record is lost when an update of it is rejected.
    case originalValueLost = "original-value-lost"
    /// The ancestors of a record with an error have no mark.
    case errorPathMissing = "error-path-missing"
    /// A form that was submitted offline is sent after the outage.
    case formSentAfterOutage = "form-sent-after-outage"
    /// A form whose response was lost is sent again under another operation id.
    case formSentAgain = "form-sent-again"
    /// A page shows stored data while the device is offline.
    case stalePageOffline = "stale-page-offline"
    /// The write queue is lost at a restart.
    case writesLostOnRestart = "writes-lost-on-restart"
}
