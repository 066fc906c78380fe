public import Client

/// The rules of the expense app that are not part of its patterns. The default values are those of the app.
public struct ExpenseBehavior: Sendable {
    /// Returns the look of a record from whether the device is offline, the pending action, and whether there are errors.
    public var look: @Sendable (_ isOffline: Bool, _ pending: PendingAction?, _ hasErrors: Bool) -> RecordLook = {
        RecordLook(isOffline: $0, pending: $1, hasErrors: $2)
    }
    /// Whether the acceptance of an addition ends the look of a pending record; otherwise the next start of the app does.
    public var endsPendingAdditions = true
    /// Whether a red dot marks the screen and all records that contain one with an error.
    public var marksPathToErrors = true
    /// The number of writes that are sent at a time.
    public var writesAtOnce = 1
    /// Whether the updates are read before the queued writes are sent.
    public var readsFirst = false
    /// Returns the value of a record that counts as confirmed after the server has rejected an update of it.
    public var confirmedAfterRejection: @Sendable (_ confirmed: RecordFields, _ update: RecordFields) -> RecordFields =
        {
            confirmed, _ in confirmed
        }
    /// Whether a form that is submitted offline is sent after the outage; otherwise it cannot be submitted.
    public var keepsFormsOffline = false
    /// Whether a form whose response was lost is sent again, as another operation; otherwise the client asks for the result.
    public var repeatsLostForms = false
    /// Whether all records are read again if the server has another history of updates: it was restored from a backup.
    public var comparesHistories = true
    /// Whether a write that the server forbids (403) is sent again for ever; otherwise it has failed.
    public var repeatsForbiddenWrites = false
    /// Whether a page that has been read stays while the device is offline.
    public var keepsPagesOffline = false

    /// Creates the behaviour of the app.
    public init() {}
}
