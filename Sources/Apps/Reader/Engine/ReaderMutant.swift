/// A deliberate defect of the network-first reader. A scenario must fail with it.
public enum ReaderMutant: String, CaseIterable, Sendable {
    /// Cached content is shown for ever without a request.
    case cacheNeverExpires = "cache-never-expires"
    /// Cached content of any age is not shown while it is being read again.
    case cacheHiddenDuringRefresh = "cache-hidden-during-refresh"
    /// The loading indicator is shown at once.
    case indicatorAtOnce = "indicator-at-once"
    /// A message contains the number of the status.
    case statusInMessage = "status-in-message"
    /// The error of a page is a message that vanishes by itself.
    case pageErrorVanishes = "page-error-vanishes"
    /// A page is read again without the user when the connection returns.
    case pageRetriedByItself = "page-retried-by-itself"
    /// The button of an operation stays active during the operation.
    case buttonStaysActive = "button-stays-active"
    /// The failure of an operation is shown after the user has left its page.
    case errorAfterLeaving = "error-after-leaving"
    /// A like that fails after the user has left the page is taken back without a word.
    case rollbackWithoutDialog = "rollback-without-dialog"
    /// A like that fails restores the state before the first of several taps.
    case rollbackToFirstState = "rollback-to-first-state"
    /// A like is shown when the server has accepted it.
    case likeWaitsForServer = "like-waits-for-server"
    /// A form that is sent in the background is not stored before it closes.
    case formNotStored = "form-not-stored"
    /// Inputs are lost when a form fails.
    case formClearedOnFailure = "form-cleared-on-failure"
    /// A password is stored with the other inputs.
    case passwordStored = "password-stored"
    /// An attempt by the user sends two requests.
    case retrySendsTwice = "retry-sends-twice"
    /// A form that the user wants to be sent later is forgotten.
    case laterForgets = "later-forgets"
    /// Content without its required members is shown.
    case requiredNotChecked = "required-not-checked"
    /// An invalid additional member is an error of the whole page.
    case additionalFailsPage = "additional-fails-page"
    /// Pictures are fetched on metered interfaces, whatever the data saver says.
    case dataSaverIgnored = "data-saver-ignored"
}
