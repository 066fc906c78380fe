/// The look of a record as a function of connectivity, pending action and errors.
public struct RecordLook: Hashable, Sendable {
    /// Whether the record is drawn with half opacity.
    public let isGrey: Bool
    /// Whether the record is struck through.
    public let isStruck: Bool
    /// Whether the record is not drawn.
    public let isHidden: Bool
    /// Whether the record has a message with a button that dismisses it.
    public let showsErrors: Bool

    /// Creates the look of a record.
    ///
    /// - Parameter pending: The action that is queued, or has failed and has not been dismissed; `nil` for none, and for
    ///   a write without feedback.
    public init(isOffline: Bool, pending: PendingAction?, hasErrors: Bool) {
        let hasFailedChange = hasErrors && (pending == .update || pending == .delete)
        isGrey = (isOffline && pending != nil && !hasFailedChange) || (hasErrors && pending == .add)
        // A deletion that has failed is over: the record looks as before, offline and online.
        isStruck = isOffline && pending == .delete && !hasErrors
        isHidden = !isOffline && pending == .delete && !hasErrors
        showsErrors = hasErrors
    }
}
