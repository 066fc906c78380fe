public import Determinism

/// The rules of the reader. The default values are those of the app.
public struct ReaderBehavior: Sendable {
    /// The parts of a page that must be valid.
    public enum Validation: Hashable, Sendable {
        /// None: what is missing is left out.
        case none
        /// The required parts; an invalid additional part is an error at its place.
        case required
        /// All parts.
        case all
    }

    /// An operation that the user has started on a page.
    public enum Operation: Hashable, Sendable {
        case recommendation, like
    }

    /// The reason why a form that was submitted waits.
    public enum Waiting: Hashable, Sendable {
        /// The form was not sent, and the user sees it.
        case failed
        /// The user wants the form to be sent later.
        case later
    }

    /// The state of a like after a failed tap.
    public enum Rollback: Hashable, Sendable {
        /// The state that the server has confirmed last.
        case confirmed
        /// The state before the first of several taps.
        case first
    }

    // Pages.
    /// Whether a page that was read in the future, by the clock of the device, counts as fresh.
    public var trustsFuturePages = false
    /// The time after which a read that the user waits for has a loading indicator.
    public var indicatorDelay = ReaderEngine.indicatorDelay
    /// Whether cached content is shown while it is read again.
    public var showsCacheDuringReads = true
    /// Whether the error of a page stays; otherwise it is a message that vanishes by itself.
    public var keepsPageErrors = true
    /// Whether a page that could not be read is read again when the connection returns; otherwise the user does that.
    public var rereadsPages = false
    /// The number of requests that a retry by the user sends. The response to the first is used.
    public var requestsPerRetry = 1
    /// The parts of a page that must be valid.
    public var validation = Validation.required
    /// Returns the text about a page that could not be read, from its subject and the status of the response.
    public var message: @Sendable (ReaderProblem, _ subject: String, _ status: Int?) -> String = {
        problem, subject, _ in
        problem.message(about: subject)
    }

    // Operations and states.
    /// Whether another recommendation can be requested while one is in flight.
    public var recommendsInParallel = false
    /// Returns whether the failure of an operation is shown after the user has left its page: that of a like in a dialog, that
    /// of a recommendation as a message that vanishes by itself.
    public var reportsAfterLeaving: @Sendable (Operation) -> Bool = { $0 == .like }
    /// Whether a like is shown before the server has confirmed it.
    public var showsLikesAtOnce = true
    /// The state of a like after a failed tap.
    public var rollback = Rollback.confirmed

    // Forms.
    /// Returns whether the inputs of a form that waits are kept.
    public var keepsForm: @Sendable (Waiting) -> Bool = { _ in true }
    /// Whether secret inputs are stored with the others.
    public var storesSecrets = false

    /// Creates the behaviour of the app.
    public init() {}
}
