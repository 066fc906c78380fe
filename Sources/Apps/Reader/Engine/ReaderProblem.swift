internal import Client

/// A kind of failure, as a user can understand it. Its texts say that something failed, why in general, and what the user
/// can do; they have no numbers.
public enum ReaderProblem: String, CaseIterable, Hashable, Sendable {
    // The network.
    /// There is no connection, or it was lost, or a captive portal responds.
    case noConnection = "no-connection"
    /// The server does not respond in time.
    case notResponding = "not-responding"
    // The server.
    /// The server has no such thing (404, 410).
    case notFound = "not-found"
    /// The server rejects the user's credentials (401).
    case signIn = "sign-in"
    /// The user may not do this (403).
    case notAllowed = "not-allowed"
    /// The server fails in another way.
    case cannotLoad = "cannot-load"
    /// The server does not execute a write.
    case cannotSave = "cannot-save"
    // Received data.
    /// What the server has sent lacks required data.
    case receivedData = "received-data"

    /// Creates the problem of a request without a response of the service. A captive portal is a part of the network.
    init(_ cause: AppFailure.Cause) {
        self =
            switch cause {
            case .noConnection, .lost, .foreign: .noConnection
            case .timeout: .notResponding
            case .malformed: .receivedData
            }
    }

    /// Creates the problem of a request that the server rejects.
    ///
    /// - Parameter other: The problem of a status that the app does not know.
    init(status: Int, other: ReaderProblem = .cannotLoad) {
        self =
            switch status {
            case 401: .signIn
            case 403: .notAllowed
            case 404, 410: .notFound
            default: other
            }
    }

    /// Whether the user may try again.
    public var canBeRetried: Bool { self != .notFound && self != .notAllowed }

    /// Returns the text about a subject, such as `Bo's profile`.
    public func message(about subject: String) -> String {
        switch self {
        case .noConnection: "No network connection. Connect and try again."
        case .notResponding: "\(ReaderText.service) is not responding. Try again later."
        case .notFound: "\(subject.prefix(1).uppercased())\(subject.dropFirst()) is not available."
        case .signIn: "\(ReaderText.service) does not accept your password. Sign in again."
        case .notAllowed: "You have no access to \(subject)."
        case .cannotLoad: "Cannot get \(subject). Try again later."
        case .cannotSave: "Cannot save \(subject). Try again later."
        case .receivedData: "Error while getting \(subject). Try again later."
        }
    }
}

/// The values of dialogs and messages that the reader shows.
public enum ReaderText {
    /// The name of the service in messages.
    public static let service = "Reader"
    /// The dialog after a form in the background has failed.
    public static let notSent = "not-sent"
    /// The dialog after a like has failed whose page the user has left.
    public static let notSaved = "not-saved"
    /// The dialog while a blocking form is sent.
    public static let sending = "sending"
    /// The message after a form was sent.
    public static let sent = "sent"
    /// The message after the user has chosen that a form is sent later.
    public static let sentLater = "sent-later"
    /// The push notice about a form that the service has accepted.
    public static let pushedResult = "\(service) has your feedback."
    /// The push notice about a form that the service has rejected.
    public static let pushedRejection =
        "\(service) does not accept your feedback. Open \(service) to change or discard it."
    /// The value of an input that the user has filled in and that is not shown.
    public static let concealed = "concealed"
    /// The value of an additional part of a page that could not be got.
    public static func missing(_ name: String) -> String { "could not get the \(name)" }
    /// The value of a picture that the data saver does not load.
    public static let notLoaded = "not loaded to save data"
}
