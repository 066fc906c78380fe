/// A pattern of the user interface for one operation of an app while the network may be missing.
public enum OfflinePattern: String, CaseIterable, Hashable, Sendable {
    /// No special look: no server takes part, or stored data are good enough.
    case none
    /// The change is shown at once and queued; its success is assumed, and no feedback is given.
    case optimistic
    /// The change is shown at once and queued; while the device is offline it is marked as pending, and a rejection is
    /// shown at the record.
    case optimisticWithPendingUI = "optimistic-with-pending-ui"
    /// The form can be filled offline and submitted online only; nothing is queued.
    case blockingForm = "blocking-form"
    /// The page is replaced by a notice while the device is offline, and its content is never stale.
    case blockingPage = "blocking-page"
}

/// The questions of the flow chart that assigns a pattern to an operation.
public struct ExpenseQuestions: Hashable, Sendable {
    /// The kind of access to the server. An operation that both reads and writes is a write.
    public enum Access: String, CaseIterable, Hashable, Sendable { case read, write }

    /// Whether a server takes part.
    public var interactsWithServer: Bool
    /// The kind of access.
    public var access: Access
    /// Whether stored data may be shown in place of current data. Asked of reads.
    public var acceptsStaleData: Bool
    /// Whether the client can compute the result of the operation before the server responds. Asked of writes.
    public var anticipatesResult: Bool
    /// Whether the user fills in inputs, or submits. Asked if data must be current, or if the result is not anticipated.
    public var isForm: Bool
    /// Whether the user must learn whether the server has accepted the operation. Asked of anticipated writes.
    public var mustKnowResult: Bool
    /// Whether the operation transfers money. A request for a payment does not.
    public var movesMoney: Bool

    /// Creates the answers to the questions.
    public init(
        interactsWithServer: Bool = true, access: Access, acceptsStaleData: Bool = false,
        anticipatesResult: Bool = false, isForm: Bool = false, mustKnowResult: Bool = false, movesMoney: Bool = false
    ) {
        self.interactsWithServer = interactsWithServer
        self.access = access
        self.acceptsStaleData = acceptsStaleData
        self.anticipatesResult = anticipatesResult
        self.isForm = isForm
        self.mustKnowResult = mustKnowResult
        self.movesMoney = movesMoney
    }

    /// The pattern of the operation.
    public var pattern: OfflinePattern {
        if movesMoney { return .blockingForm }
        guard interactsWithServer else { return .none }
        switch access {
        case .read:
            if acceptsStaleData { return .none }
            return isForm ? .blockingForm : .blockingPage
        case .write:
            guard anticipatesResult else { return isForm ? .blockingForm : .blockingPage }
            return mustKnowResult ? .optimisticWithPendingUI : .optimistic
        }
    }
}
