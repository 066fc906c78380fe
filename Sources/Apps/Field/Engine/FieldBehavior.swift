/// The rules of the field app that no setting changes. The default values are those of the app.
public struct FieldBehavior: Sendable {
    /// The use of the results of a push.
    public enum Results: Hashable, Sendable {
        /// Each record has its own.
        case ofEachRecord
        /// A record that the server rejects ends the push.
        case allOrNothing
    }

    /// The reaction to another language of the device.
    public enum LanguageChange: Hashable, Sendable {
        /// None: the next pull has the new language.
        case none
        /// A pull.
        case pull
        /// None, and the next pull has the old language.
        case ignored
    }

    // Records.
    /// Whether an answer whose period is over by the device's clock is rejected; otherwise the server's clock decides.
    public var judgesPeriods = false
    /// Whether a note keeps its identity when it is sent again, so that the server recognises it.
    public var keepsIdentities = true
    /// Whether a pushed answer stays on the device until a payload that contains it was pulled.
    public var keepsPushedAnswers = true
    /// The use of the results of a push.
    public var results = Results.ofEachRecord
    /// Whether a payload of an earlier day is pulled again.
    public var pullsDaily = true
    /// Whether a calendar day begins at midnight of the place of the payload; otherwise of UTC.
    public var followsZones = true
    /// Whether a payload that was pulled in an earlier submission period is pulled again.
    public var pullsEachPeriod = true
    /// Whether the app signs in before its first other request.
    public var signsInFirst = true
    /// The reaction to another language of the device.
    public var languageChange = LanguageChange.none
    /// Whether a commit that has failed is repeated; otherwise it counts as one that has succeeded.
    public var repeatsFailedCommits = true

    // Transfers.
    /// Whether an interrupted upload continues where it was.
    public var resumesUploads = true
    /// Whether an interrupted download continues where it was.
    public var resumesDownloads = true
    /// The number of files that are transferred at a time.
    public var filesAtOnce = 1
    /// Whether a file must have its digest.
    public var checksDigests = true
    /// Whether files are found in the whole payload; otherwise at its root only.
    public var scansTree = true
    /// Whether a file is requested at its last URL; otherwise at its first one.
    public var updatesURLs = true
    /// Whether the payload is pulled again if the server has another file than it says.
    public var noticesChangedFiles = true
    /// Whether a file can be opened before all of it has arrived.
    public var opensPartialFiles = false

    /// Creates the behaviour of the app.
    public init() {}
}
