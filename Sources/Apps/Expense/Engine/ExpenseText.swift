/// The texts that the expense app shows.
public enum ExpenseText {
    /// The notice of a form or page while the device is offline.
    public static let offline = "offline"
    /// The error of a page that cannot be read.
    public static let failed = "failed"
    /// The error of a form of which nothing was sent.
    public static let notSent = "not-sent"
    /// The dialog after a submission whose response was lost.
    public static let unknownResult = "unknown-result"
    /// The dialog while a form is being submitted.
    public static let sending = "sending"
    /// The message after a successful submission.
    public static let sent = "sent"
    /// The notice while the server rejects the user's credentials.
    public static let signIn = "sign-in"
    /// The message at a record if the server has given none.
    public static let generic = "the server has not accepted the change"
}
